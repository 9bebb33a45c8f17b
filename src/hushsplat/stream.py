"""The frame loop: sample, decode, denoise, keep the state. Everything that draws frames draws them by this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from hushsplat.engines.base import Engine, Scene
from hushsplat.methods import Denoiser, EngineDenoiser, configure, drawn_by
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.state import ACTIVE_SET
from hushsplat.types.camera import Camera
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation
from hushsplat.types.options import Noise, RenderOptions

MethodLike = str | ConfiguredDenoiser | Denoiser


@dataclass(frozen=True)
class StreamFrame:
    """What one step of the stream has made.

    Attributes:
        number: of the frame; it seeds the noise.
        camera: it was drawn from.
        images: one handle for each method, in their order.
        observation: the noisy frame, None if no method took one.
        passes_ms: wall time of each pass, in the order in which they ran.
    """

    number: int
    camera: Camera
    images: tuple[Any, ...]
    observation: Any
    passes_ms: dict[str, float] = field(default_factory=dict)


class Raw:
    """The stream as it is, as a denoiser that keeps nothing."""

    def step(self, observation: Any, camera: Camera, state: Any, with_views: bool = False) -> tuple[Any, None]:
        """The frame's own colour, alpha and depth."""
        return observation.image(), None


@dataclass(frozen=True)
class _OnActiveSet:
    """A method that finds and blends the Gaussians that matter, and takes no noisy frame."""

    configured: ConfiguredDenoiser


