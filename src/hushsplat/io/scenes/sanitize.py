"""The last step of every scene reader and the first of every writer: values are checked, or refused by name."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray as Array

from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians

SMALLEST_SCALE = 1e-12  # world units; ours: flat enough for any scene, and its inverse square is a float32 still
SURFEL_THICKNESS = 1e-6  # world units; ours: thinner than any pixel, thick enough for float32 covariances
# Ours: real files grow by less than 25 when they are decoded; above the free bytes, more than this is a bomb.
FREE_BYTES, GROWTH = 16 << 20, 64
ROWS_AT_ONCE = 16384  # ours: a block of rows stays in the cache for all checks
WORDS = {  # field of `Gaussians`: what errors call it
    "means": "position",
    "scales": "scale",
    "rotations": "rotation",
    "opacities": "opacity",
    "sh": "sh",
    "payload": "payload",
}


def checked(
    path: str | os.PathLike[str],
    means: Float[Array, "n 3"],
    scales: Float[Array, "n s"],
    rotations: Float[Array, "n 4"],
    opacities: Float[Array, " n"],
    sh: Float[Array, "n k 3"],
) -> Gaussians:
    """Gaussians from the activated parameters of a file; `path` is only named in errors.

    Refuses NaN, infinities, negative scales, opacities outside 0..1 and quaternions of length zero. Scales below
    SMALLEST_SCALE (an exponential that underflowed, a flat Gaussian) are raised to it and quaternions are normalised,
    in place where the arrays are writable: the caller hands them over.
    """
    arrays = {"means": means, "scales": scales, "rotations": rotations, "opacities": opacities, "sh": sh}
    arrays = {name: _own_float32(array) for name, array in arrays.items()}
    gaussians = Gaussians(**arrays)  # checks the shapes; its views are read-only, `arrays` are not
    for first in range(0, len(means), ROWS_AT_ONCE):
        sanitize_rows(path, arrays, first, first + ROWS_AT_ONCE)
    return gaussians


def refuse_bomb(where: str | os.PathLike[str], count: int, decoded_bytes: int, file_bytes: int) -> None:
    """Refuse a count of Gaussians, before they are decoded, that needs far more bytes than the file has."""
    if decoded_bytes > FREE_BYTES + GROWTH * file_bytes:
        raise SceneError(
            f"{where}: announces {count} Gaussians, which files of {file_bytes} bytes cannot hold; "
            "the scene is damaged."
        )


def sanitize_rows(path: str | os.PathLike[str], arrays: Mapping[str, Array], first: int, stop: int) -> None:
    """Check rows `first` to `stop` of the arrays of a scene; raise their scales and normalise their rotations in place.

    Args:
        path: named in errors.
        arrays: float32, by the names of the fields of `Gaussians`.
        first: index of the first Gaussian.
        stop: index after the last one.
    """
    rows = slice(first, stop)
    _refuse_not_finite(path, arrays, first, stop, "the file is damaged, export the scene again")
    _refuse_opacities_outside(path, arrays["opacities"][rows], first)
    _raise_scales(path, arrays["scales"][rows], first)
    _normalise_rotations(path, arrays["rotations"][rows], first)


def _own_float32(array: Float[Array, "n ..."]) -> Float32[Array, "n ..."]:
    with np.errstate(over="ignore"):  # too large for float32: becomes infinite and is refused with its index
        converted = np.ascontiguousarray(array, dtype=np.float32)
    return converted if converted.flags.writeable else converted.copy()


def three_scales(gaussians: Gaussians) -> Float32[Array, "n 3"]:
    """Three scales per Gaussian, for formats without surfels: these get SURFEL_THICKNESS along their normal."""
    if not gaussians.is_surfels:
        return gaussians.scales
    return np.column_stack([gaussians.scales, np.full(len(gaussians), SURFEL_THICKNESS, np.float32)])


def refuse_unwritable(path: str | os.PathLike[str], gaussians: Gaussians) -> None:
    """Refuse to write what could not be read back: NaN and infinities."""
    arrays = {name: getattr(gaussians, name) for name in WORDS if getattr(gaussians, name) is not None}
    for first in range(0, len(gaussians), ROWS_AT_ONCE):
        _refuse_not_finite(path, arrays, first, first + ROWS_AT_ONCE, "such a scene is not written")


def _refuse_not_finite(
    path: str | os.PathLike[str], arrays: Mapping[str, Array], first: int, stop: int, consequence: str
) -> None:
    for name, array in arrays.items():
        values = array[first:stop]
        # NaN and infinities survive a sum: one fast pass for good files. A sum may also overflow, so look again.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                continue
        bad = ~np.isfinite(values)
        if bad.any():
            where = tuple(np.argwhere(bad)[0])
            raise SceneError(
                f"{path}: {WORDS[name]} of Gaussian {first + where[0]} is {values[where]}, "
                f"not a finite number; {consequence}."
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
