"""The last step of every scene reader: what leaves here is finite, positive and normalised, or refused by name."""

from __future__ import annotations

import os

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray as Array

from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians

SMALLEST_SCALE = 1e-12  # world units; ours: flat enough for any scene, and its inverse square is a float32 still
ROWS_AT_ONCE = 16384  # ours: the rows checked stay in the cache for all the checks


def checked(
    path: str | os.PathLike[str],
    means: Float[Array, "n 3"],
    scales: Float[Array, "n s"],
    rotations: Float[Array, "n 4"],
    opacities: Float[Array, " n"],
    sh: Float[Array, "n k 3"],
    payload: Float[Array, "n 10"] | None = None,
) -> Gaussians:
    """Gaussians of activated parameters as a file gave them; `path` is only named in errors.

    Refuses NaN, infinities, negative scales, opacities outside 0..1 and quaternions of length zero. Scales under
    SMALLEST_SCALE (an exponential that fell to zero, a flat Gaussian) are raised to it and quaternions become unit
    length, in place where the arrays allow it: a caller hands its arrays over.
    """
    gaussians = Gaussians(
        means=_own_float32(means),
        scales=_own_float32(scales),
        rotations=_own_float32(rotations),
        opacities=_own_float32(opacities),
        sh=_own_float32(sh),
        payload=None if payload is None else _own_float32(payload),
    )
    for first in range(0, len(gaussians), ROWS_AT_ONCE):
        sanitize_rows(path, gaussians, first, first + ROWS_AT_ONCE)
    return gaussians


def sanitize_rows(path: str | os.PathLike[str], gaussians: Gaussians, first: int, stop: int) -> None:
    """Check the Gaussians from `first` up to `stop`, and raise their scales and normalise their rotations in place."""
    rows = slice(first, stop)
    _refuse_not_finite(path, gaussians, first, stop, "the file is damaged, export the scene again")
    _refuse_opacities_outside(path, gaussians.opacities[rows], first)
    _raise_scales(path, gaussians.scales[rows], first)
    _normalise_rotations(path, gaussians.rotations[rows], first)


def _own_float32(array: Float[Array, "n ..."]) -> Float32[Array, "n ..."]:
    with np.errstate(over="ignore"):  # too large for float32: becomes infinite and is refused with its index
        converted = np.ascontiguousarray(array, dtype=np.float32)
    return converted if converted.flags.writeable else converted.copy()


def refuse_unwritable(path: str | os.PathLike[str], gaussians: Gaussians) -> None:
    """Refuse to write what could not be read back: NaN and infinities."""
    for first in range(0, len(gaussians), ROWS_AT_ONCE):
        _refuse_not_finite(path, gaussians, first, first + ROWS_AT_ONCE, "such a scene is not written")


def _refuse_not_finite(
    path: str | os.PathLike[str], gaussians: Gaussians, first: int, stop: int, consequence: str
) -> None:
    fields = {
        "position": gaussians.means,
        "scale": gaussians.scales,
        "rotation": gaussians.rotations,
        "opacity": gaussians.opacities,
        "sh": gaussians.sh,
        "payload": gaussians.payload,
    }
    for name, array in fields.items():
        if array is None:
            continue
        values = array[first:stop]
        # NaN and infinities survive a sum: one fast pass for good files. A sum may also overflow, so look again.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                continue
        bad = ~np.isfinite(values)
        if bad.any():
            where = tuple(np.argwhere(bad)[0])
            raise SceneError(
                f"{path}: {name} of Gaussian {first + where[0]} is {values[where]}, not a finite number; {consequence}."
            )


def _refuse_opacities_outside(path: str | os.PathLike[str], opacities: Float32[Array, " n"], first: int) -> None:
    if len(opacities) and (opacities.min() < 0 or opacities.max() > 1):
        index = int(np.argmax((opacities < 0) | (opacities > 1)))
        raise SceneError(f"{path}: opacity of Gaussian {first + index} is {opacities[index]:g}, outside 0 to 1.")


def _raise_scales(path: str | os.PathLike[str], scales: Float32[Array, "n s"], first: int) -> None:
    if not len(scales) or scales.min() >= SMALLEST_SCALE:
        return
    negative = (scales < 0).any(axis=1)
    if negative.any():
        index = int(np.argmax(negative))
        raise SceneError(f"{path}: scale of Gaussian {first + index} is {scales[index].min():g}, expected more than 0.")
    np.maximum(scales, np.float32(SMALLEST_SCALE), out=scales)


def _normalise_rotations(path: str | os.PathLike[str], rotations: Float32[Array, "n 4"], first: int) -> None:
    with np.errstate(over="ignore"):
        squared = np.einsum("ij,ij->i", rotations, rotations)
    extreme = np.flatnonzero((squared < 1e-20) | (squared > 1e20))  # where float32 squares lose digits
    if len(extreme):
        exact = rotations[extreme].astype(np.float64)
        lengths = np.linalg.norm(exact, axis=1)
        if not lengths.all():
            raise SceneError(
                f"{path}: rotation of Gaussian {first + extreme[np.argmin(lengths)]} is a quaternion of length 0, "
                "which is no rotation; the file is damaged, export the scene again."
            )
        rotations[extreme] = exact / lengths[:, None]
        squared[extreme] = 1
    rotations /= np.sqrt(squared, out=squared)[:, None]
