"""The frames of one client: the methods it chose on the stream of its scene, and what each side of the page shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.base import Image
from hushsplat.methods import LEARNED, METHODS, adjusted, configure, drawn_by, weights_of
from hushsplat.spec.views import Scale, view_picture
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import MethodLike, Stream, StreamFrame
from hushsplat.types.camera import Camera
from hushsplat.types.image import Image as PlainImage
from hushsplat.types.image import Pixels
from hushsplat.types.observation import Observation
from hushsplat.types.options import RenderOptions
from hushsplat.viewer.backdrop import behind, needs_alpha
from hushsplat.viewer.protocol import PICTURE, Draw, Side
from hushsplat.viewer.scene_entry import SceneEntry

BAND_PX = 64  # rows of an exact picture per turn: a whole one would block all other clients for seconds
PIECE_PX = 1 << 20  # pixels times samples of other work per turn
MAX_SAMPLED_PX = 1 << 25  # pixels times samples of one frame: 64 samples of 800×532, 8 of 2560×1600
SAME_EYE = 0.02  # radii of the scene that the eye moves before levels of detail are chosen again
DEPTH_PERCENTILE = 40  # ours: a window in a wall does not count
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
        depth: in the middle of the picture, world units; None where nothing is.
    """

    camera: Camera
    sides: tuple[Side, ...]
    pictures: tuple[Pixels, ...]
    scales: tuple[Scale | None, ...]
    passes_ms: dict[str, float]
    depth: float | None = None


class FrameRenderer:
    """Renders one scene for one client, frame after frame; it owns the states of the client's denoisers."""

    def __init__(self, entry: SceneEntry, weights: DenoiserWeights | None, options: RenderOptions) -> None:
        self._weights = weights
        self._entry = entry
        self._has_payload = entry.scene.has_payload
        self._chosen: tuple[Array, float, float] | None = None  # what the levels of detail were chosen by
        self._stream = Stream(entry.engine, entry.scene, [], options=options, band_px=BAND_PX, piece_px=PIECE_PX)
        self._options = options
        self._draw: Draw | None = None
        self.environment: Float32[Array, "h w 3"] | None = None  # behind the scene, if the page asks for it

    def render(
        self, camera: Camera, draw: Draw, number: int, turns: bool = False, spacing_px: float = 0.0
    ) -> Iterator[RenderedFrame | None]:
        """The next frame of every side, all from the same noise.

        Gives None between the pieces of a slow picture, so that other clients can take turns, and the frame at last.
        A caller that does not want the frame any more drops the iterator.

        Args:
            camera: to draw from; another picture size keeps a short history.
            draw: methods and settings; a method that stays keeps its state.
            number: of the frame; it seeds the noise.
            turns: give turns in every frame, not only between the bands of `exact`.
            spacing_px: of the Gaussians in the picture, where the scene has levels of detail; 0: the scene itself.
        """
        self._choose_levels(camera, spacing_px)
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
                shown = [self._shown(images[side.method], frame, side, draw) for side in sides]
                pictures, scales = tuple(color for color, _ in shown), tuple(scale for _, scale in shown)
                depth = middle_depth(frame.observation, images.values())
                yield RenderedFrame(camera, sides, pictures, scales, frame.passes_ms, depth)
            elif takes_turns:
                yield None

    def _choose_levels(self, camera: Camera, spacing_px: float) -> None:
        """Change what is drawn only when the eye has moved a little: then the set of `hush` starts anew."""
        if spacing_px <= 0:
            self._stream.scene, self._chosen = self._entry.scene, None
            return
        chosen = (camera.position, camera.fy, spacing_px)
        before = self._chosen
        if before is not None and before[1:] == chosen[1:]:
            moved = float(np.linalg.norm(before[0] - chosen[0]))
            if moved < SAME_EYE * self._entry.radius:
                return
        self._stream.scene, self._chosen = self._entry.scene_at(camera, spacing_px), chosen

    def _drawn_by(self, method: str) -> str:
        return drawn_by(method, self._has_payload).name

    def _choose(self, names: list[str], draw: Draw) -> None:
        if draw == self._draw:
            return
        background = self._options.background
        if needs_alpha(draw):
            background = (0.0, 0.0, 0.0)  # what is behind is added with the alpha
        elif isinstance(draw.background, tuple):
            background = draw.background[0]
        self._stream.options = replace(self._options, background=background)
        self._stream.replace_methods([self._configured(name, draw) for name in names])
        self._draw = draw

    def _shown(self, image: Image, frame: StreamFrame, side: Side, draw: Draw) -> tuple[Pixels, Scale | None]:
        if side.show != PICTURE:
            view = view_picture(image.numpy(), side.show, draw.settings)
            return view.color, view.scale
        if not needs_alpha(draw):
            return image.pixels(), None
        drawn = image.numpy()
        alpha = frame.observation.numpy().alpha if drawn.alpha is None else drawn.alpha
        up = self._entry.up
        return behind(drawn.color, alpha, frame.camera, up, draw.background, self.environment), None

    def _configured(self, name: str, draw: Draw) -> MethodLike:
        if name not in LEARNED:
            return name
        weights = weights_of(self._weights, name)
        if draw.gamma is not None:
            weights = with_gamma(weights, draw.gamma)
        return configure(name, weights=weights, settings=adjusted(name, draw.settings))


def bytes_per_px(draw: Draw, has_payload: bool) -> int:
    """What a client takes for each pixel of its frames: states before and after a frame, and pictures."""
    methods = {drawn_by(side.method, has_payload).name for side in draw.sides}
    states = sum(4 * layout.floats for name in methods if (layout := METHODS[name].layout) is not None)
    views = VIEW_BYTES if any(side.show != PICTURE for side in draw.sides) else 0
    return 2 * states + FRAME_BYTES + len(draw.sides) * PICTURE_BYTES * (1 + KEPT_PICTURES) + views


def middle_depth(observation: Any, images: Iterable[Image]) -> float | None:
    """The depth in the middle of a frame, by what of it is here and knows its depth."""
    known = [one for one in (*images, observation) if isinstance(one, (PlainImage, Observation))]
    depth, alpha = next(((one.depth, one.alpha) for one in known if one.depth is not None), (None, None))
    if depth is None or alpha is None:
        return None
    height, width = depth.shape
    middle = (slice(height // 4, -(height // 4) or None, 4), slice(width // 4, -(width // 4) or None, 4))
    hits = depth[middle][alpha[middle] > 0.5]
    return float(np.percentile(hits, DEPTH_PERCENTILE)) if len(hits) else None


def with_gamma(weights: DenoiserWeights, gamma: float) -> DenoiserWeights:
    """The same weights with another scalar in the gate."""
    return DenoiserWeights({**weights.tensors, "gate.gamma": np.array(gamma, dtype=np.float32)})
