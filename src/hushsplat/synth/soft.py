"""Shapes without hard edges: leaves and cushions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.shapes import Length, boxes, by_area, even_pairs, f32, turn_matrix
from hushsplat.synth.surfels import Spots, any_tangent, cross, normalized


@dataclass(frozen=True)
class Blades:
    """Leaves, petals and blades: each grows from its base along a direction and hangs over."""

    bases: Float32[Array, "m 3"]
    directions: Float32[Array, "m 3"]  # unit vectors
    normals: Float32[Array, "m 3"]  # unit vectors, roughly at right angles to the directions
    sizes: Float32[Array, "m 2"]  # metres: length and full width
    droop: float = 0.3  # 0..1: how far the tip falls below a straight leaf, in lengths
    bluntness: float = 0.8  # > 0: small is round, large is a lancet

    @property
    def area(self) -> float:
        """Square metres in all, of one side."""
        return float(0.64 * self.sizes.prod(axis=1).sum())

    def spots(self, rng: Generator, n: int) -> Spots:
        """n spots; uv is (0 at the base .. 1 at the tip, -1..1 from rim to rim)."""
        owner, spacing = by_area(self.sizes.prod(axis=1) * 0.64, n)
        s, w = even_pairs(rng, n)
        w = 2 * w - 1
        length, width = self.sizes[owner].T
        profile = np.sin(np.float32(np.pi) * (0.04 + 0.92 * s) ** np.float32(0.85)) ** np.float32(self.bluntness)
        direction, normal = self.directions[owner], self.normals[owner]
        side = normalized(cross(normal, direction))
        fold = 0.18 * np.abs(w) * profile * width  # a crease along the middle
        means = (
            self.bases[owner]
            + (s * length)[:, None] * direction
            + (0.5 * w * profile * width)[:, None] * side
            + fold[:, None] * normal
        )
        means[:, 1] += self.droop * length * s * s
        tangents = direction.copy()
        tangents[:, 1] += 2 * self.droop * s
        tangents = normalized(tangents)
        normals = normalized(cross(tangents, side) - (0.3 * np.sign(w))[:, None] * side)
        tangents = normalized(cross(cross(normals, tangents), normals))
        reach = np.stack(
            [np.minimum(s, 1 - s) * length + 0.06 * length, (1.1 - np.abs(w)) * profile * width * 0.5], axis=1
        )
        return Spots(means, normals, tangents, reach, np.stack([s, w], axis=1), owner, spacing)


@dataclass(frozen=True)
class Cushions:
    """Boxes with round edges and swollen sides."""

    centers: Float32[Array, "m 3"]
    sizes: Float32[Array, "m 3"]  # full sizes
    axes: Float32[Array, "m 3 3"]  # rows: the world directions of a cushion's own x, y and z
    radius: float  # metres: rounding of the edges
    bulge: float = 0.0  # metres: how much the middle of each side stands out

    @property
    def area(self) -> float:
        """Square metres in all, of the box around."""
        x, y, z = self.sizes.T
        return float(2 * (x * y + y * z + x * z).sum())

    def spots(self, rng: Generator, n: int) -> Spots:
        """n spots on the skin; uv is (metres along, metres across) of the box's sides, owner the cushion."""
        m = len(self.centers)
        flat = boxes(np.zeros((m, 3)), self.sizes).spots(rng, n)
        owner = flat.owner % m
        half = 0.5 * self.sizes[owner]
        inner = half - np.minimum(np.float32(self.radius), half.min(axis=1, keepdims=True))
        core = np.clip(flat.means, -inner, inner)
        # Seen from the core, rounding turns every outward step into one of the same length.
        outward = flat.means - core
        normals = normalized(outward)
        swell = self.bulge * np.prod(np.where(np.abs(flat.normals) > 0.5, 1, 1 - (flat.means / half) ** 2), axis=1)
        local = core + normals * ((half - inner).max(axis=1) + swell)[:, None]
        # A swollen side leans outwards near its rim.
        normals = normalized(normals + (1.6 * self.bulge * flat.means / (half * half)))
        frames = self.axes[owner]
        means = self.centers[owner] + np.einsum("ni,nij->nj", local, frames)
        normals = np.einsum("ni,nij->nj", normals, frames)
        reach = np.full((n, 2), 1e3, dtype=np.float32)
        return Spots(f32(means), f32(normals), any_tangent(f32(normals)), reach, flat.uv, owner, flat.spacing)

    def placed(self, x: Length, z: Length, yaw_deg: Length = 0, height: Length = 0) -> Cushions:
        """Turned about the vertical, then moved."""
        turn = turn_matrix(yaw_deg).T
        return replace(self, centers=self.centers @ turn + f32([x, -height, z]), axes=self.axes @ turn)
