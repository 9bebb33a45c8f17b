"""One call for all renderers, by the names that every command, table and page uses."""

from __future__ import annotations

from typing import SupportsIndex

from hushsplat.engines.cpu.decode import decode
from hushsplat.engines.cpu.ordered import render_ordered
from hushsplat.engines.cpu.prepare import RenderOptions
from hushsplat.engines.cpu.sorted import render_sorted
from hushsplat.engines.cpu.stochastic import sample_visibility
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.picture import Picture

METHODS = ("raw", "exact", "reference")


def render(
    gaussians: Gaussians,
    camera: Camera,
    method: str = "reference",
    *,
    samples: int = 1,
    seed: SupportsIndex = 0,
    frame: SupportsIndex = 0,
    sampler: str = "independent",
    options: RenderOptions | None = None,
) -> Picture:
    """Draw the scene: `reference` (sorted), `exact` (per-pixel order) or `raw` (stochastic, `samples` per pixel).

    samples, seed, frame and sampler only matter to `raw`.
    """
    if method == "reference":
        return render_sorted(gaussians, camera, options)
    if method == "exact":
        return render_ordered(gaussians, camera, options)
    if method == "raw":
        visibility = sample_visibility(
            gaussians, camera, samples=samples, seed=seed, frame=frame, sampler=sampler, options=options
        )
        observation = decode(visibility, gaussians, camera, options)
        return Picture(observation.color, observation.alpha, observation.depth)
    raise RenderError(f"method must be one of {', '.join(METHODS)}, got '{method}'.")
