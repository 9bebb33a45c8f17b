"""One client's pictures: the denoisers it chose, what they remember, and how long each pass took."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.engines.cpu.arrays import empty_float32
from hushsplat.engines.cpu.denoise_names import LEARNED, Denoiser, view_picture
from hushsplat.engines.cpu.render_names import RenderOptions, decode, render, sample_visibility
from hushsplat.io.images import to_bytes
from hushsplat.spec.views import Scale
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import BLENDED, Raw, denoiser
from hushsplat.types.camera import Camera
from hushsplat.types.errors import ViewError
from hushsplat.types.image import Image
from hushsplat.types.gaussians import Gaussians
from hushsplat.viewer.protocol import PICTURE, Draw, Side
from hushsplat.viewer.resize import resized_state

PROBE_PX, PROBE_SAMPLES = 5, 32  # what a probe looks at: a small square, many times
BAND_PX = 64  # rows of an exact picture that are drawn at a time: a whole one would keep everybody waiting for seconds
MIDDLE_PX = 48  # a side of the small picture that tells how far things are


@dataclass(frozen=True)
class Drawn:
    """A frame, before it is encoded."""

    camera: Camera
    pictures: tuple[Float32[Array, "h w 3"], ...]  # one for each side
    scales: tuple[Scale | None, ...]  # what the colours of each side mean, if they are no colours of the scene
    passes_ms: dict[str, float]  # in the order in which they ran


class Painter:
    """Draws the frames of one client, one after the other; what it remembers is gone when it is."""

    def __init__(self, weights: DenoiserWeights, options: RenderOptions) -> None:
        self._weights = weights
        self._options = options
        self._draw: Draw | None = None
        self._denoisers: dict[str, Denoiser] = {}
        self._states: dict[str, Any] = {}

    def forget(self) -> None:
        """Begin anew, as with another scene."""
        self._states.clear()

    def paint(self, scene: Gaussians, camera: Camera, draw: Draw, frame: int) -> Iterator[Drawn | None]:
        """The next frame of every side, all on the same noise.

        Gives None after each part of the work, so that others can take their turns in between, and the frame at last.
        Whoever does not want it any more just stops asking.
        """
        self._choose(draw, scene)
        passes: dict[str, float] = {}
        frames: dict[str, Image] = {}
        if self._denoisers:
            with _timed(passes, "sample"):
                seen = sample_visibility(scene, camera, samples=draw.samples, frame=frame, options=self._options)
            with _timed(passes, "decode"):
                observation = decode(seen, scene, camera, self._options)
        for name, method in self._denoisers.items():
            with_views = any(side.method == name and side.show != PICTURE for side in draw.sides)
            before = resized_state(self._states.get(name), camera)
            with _timed(passes, name if name != "raw" else ""):
                frames[name], self._states[name] = method.step(observation, camera, before, with_views)
        for name in {side.method: None for side in draw.sides if side.method in BLENDED}:
            picture = empty_float32(camera.height, camera.width, 3)
            band_px = BAND_PX if name == "exact" else camera.height
            for top in range(0, camera.height, band_px):
                band = slice(top, min(top + band_px, camera.height))
                with _timed(passes, name):
                    picture[band] = render(scene, rows_of(camera, band), name, options=self._options).color
                yield None
            frames[name] = Image(picture)
        shown = [_shown(frames[side.method], side, draw) for side in draw.sides]
        yield Drawn(camera, tuple(color for color, _ in shown), tuple(scale for _, scale in shown), passes)

    def _choose(self, draw: Draw, scene: Gaussians) -> None:
        """Make the denoisers of what is asked for; those that stay keep what they remember."""
        for side in draw.sides:
            if side.method == "hush" and scene.payload is None:
                raise ViewError("hush needs a scene with a payload, and this one has none; choose hush-zero-shot.")
        if draw == self._draw:
            return
        names = dict.fromkeys(side.method for side in draw.sides if side.method not in BLENDED)
        self._denoisers = {name: self._denoiser(name, draw) for name in names}
        self._states = {name: state for name, state in self._states.items() if name in names}
        self._draw = draw

    def _denoiser(self, name: str, draw: Draw) -> Denoiser:
        if name == "raw":
            return Raw()
        if name not in LEARNED:
            return denoiser(name, threads=self._options.threads)
        weights = self._weights if draw.gamma is None else with_gamma(self._weights, draw.gamma)
        return denoiser(name, weights=weights, config=draw.config, threads=self._options.threads)


def rows_of(camera: Camera, rows: slice) -> Camera:
    """The camera that sees only these rows of the picture."""
    return replace(camera, height=rows.stop - rows.start, cy=camera.cy - rows.start)


def with_gamma(weights: DenoiserWeights, gamma: float) -> DenoiserWeights:
    """The same weights with another scalar in the gate."""
    return DenoiserWeights({**weights.tensors, "gate.gamma": np.array(gamma, dtype=np.float32)})


def probe(scene: Gaussians, camera: Camera, x: float, y: float, options: RenderOptions) -> list[float] | None:
    """The world point of the surface at a place of the picture (shares of its sides), None where there is nothing."""
    column, row = x * camera.width, y * camera.height
    half = PROBE_PX / 2
    small = replace(
        camera, width=PROBE_PX, height=PROBE_PX, cx=camera.cx - column + half, cy=camera.cy - row + half
    )  # the same lens, but only the pixels about the place
    seen = sample_visibility(scene, small, samples=PROBE_SAMPLES, options=options)
    hits = seen.depth[seen.primitive_id >= 0]
    if len(hits) < seen.depth.size / 2:
        return None
    depth = float(np.median(hits))  # a mean would lie between two surfaces, on none of them
    ray = np.array([(column - camera.cx) / camera.fx, (row - camera.cy) / camera.fy, 1.0])
    return (camera.world_from_camera[:3, :3] @ (ray * depth) + camera.position).tolist()


def middle_depth(scene: Gaussians, camera: Camera, options: RenderOptions) -> float | None:
    """How far away most of what is in the middle of the picture is: a window in a wall does not count."""
    small = camera.resized(MIDDLE_PX, MIDDLE_PX)
    seen = sample_visibility(scene, small, samples=4, options=options)
    middle = (slice(None), *[slice(MIDDLE_PX // 4, -MIDDLE_PX // 4)] * 2)
    hits = seen.depth[middle][seen.primitive_id[middle] >= 0]
    return float(np.percentile(hits, 40)) if len(hits) else None


def _shown(frame: Image, side: Side, draw: Draw) -> tuple[Float32[Array, "h w 3"], Scale | None]:
    if side.show == PICTURE:
        return frame.color, None
    view = view_picture(frame, side.show, draw.config)
    return view.color, view.scale


def composed(pictures: tuple[UInt8[Array, "h w 3"], ...], divider: float) -> UInt8[Array, "h w 3"]:
    """One picture of all sides: the first up to the divider, the second from there on."""
    if len(pictures) == 1:
        return pictures[0]
    first, second = pictures
    column = round(divider * first.shape[1])
    whole = np.concatenate([first[:, :column], second[:, column:]], axis=1)
    if 0 < column < whole.shape[1]:
        whole[:, column] = 255
    return whole


def jpeg(color: Float32[Array, "h w 3"], sharp: bool) -> bytes:
    """A frame as it is sent: smaller while the camera moves."""
    target = io.BytesIO()
    quality, subsampling = (93, 0) if sharp else (82, 2)
    Pillow.fromarray(to_bytes(color)).save(target, "JPEG", quality=quality, subsampling=subsampling)
    return target.getvalue()


@contextmanager
def _timed(passes: dict[str, float], name: str) -> Iterator[None]:
    """How long the block took, under this name; an empty name takes no time worth telling."""
    start = perf_counter()
    yield
    if name:
        passes[name] = round(passes.get(name, 0.0) + 1000 * (perf_counter() - start), 2)
