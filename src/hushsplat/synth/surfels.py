"""Batches of surfels: sampled points of a surface get size, tilt and colour; shares of a scene's count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray as Array
from numpy.random import Generator

COVER = 0.74  # standard deviation of a surfel in units of the mean distance between surfels: closes a surface
MAX_STRETCH = 10.0  # longest axis over shortest, as trained scenes have it


@dataclass(frozen=True)
class Finish:
    """How the surfels of one part behave, beside their colour."""

    gloss: float = 0.0  # 0..1: strength of the view-dependent lobe
    sharpness: float = 2.5  # > 0: how narrow that lobe is
    translucency: float = 0.0  # 0..1: share of the light that comes through from behind
    glow: float = 0.0  # light given off by the surface itself, in units of its albedo
    rough: float = 0.05  # radians: noise of the normals
    spin: float = 0.5  # radians: noise of the direction of the long axis
    stretch: float = 1.3  # >= 1: typical aspect
    opacity: tuple[float, float] | None = None  # uniform range; None is the two-peaked one of a trained surface
    shadow: bool = True  # takes part in shadows and in the darkening of corners


@dataclass(frozen=True)
class Spots:
    """Places on a surface, before they have a size and a colour."""

    means: Float32[Array, "n 3"]
    normals: Float32[Array, "n 3"]
    tangents: Float32[Array, "n 3"]  # along the grain
    reach: Float32[Array, "n 2"]  # metres to the border of the surface, along the grain and across it
    uv: Float32[Array, "n 2"]  # metres from the first corner, along the grain and across it
    owner: Int64[Array, " n"]  # which quad, cone, ... of the shape
    spacing: float  # metres: mean distance between the spots


@dataclass(frozen=True)
class Surfels:
    """Surfels of one part with their own colour (albedo), not yet lit."""

    means: Float32[Array, "n 3"]
    normals: Float32[Array, "n 3"]
    tangents: Float32[Array, "n 3"]  # direction of the first scale
    scales: Float32[Array, "n 2"]
    opacities: Float32[Array, " n"]
    albedo: Float32[Array, "n 3"]  # linear RGB, 0..1
    finish: Finish

    def __len__(self) -> int:
        return len(self.means)


@dataclass(frozen=True)
class Part:
    """A piece of the scene that can be made of any number of surfels."""

    name: str
    demand: float  # surfels it would like in a scene of about a million; others get the same shares
    make: Callable[[Generator, int], Surfels]


def share_out(demands: Sequence[float], count: int) -> list[int]:
    """Whole numbers in proportion to the demands, at least one each, that add up to `count` exactly."""
    weights = np.asarray(demands, dtype=np.float64)
    wanted = 1 + weights * ((count - len(weights)) / weights.sum())
    shares = np.floor(wanted).astype(np.int64)
    by_remainder = np.argsort(shares - wanted, kind="stable")
    shares[by_remainder[: count - int(shares.sum())]] += 1
    return [int(share) for share in shares]


def settle(rng: Generator, spots: Spots, albedo: Float32[Array, "n 3"], finish: Finish) -> Surfels:
    """Give spots a size, a tilt and an opacity with the statistics of trained surfels."""
    scales = _sizes(rng, spots, finish)
    normals, tangents = _tilted(rng, spots, scales, finish)
    # Surfaces of trained scenes are a few layers thick; a share of the surfels lies deeper than the noise.
    depth = rng.standard_normal(len(albedo), dtype=np.float32)
    depth -= 3 * (rng.random(len(albedo), dtype=np.float32) < 0.12)
    depth *= 0.07 * scales.min(axis=1)
    return Surfels(
        spots.means + spots.normals * depth[:, None],
        normals,
        tangents,
        scales,
        _opacities(rng, len(albedo), finish.opacity),
        albedo,
        finish,
    )


def _sizes(rng: Generator, spots: Spots, finish: Finish) -> Float32[Array, "n 2"]:
    """Log-normal sizes that keep inside their surface where they can without leaving it open."""
    n = len(spots.means)
    size = np.float32(COVER * spots.spacing) * np.exp(0.28 * rng.standard_normal(n, dtype=np.float32))
    stretch = finish.stretch * np.exp(0.35 * rng.standard_normal(n, dtype=np.float32))
    half_root = np.sqrt(np.clip(stretch, 1 / MAX_STRETCH, MAX_STRETCH))
    product = size * size
    cap_along, cap_across = (spots.reach / 1.35).T
    thinnest = size / np.float32(np.sqrt(MAX_STRETCH))
    across = np.maximum(np.minimum(size / half_root, cap_across), thinnest)
    along = np.maximum(np.minimum(product / across, cap_along), thinnest)
    across = np.maximum(np.minimum(product / along, np.maximum(cap_across, across)), thinnest)
    across = np.minimum(across, along * MAX_STRETCH)
    return np.stack([np.minimum(along, across * MAX_STRETCH), across], axis=1)


def _tilted(
    rng: Generator, spots: Spots, scales: Float32[Array, "n 2"], finish: Finish
) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
    """Normals and long axes with a little noise; still at right angles."""
    n = len(scales)
    bitangents = cross(spots.normals, spots.tangents)
    # Turning a surfel that was fitted between two borders would make it stick out.
    free = np.clip(spots.reach.min(axis=1) / scales.max(axis=1) - 1, 0, 1)
    angle = finish.spin * free * rng.standard_normal(n, dtype=np.float32)
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    tangents = cosine * spots.tangents + sine * bitangents
    bitangents = cosine * bitangents - sine * spots.tangents
    tilt_along, tilt_across = finish.rough * rng.standard_normal((2, n, 1), dtype=np.float32)
    normals = normalized(spots.normals + tilt_along * tangents + tilt_across * bitangents)
    return normals, normalized(tangents - tilt_along * spots.normals)


def _opacities(rng: Generator, n: int, between: tuple[float, float] | None) -> Float32[Array, " n"]:
    """Uniform between two values, or most near one with a tail of faint ones."""
    draw = rng.random(n, dtype=np.float32)
    if between is not None:
        low, high = between
        return np.float32(low) + np.float32(high - low) * draw
    faint = rng.random(n, dtype=np.float32) < 0.16
    return np.where(faint, 0.08 + 0.8 * draw, 0.999 - 0.1 * draw * draw).astype(np.float32)


def loose(means: Float32[Array, "n 3"], normals: Float32[Array, "n 3"], spacing: float) -> Spots:
    """Spots of a surface without borders; uv is (x, z)."""
    n = len(means)
    endless = np.full((n, 2), 1e6, dtype=np.float32)
    return Spots(means, normals, any_tangent(normals), endless, means[:, ::2], np.zeros(n, dtype=np.int64), spacing)


def cross(a: Float32[Array, "n 3"], b: Float32[Array, "n 3"]) -> Float32[Array, "n 3"]:
    """Cross product by rows; several times faster than numpy's for float32."""
    out = np.empty_like(a)
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def normalized(vectors: Float32[Array, "n 3"]) -> Float32[Array, "n 3"]:
    """Rows of length one."""
    squared = np.einsum("ni,ni->n", vectors, vectors)
    return vectors / np.sqrt(np.maximum(squared, np.float32(1e-20)))[:, None]


