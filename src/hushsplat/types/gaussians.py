"""A scene of Gaussians in memory, the same whatever file it came from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float32, Integer
from numpy import ndarray as Array

from hushsplat.types.errors import SceneError

PAYLOAD_FLOATS = 10  # three view vectors (9) and one blur strength (1) per Gaussian; paper, "Spatial Filtering"
MAX_SH_DEGREE = 3


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Gaussians with activated parameters: linear scales and opacities, unit quaternions.

    Two scale columns make the scene surfels (2DGS: flat, normal = third column of the rotation); three make it
    ellipsoids (3DGS). `sh[:, 0]` is the constant band; a colour is `0.5 + sum(basis * sh)`, clamped at 0 from below.
    The arrays are read-only, because engines share them: `dataclasses.replace(scene, means=scene.means + 0.5)`.

    Attributes:
        means: [n, 3], world units.
        scales: [n, 2 or 3], standard deviations, world units, > 0.
        rotations: [n, 4], world from local, unit quaternions wxyz.
        opacities: [n], 0..1.
        sh: [n, k, 3], k = (degree + 1)², coefficient-major, RGB last.
        payload: [n, 10], of the denoiser: up, right and forward view vectors, blur; None for most scenes.
        antialiased: trained with Mip-Splatting's screen-space filter (gsplat's `antialiased`), ellipsoids only: drawn
            with opacities that fall by as much as the filter enlarges a projection.
    """

    means: Float32[Array, "n 3"]
    scales: Float32[Array, "n s"]
    rotations: Float32[Array, "n 4"]
    opacities: Float32[Array, " n"]
    sh: Float32[Array, "n k 3"]
    payload: Float32[Array, "n 10"] | None = None
    antialiased: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        n = len(self.means)
        expected = {
            "means": (n, 3),
            "scales": (n, self.scales.shape[-1] if self.scales.ndim == 2 else -1),
            "rotations": (n, 4),
            "opacities": (n,),
            "sh": (n, self.sh.shape[1] if self.sh.ndim == 3 else -1, 3),
        }
        if self.payload is not None:
            expected["payload"] = (n, PAYLOAD_FLOATS)
        for name, shape in expected.items():
            array = getattr(self, name)
            if array.shape != shape or array.dtype != np.float32:
                raise SceneError(f"{name} must be float32 of shape {shape}, got {array.dtype} {array.shape}.")
        if self.scales.shape[1] not in (2, 3):
            raise SceneError(f"scales must have 2 columns (surfels) or 3 (ellipsoids), got {self.scales.shape[1]}.")
        if self.sh.shape[1] not in (1, 4, 9, 16):
            raise SceneError(f"sh must have 1, 4, 9 or 16 coefficients (degree 0 to 3), got {self.sh.shape[1]}.")
        if self.antialiased and self.is_surfels:
            raise SceneError("surfels have a low-pass of their own and cannot be antialiased; leave it out.")
        for name in expected:
            shared = getattr(self, name).view()
            shared.flags.writeable = False  # of this view; the caller's own array stays as it is
            object.__setattr__(self, name, shared)

    def __len__(self) -> int:
        return len(self.means)

    def __repr__(self) -> str:
        kind = "surfels" if self.is_surfels else "ellipsoids"
        more = ["payload"] * (self.payload is not None) + ["antialiased"] * self.antialiased
        return f"Gaussians({', '.join([f'{len(self):,} {kind}', f'SH degree {self.sh_degree}', *more])})"

    @property
    def is_surfels(self) -> bool:
        """True for flat Gaussians (2DGS), False for ellipsoids (3DGS)."""
        return self.scales.shape[1] == 2

    @property
    def sh_degree(self) -> int:
        """Degree of the spherical harmonics, 0 to 3."""
        return int(np.sqrt(self.sh.shape[1])) - 1

    def take(self, index: Integer[Array, " m"]) -> Gaussians:
        """The Gaussians at these indices, in this order."""
        return replace(
            self,
            means=self.means[index],
            scales=self.scales[index],
            rotations=self.rotations[index],
            opacities=self.opacities[index],
            sh=self.sh[index],
            payload=None if self.payload is None else self.payload[index],
        )

    def first(self, count: int) -> Gaussians:
        """The first ones, as views of the same arrays."""
        payload = None if self.payload is None else self.payload[:count]
        names = ("means", "scales", "rotations", "opacities", "sh")
        return replace(self, payload=payload, **{name: getattr(self, name)[:count] for name in names})


def with_min_opacity(gaussians: Gaussians, least: float) -> Gaussians:
    """The Gaussians that are at least this opaque; the scene itself if that is all of them."""
    if not 0 <= least <= 1:
        raise SceneError(f"the least opacity must lie in 0..1, got {least}.")
    kept = gaussians.opacities >= least
    return gaussians if kept.all() else gaussians.take(np.flatnonzero(kept))


def with_sh_degree(gaussians: Gaussians, degree: int) -> Gaussians:
    """The scene with spherical harmonics up to this degree; a scene of a lower degree stays as it is."""
    if not 0 <= degree <= MAX_SH_DEGREE:
        raise SceneError(f"the degree of the spherical harmonics must lie in 0..{MAX_SH_DEGREE}, got {degree}.")
    if degree >= gaussians.sh_degree:
        return gaussians
    return replace(gaussians, sh=np.ascontiguousarray(gaussians.sh[:, : (degree + 1) ** 2]))
