"""The frames of one client: the methods it chose on the stream of its scene, and what each side of the page shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushsplat.engines.base import Image
from hushsplat.methods import LEARNED, METHODS, adjusted, configure, drawn_by
from hushsplat.spec.views import Scale, view_picture
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import MethodLike, Stream
from hushsplat.types.camera import Camera
from hushsplat.types.image import Pixels
from hushsplat.types.options import RenderOptions
from hushsplat.viewer.protocol import PICTURE, Draw, Side
from hushsplat.viewer.scene_entry import SceneEntry

BAND_PX = 64  # rows of an exact picture per turn: a whole one would block all other clients for seconds
PIECE_PX = 1 << 20  # pixels times samples of other work per turn
MAX_SAMPLED_PX = 1 << 25  # pixels times samples of one frame: 64 samples of 800×532, 8 of 2560×1600
PICTURE_BYTES = 12  # of a pixel
KEPT_PICTURES = 3  # of a client: the last one, one that is being encoded and one that waits
FRAME_BYTES, VIEW_BYTES = 36, 120  # of a pixel while a frame is drawn: the noisy frame; all views


@dataclass(frozen=True)
class RenderedFrame:
    """A frame before it is encoded.

    Attributes:
        camera: it was drawn from.
        sides: what each side shows, and the method that drew it.
        pictures: RGB of each side.
        scales: what the colours of each side mean; None where they are colours of the scene.
        passes_ms: wall time of each pass, in the order in which they ran.
    """

    camera: Camera
    sides: tuple[Side, ...]
    pictures: tuple[Pixels, ...]
    scales: tuple[Scale | None, ...]
    passes_ms: dict[str, float]


class FrameRenderer:
    """Renders one scene for one client, frame after frame; it owns the states of the client's denoisers."""

    def __init__(self, entry: SceneEntry, weights: DenoiserWeights, options: RenderOptions) -> None:
        self._weights = weights
        self._has_payload = entry.scene.has_payload
        self._stream = Stream(entry.engine, entry.scene, [], options=options, band_px=BAND_PX, piece_px=PIECE_PX)
        self._draw: Draw | None = None

    def render(self, camera: Camera, draw: Draw, number: int, turns: bool = False) -> Iterator[RenderedFrame | None]:
        """The next frame of every side, all from the same noise.

        Gives None between the pieces of a slow picture, so that other clients can take turns, and the frame at last.
        A caller that does not want the frame any more drops the iterator.

        Args:
            camera: to draw from; another picture size keeps a short history.
            draw: methods and settings; a method that stays keeps its state.
            number: of the frame; it seeds the noise.
            turns: give turns in every frame, not only between the bands of `exact`.
        """
        sides = tuple(Side(self._drawn_by(side.method), side.show) for side in draw.sides)
        names = list(dict.fromkeys(side.method for side in sides))
        self._choose(names, draw)
        pixels = camera.width * camera.height
        samples = max(1, min(draw.samples, MAX_SAMPLED_PX // pixels))
        self._stream.noise = replace(self._stream.noise, samples=samples)
        self._stream.number = number
        with_views = [any(side.method == name and side.show != PICTURE for side in sides) for name in names]
        # Other frames are drawn in one go: taking turns within them would make the pictures of all clients older.
        takes_turns = turns or "exact" in names or samples * pixels > PIECE_PX
        for frame in self._stream.parts(camera, with_views=with_views):
            if frame is not None:
                images = dict(zip(names, frame.images, strict=True))
                shown = [_shown(images[side.method], side, draw) for side in sides]
                pictures, scales = tuple(color for color, _ in shown), tuple(scale for _, scale in shown)
                yield RenderedFrame(camera, sides, pictures, scales, frame.passes_ms)
            elif takes_turns:
                yield None

    def _drawn_by(self, method: str) -> str:
        return drawn_by(method, self._has_payload).name

    def _choose(self, names: list[str], draw: Draw) -> None:
        if draw == self._draw:
            return
        self._stream.replace_methods([self._configured(name, draw) for name in names])
        self._draw = draw

    def _configured(self, name: str, draw: Draw) -> MethodLike:
        if name not in LEARNED:
            return name
        weights = self._weights if draw.gamma is None else with_gamma(self._weights, draw.gamma)
        return configure(name, weights=weights, settings=adjusted(name, draw.settings))


def bytes_per_px(draw: Draw, has_payload: bool) -> int:
    """What a client takes for each pixel of its frames: states before and after a frame, and pictures."""
    methods = {drawn_by(side.method, has_payload).name for side in draw.sides}
    states = sum(4 * layout.floats for name in methods if (layout := METHODS[name].layout) is not None)
    views = VIEW_BYTES if any(side.show != PICTURE for side in draw.sides) else 0
    return 2 * states + FRAME_BYTES + len(draw.sides) * PICTURE_BYTES * (1 + KEPT_PICTURES) + views


def with_gamma(weights: DenoiserWeights, gamma: float) -> DenoiserWeights:
    """The same weights with another scalar in the gate."""
    return DenoiserWeights({**weights.tensors, "gate.gamma": np.array(gamma, dtype=np.float32)})


def _shown(image: Image, side: Side, draw: Draw) -> tuple[Pixels, Scale | None]:
    if side.show == PICTURE:
        return image.pixels(), None
    view = view_picture(image.numpy(), side.show, draw.settings)
    return view.color, view.scale