def any_tangent(normals: Float32[Array, "n 3"]) -> Float32[Array, "n 3"]:
    """Some unit vector at right angles to each normal."""
    sideways = np.abs(normals[:, 1:2]) > 0.9
    helper = np.where(sideways, np.array([1, 0, 0], np.float32), np.array([0, 1, 0], np.float32))
    return normalized(cross(normals, helper))


def random_directions(rng: Generator, n: int) -> Float32[Array, "n 3"]:
    """Unit vectors, all directions alike."""
    return normalized(rng.standard_normal((n, 3), dtype=np.float32))


def quaternions(normals: Float32[Array, "n 3"], tangents: Float32[Array, "n 3"]) -> Float32[Array, "n 4"]:
    """Unit quaternions (wxyz) whose local x is the tangent and whose local z is the normal."""
    x, z = tangents, normals
    y = cross(z, x)
    # Four times the squares of w, x, y and z; dividing by the largest keeps every digit (Shepperd's method).
    squares = np.stack(
        [
            1 + x[:, 0] + y[:, 1] + z[:, 2],
            1 + x[:, 0] - y[:, 1] - z[:, 2],
            1 - x[:, 0] + y[:, 1] - z[:, 2],
            1 - x[:, 0] - y[:, 1] + z[:, 2],
        ]
    )
    products = {
        (0, 1): y[:, 2] - z[:, 1],
        (0, 2): z[:, 0] - x[:, 2],
        (0, 3): x[:, 1] - y[:, 0],
        (1, 2): x[:, 1] + y[:, 0],
        (1, 3): z[:, 0] + x[:, 2],
        (2, 3): y[:, 2] + z[:, 1],
    }
    largest = squares.argmax(axis=0)
    out = np.empty((len(x), 4), dtype=np.float32)
    for pivot in range(4):
        rows = np.flatnonzero(largest == pivot)
        for other in range(4):
            key = (min(pivot, other), max(pivot, other))
            column = squares[pivot] if other == pivot else products[key]
            out[rows, other] = column[rows]
    return out / np.sqrt(np.einsum("ni,ni->n", out, out))[:, None]
