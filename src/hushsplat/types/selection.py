"""Less of a scene: fewer Gaussians, fewer bands of colour."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import MAX_SH_DEGREE, Gaussians


def with_min_opacity(gaussians: Gaussians, least: float) -> Gaussians:
    """The Gaussians that are at least this opaque; the scene itself if that is all of them."""
    if not 0 <= least <= 1:
        raise SceneError(f"the least opacity must lie in 0..1, got {least}.")
    kept = gaussians.opacities >= least
    return gaussians if kept.all() else gaussians.take(np.flatnonzero(kept))


def with_sh_degree(gaussians: Gaussians, degree: int) -> Gaussians:
    """The scene with spherical harmonics up to this degree only; bands it does not have are not made up."""
    if not 0 <= degree <= MAX_SH_DEGREE:
        raise SceneError(f"the degree of the spherical harmonics must lie in 0..{MAX_SH_DEGREE}, got {degree}.")
    if degree >= gaussians.sh_degree:
        return gaussians
    return replace(gaussians, sh=np.ascontiguousarray(gaussians.sh[:, : (degree + 1) ** 2]))
