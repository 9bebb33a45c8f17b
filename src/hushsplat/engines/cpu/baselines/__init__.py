"""What the denoiser is compared with, on the identical stream and with its signature."""

from collections.abc import Callable
from typing import Any

from hushsplat.engines.cpu.baselines import mean, st_taa, svgf, taa

BASELINES: dict[str, Callable[..., tuple[Any, Any]]] = {  # step(observation, camera, state, *, threads) -> frame, state
    "mean": mean.step,
    "st-taa": st_taa.step,
    "taa": taa.step,
    "svgf": svgf.step,
    "svgf-tuned": svgf.step_tuned,
}

__all__ = ["BASELINES", "mean", "st_taa", "svgf", "taa"]