class Stream:
    """One scene on one engine, seen frame by frame; all streaming methods take the same noisy frames."""

    def __init__(
        self,
        engine: Engine,
        scene: Scene | None,
        methods: Sequence[MethodLike],
        *,
        noise: Noise | None = None,
        options: RenderOptions | None = None,
        band_px: int = 0,
        piece_px: int = 0,
    ) -> None:
        """Choose the methods.

        Args:
            engine: that executes.
            scene: uploaded to it; None for a stream that is only fed.
            methods: names, configured denoisers, or anything with a `step` like a denoiser's. A learned denoiser whose
                payload is missing in the scene draws it zero-shot.
            noise: of the stream; its `frame` numbers the first frame.
            options: background, near plane, threads.
            band_px: rows of an `exact` picture per part of `parts`, 0: all of them.
            piece_px: pixels times samples of a noisy frame or of a `reference` picture per part of `parts`, 0: all. The
                frame is the same but for rounding.
        """
        self.engine, self.scene = engine, scene
        self.noise, self.options = noise or Noise(), options or RenderOptions()
        self.band_px, self.piece_px = band_px, piece_px
        self.number = self.noise.frame  # of the next frame
        self._methods = [self._chosen(method) for method in methods]
        self.states: list[Any] = [None] * len(self._methods)

    def step(self, camera: Camera, *, with_views: bool | Sequence[bool] = False) -> StreamFrame:
        """The next frame of every method.

        Args:
            camera: to draw from; another picture size keeps a short history.
            with_views: also give the intermediate results, of all methods or of each.
        """
        return _last(self.parts(camera, with_views=with_views))

    def parts(self, camera: Camera, *, with_views: bool | Sequence[bool] = False) -> Iterator[StreamFrame | None]:
        """The same in parts: None after each piece of work, so that others can take turns, and the frame at last."""
        passes: dict[str, float] = {}
        observation = None
        if any(not isinstance(method, (str, _OnActiveSet)) for method in self._methods):
            for piece in self._observe_in_pieces(camera, passes):
                observation = piece
                yield None
        yield from self._draw(camera, observation, passes, with_views)

    def observe(self, camera: Camera, passes: dict[str, float] | None = None) -> Any:
        """The next noisy frame; the streaming methods have not seen it yet."""
        passes = {} if passes is None else passes
        noise = replace(self.noise, frame=self.number)
        with _timed(passes, "sample"):
            self.visibility = self.engine.sample(self.scene, camera, noise, self.options)
        with _timed(passes, "decode"):
            return self.engine.decode(self.visibility, self.scene, camera, self.options)

    def _observe_in_pieces(self, camera: Camera, passes: dict[str, float]) -> Iterator[Any]:
        """The next noisy frame, at last; None after each piece of a large one before."""
        samples, pixels = self.noise.samples, camera.width * camera.height
        if not 0 < self.piece_px < samples * pixels:
            yield self.observe(camera, passes)
            return
        rows = min(camera.height, max(1, self.piece_px // camera.width))
        most = max(1, self.piece_px // (rows * camera.width))
        at_once = max(count for count in range(1, samples + 1) if samples % count == 0 and count <= most)
        bands: list[Observation] = []
        for top in range(0, camera.height, rows):
            band = rows_of(camera, slice(top, min(top + rows, camera.height)))
            for first in range(0, samples, at_once):
                # Samples follow each other over all frames: so many frames of fewer samples are the same ones.
                noise = replace(self.noise, samples=at_once, frame=(self.number * samples + first) // at_once)
                with _timed(passes, "sample"):
                    visibility = self.engine.sample(self.scene, band, noise, self.options)
                with _timed(passes, "decode"):
                    part = self.engine.decode(visibility, self.scene, band, self.options).numpy()
                    if first == 0:
                        bands.append(part)
                    else:
                        bands[-1] = Observation.mean(bands[-1], part, first, at_once)
                yield None
        yield Observation.stacked(bands)

    def feed(self, observation: Any, camera: Camera, *, with_views: bool | Sequence[bool] = False) -> StreamFrame:
        """A step with a noisy frame that was drawn or recorded elsewhere."""
        return _last(self._draw(camera, observation, {}, with_views))

    def restart(self) -> None:
        """Drop all history, as after a cut."""
        self.states = [None] * len(self._methods)

    def replace_methods(self, methods: Sequence[MethodLike]) -> None:
        """Draw with these methods from now on; a denoiser whose name stays keeps its state, whatever its settings."""
        kept = {_name(method): state for method, state in zip(self._methods, self.states, strict=True)}
        self._methods = [self._chosen(method) for method in methods]
        self.states = [kept.get(_name(method)) for method in self._methods]

    def _draw(
        self, camera: Camera, observation: Any, passes: dict[str, float], with_views: bool | Sequence[bool]
    ) -> Iterator[StreamFrame | None]:
        wanted = [with_views] * len(self._methods) if isinstance(with_views, bool) else list(with_views)
        images: list[Any] = []
        for index, method in enumerate(self._methods):
            if isinstance(method, str):
                drawn = None
                for drawn in self._blend(camera, method, passes):
                    if drawn is None:
                        yield None
                images.append(drawn)
                continue
            state = self._resized(self.states[index], camera)
            with _timed(passes, _name(method)):
                if isinstance(method, _OnActiveSet):
                    noise = replace(self.noise, frame=self.number)
                    image, self.states[index] = self.engine.draw_active_set(
                        method.configured, self.scene, camera, noise, state, self.options
                    )
                else:
                    image, self.states[index] = method.step(observation, camera, state, wanted[index])
            images.append(image)
            yield None
        frame = StreamFrame(self.number, camera, tuple(images), observation, passes)
        self.number += 1
        yield frame

    def _blend(self, camera: Camera, method: str, passes: dict[str, float]) -> Iterator[Any]:
        """A blended picture, band by band."""
        rows_at_once = self.band_px if method == "exact" else -(-self.piece_px // camera.width)
        if not 0 < rows_at_once < camera.height:
            with _timed(passes, method):
                image = self.engine.render(self.scene, camera, method, self.options)
            yield image
            return
        bands: list[Image] = []
        for top in range(0, camera.height, rows_at_once):
            rows = slice(top, min(top + rows_at_once, camera.height))
            with _timed(passes, method):
                bands.append(self.engine.render(self.scene, rows_of(camera, rows), method, self.options).numpy())
            yield None
        yield Image.stacked(bands)

    def _resized(self, state: Any, camera: Camera) -> Any:
        before = getattr(state, "camera", None)
        if before is None or (before.width, before.height) == (camera.width, camera.height):
            return state
        return self.engine.resize(state, camera)

    def _chosen(self, method: MethodLike) -> str | Denoiser | _OnActiveSet:
        """Blended methods stay names, what takes noisy frames becomes a denoiser, an active set draws by itself."""
        if isinstance(method, ConfiguredDenoiser):
            if method.layout is ACTIVE_SET:
                return _OnActiveSet(method)
            return EngineDenoiser(method, self.engine, self.options)
        if not isinstance(method, str):
            return method
        found = drawn_by(method, self.scene is not None and self.scene.has_payload)
        if found.kind == "blended":
            return found.name
        if found.kind == "active":
            return _OnActiveSet(configure(found.name))
        if not found.is_denoiser:
            return Raw()
        return EngineDenoiser(configure(found.name), self.engine, self.options)


def rows_of(camera: Camera, rows: slice) -> Camera:
    """The camera that sees only these rows of the picture."""
    return replace(camera, height=rows.stop - rows.start, cy=camera.cy - rows.start)


def _last(parts: Iterator[StreamFrame | None]) -> StreamFrame:
    (frame,) = [part for part in parts if part is not None]
    return frame


def _name(method: str | Denoiser | _OnActiveSet) -> str:
    """For timings, and to find its state; the raw stream takes no time worth telling and keeps nothing."""
    if isinstance(method, str):
        return method
    if isinstance(method, (EngineDenoiser, _OnActiveSet)):
        return method.configured.name
    return "" if isinstance(method, Raw) else type(method).__name__


@contextmanager
def _timed(passes: dict[str, float], name: str) -> Iterator[None]:
    """Add the wall time of the block under this name; an empty name is not told."""
    start = perf_counter()
    yield
    if name:
        passes[name] = round(passes.get(name, 0.0) + 1000 * (perf_counter() - start), 2)
