"""Lens distortion: the models of COLMAP and OpenCV, in normalised coordinates (x/z, y/z)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.errors import CameraError

# How many coefficients each kind of lens has, and their names in the order of OpenCV or COLMAP.
COEFFICIENTS = {
    "perspective": ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),  # OpenCV's rational model; the tail may be zero
    "fisheye": ("k1", "k2", "k3", "k4"),  # equidistant with a polynomial in the angle
    "thin_prism_fisheye": ("k1", "k2", "p1", "p2", "k3", "k4", "sx1", "sy1"),
    "fov": ("omega",),  # one angle, rad
}
FOLD_CELLS = 48  # ours: a lens is checked for folds on this many cells along each side of the picture


@dataclass(frozen=True)
class Distortion:
    """Lens distortion of a photograph; focal lengths and principal point are in its Camera.

    Attributes:
        kind: of the model, a key of COEFFICIENTS.
        coefficients: in the order of COEFFICIENTS; missing ones at the end are 0.
    """

    kind: Literal["perspective", "fisheye", "thin_prism_fisheye", "fov"]
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        names = COEFFICIENTS[self.kind]
        if len(self.coefficients) > len(names) or not np.isfinite(self.coefficients).all():
            raise CameraError(f"a {self.kind} lens has up to {len(names)} finite coefficients: {', '.join(names)}.")
        missing = len(names) - len(self.coefficients)
        object.__setattr__(self, "coefficients", (*self.coefficients, *[0.0] * missing))

    @property
    def is_none(self) -> bool:
        """True for a lens that bends nothing."""
        return self.kind == "perspective" and not any(self.coefficients)

    def distort(self, ideal: Float64[Array, "*batch 2"]) -> Float64[Array, "*batch 2"]:
        """Where the lens puts points that a pinhole would put at `ideal`; not finite where the model has no answer."""
        x, y = ideal.reshape(-1, 2).T
        with np.errstate(all="ignore"):
            seen = _MODELS[self.kind](x, y, self.coefficients)
        return np.stack(seen, axis=-1).reshape(ideal.shape)

    def folds_within(self, camera: Camera) -> bool:
        """True if the model leaves the range where it makes sense (turns lines over) inside the camera's picture."""
        x = (np.linspace(0, camera.width, FOLD_CELLS + 1) - camera.cx) / camera.fx
        y = (np.linspace(0, camera.height, FOLD_CELLS + 1) - camera.cy) / camera.fy
        seen = self.distort(np.stack(np.meshgrid(x, y), axis=-1))
        with np.errstate(all="ignore"):  # a pole is not finite, and so not an area > 0
            across, down = np.diff(seen, axis=1)[:-1], np.diff(seen, axis=0)[:, :-1]
            areas = across[..., 0] * down[..., 1] - across[..., 1] * down[..., 0]
        return not bool((areas > 0).all())


# The models take and give x and y as arrays of their own: twice as fast as arrays of pairs.
_Plane = Float64[Array, " n"]


def _perspective(x: _Plane, y: _Plane, k: tuple[float, ...]) -> tuple[_Plane, _Plane]:
    k1, k2, p1, p2, k3, k4, k5, k6 = k
    r2 = x * x + y * y
    radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
    if k4 or k5 or k6:
        radial = radial / (1 + r2 * (k4 + r2 * (k5 + r2 * k6)))
    return x * radial + _tangential(x, y, r2, p1, p2), y * radial + _tangential(y, x, r2, p2, p1)


def _fisheye(x: _Plane, y: _Plane, k: tuple[float, ...]) -> tuple[_Plane, _Plane]:
    k1, k2, k3, k4 = k
    x, y, t2 = _equidistant(x, y)
    radial = 1 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4)))
    return x * radial, y * radial


def _thin_prism_fisheye(x: _Plane, y: _Plane, k: tuple[float, ...]) -> tuple[_Plane, _Plane]:
    k1, k2, p1, p2, k3, k4, sx1, sy1 = k
    x, y, t2 = _equidistant(x, y)
    radial = 1 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4)))
    return (
        x * radial + _tangential(x, y, t2, p1, p2) + sx1 * t2,
        y * radial + _tangential(y, x, t2, p2, p1) + sy1 * t2,
    )


def _fov(x: _Plane, y: _Plane, k: tuple[float, ...]) -> tuple[_Plane, _Plane]:
    (omega,) = k
    if abs(omega) < 1e-6:  # no distortion at all in the limit
        return x, y
    radius = np.maximum(np.hypot(x, y), 1e-9)
    radial = np.arctan(radius * 2 * np.tan(omega / 2)) / (radius * omega)
    return x * radial, y * radial


def _equidistant(x: _Plane, y: _Plane) -> tuple[_Plane, _Plane, _Plane]:
    """Points with the angle from the axis as their radius, and that angle squared."""
    radius = np.maximum(np.hypot(x, y), 1e-9)
    angle = np.arctan(radius)
    return x * (angle / radius), y * (angle / radius), angle * angle


def _tangential(along: _Plane, across: _Plane, r2: _Plane, p_cross: float, p_along: float) -> _Plane | float:
    if p_cross == 0 and p_along == 0:
        return 0.0
    return 2 * p_cross * along * across + p_along * (r2 + 2 * along * along)


_MODELS = {
    "perspective": _perspective,
    "fisheye": _fisheye,
    "thin_prism_fisheye": _thin_prism_fisheye,
    "fov": _fov,
}
