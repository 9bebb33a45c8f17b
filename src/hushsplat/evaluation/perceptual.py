"""Metrics that need more than numpy: LPIPS (PyTorch and weights) and ColorVideoVDP (the package cvvdp)."""

from __future__ import annotations

import importlib.util
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

from jaxtyping import UInt8
from numpy import ndarray as Array

DISPLAY = "standard_4k"  # of ColorVideoVDP, and its default: a 30" screen of 200 cd/m² in an office, 75 px per degree
LPIPS = {"lpips": True, "lpips_3dgs": False}  # metric: pictures are rescaled to -1..1 first, as its authors do

Pictures = UInt8[Array, "n h w 3"]


def lpips_problem(weights: Path | None) -> str | None:
    """What is missing for LPIPS, and how to get it; None if it can run."""
    if importlib.util.find_spec("torch") is None:
        return "lpips needs PyTorch: pip install 'hushsplat[learn]'"
    if weights is None:
        return "lpips needs VGG16 with the heads of LPIPS v0.1: give --lpips-weights FILE.npz (docs/evaluation.md)"
    if not weights.is_file():
        return f"lpips needs its weights, and {weights} is no file: check --lpips-weights"
    return None


def cvvdp_problem() -> str | None:
    """What is missing for ColorVideoVDP, and how to get it; None if it can run."""
    if importlib.util.find_spec("pycvvdp") is None:
        return "cvvdp needs the package of that name: pip install cvvdp"
    return None


def lpips_of(metric: str, shown: Pictures, expected: Pictures, weights: Path) -> list[float]:
    """LPIPS(VGG), of LPIPS, of each pair, one after the other on one thread."""
    from hushsplat.engines.torch.lpips import distances

    return distances(_lpips(weights, LPIPS[metric]), shown, expected)


def cvvdp_of(shown: Pictures, expected: Pictures, fps: float, display: str = DISPLAY) -> float:
    """Quality of a video by ColorVideoVDP, in JOD: 10 is as good as the expected one, 75 of 100 people see 1 less."""
    from hushsplat.engines.torch.lpips import one_thread

    with one_thread():
        quality, _ = _cvvdp(display).predict(shown, expected, dim_order="FHWC", frames_per_second=fps)
    return float(quality)


@lru_cache(maxsize=1)
def _lpips(weights: Path, rescale: bool) -> Any:
    from hushsplat.engines.torch.lpips import load_lpips

    return load_lpips(weights, rescale)


@lru_cache(maxsize=1)
def _cvvdp(display: str) -> Any:
    """Made once: it takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a package that we did not write, about parts that we do not use
        import pycvvdp

        return pycvvdp.cvvdp(display_name=display, heatmap="none", quiet=True)
