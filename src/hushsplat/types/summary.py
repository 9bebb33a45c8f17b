"""Summary statistics of a scene."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from hushsplat.types.gaussians import Gaussians
from hushsplat.types.up import guess_up

PERCENTILES = (1, 25, 50, 75, 99)
HISTOGRAM_BINS = 24


@dataclass(frozen=True)
class Distribution:
    """How one number per Gaussian is spread."""

    percentiles: dict[int, float]  # by percent
    counts: tuple[int, ...]  # of the histogram, even bins from `low` to `high`
    low: float
    high: float


@dataclass(frozen=True)
class SceneSummary:
    """A scene in a few numbers; lengths in world units."""

    gaussians: int
    kind: str  # "surfels" or "ellipsoids"
    sh_degree: int
    has_payload: bool
    antialiased: bool  # trained with Mip-Splatting's screen-space filter
    up: str  # as --up takes it; a guess, see hushsplat.types.up, unless it is known
    bounds: tuple[tuple[float, ...], tuple[float, ...]] | None  # lowest and highest x, y, z; None if empty
    bulk: tuple[tuple[float, ...], tuple[float, ...]] | None  # the same without the outermost 1 % at each end
    sizes: Distribution | None  # largest standard deviation of each Gaussian; the histogram is of its log10
    opacities: Distribution | None
    bytes_in_memory: int


def bytes_in_memory(gaussians: Gaussians) -> int:
    """Of all arrays of a scene."""
    arrays = [gaussians.means, gaussians.scales, gaussians.rotations, gaussians.opacities, gaussians.sh]
    if gaussians.payload is not None:
        arrays.append(gaussians.payload)
    return sum(array.nbytes for array in arrays)


def summarize(gaussians: Gaussians, framing: Gaussians | None = None, up: str | None = None) -> SceneSummary:
    """Count, kind, bounds, sizes and opacities; `up` is guessed by `framing`, another level of detail of the scene."""
    empty = len(gaussians) == 0
    sizes = gaussians.scales.max(axis=1, initial=0)
    return SceneSummary(
        gaussians=len(gaussians),
        kind="surfels" if gaussians.is_surfels else "ellipsoids",
        sh_degree=gaussians.sh_degree,
        has_payload=gaussians.payload is not None,
        antialiased=gaussians.antialiased,
        up=guess_up(gaussians if framing is None else framing) if up is None else up,
        bounds=None if empty else _box(gaussians.means, 0.0),
        bulk=None if empty else _box(gaussians.means, 1.0),
        sizes=None if empty else _distribution(sizes, np.log10(np.maximum(sizes, 1e-30))),
        opacities=None if empty else _distribution(gaussians.opacities, gaussians.opacities, (0.0, 1.0)),
        bytes_in_memory=bytes_in_memory(gaussians),
    )


def _box(means: Array, percent: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    low, high = np.percentile(means.astype(np.float64), [percent, 100 - percent], axis=0)
    return tuple(low.tolist()), tuple(high.tolist())


def _distribution(values: Array, shown: Array, span: tuple[float, float] | None = None) -> Distribution:
    """Percentiles of `values`, histogram of `shown`: over `span`, or over the bulk with the rest in the end bins."""
    shown = shown.astype(np.float64)  # bins of nearly equal float32 would have no width
    low, high = np.percentile(shown, [0.1, 99.9]).tolist() if span is None else span
    high = max(high, low + 1e-3)  # all equal
    counts, _ = np.histogram(np.clip(shown.astype(np.float64), low, high), HISTOGRAM_BINS, (low, high))
    percentiles = dict(zip(PERCENTILES, np.percentile(values, PERCENTILES).tolist(), strict=True))
    return Distribution(percentiles, tuple(counts.tolist()), low, high)
