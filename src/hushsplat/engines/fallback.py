"""`auto` on a machine with a GPU: draws there until it cannot, and from then on with the cpu engine.

A lost device, too little memory, a picture too large, a driver that refuses a feature: all are an EngineError. What was
under way is drawn again on the CPU, also pictures that have not been read back; denoisers and active sets start anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hushsplat.engines.base import Engine, GaussianScene
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.state import check_state_of
from hushsplat.types.camera import Camera
from hushsplat.types.errors import EngineError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import Noise, RenderOptions

T = TypeVar("T")


def warn(message: str) -> None:
    """The note as a warning of Python."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)


@dataclass(frozen=True, eq=False)
class FallbackScene(GaussianScene):
    """A scene on the engine that draws; on the cpu engine from the first time that it is needed there."""

    held: dict[str, Any] = field(repr=False)  # by the name of the engine
    options: RenderOptions | None = None

    @property
    def bytes(self) -> int:
        """Memory of the engines for it."""
        return sum(scene.bytes for scene in self.held.values())

    def on(self, engine: Engine) -> Any:
        """The scene of that engine; that of the one before is let go."""
        if engine.name not in self.held:
            uploaded = engine.upload(self.gaussians, self.options)
            self.held.clear()
            self.held[engine.name] = uploaded
        return self.held[engine.name]


class Handle:
    """What an engine has made; if that engine has failed since, it is made again."""

    def __init__(self, owner: FallbackEngine, native: Any, again: Callable[[], Any]) -> None:
        self._owner, self._native, self.again, self._made_on = owner, native, again, owner.active

    def now(self) -> Any:
        """Of the engine that draws now."""
        if self._made_on is not self._owner.active:
            self._native, self._made_on = self.again(), self._owner.active
        return self._native

    def numpy(self) -> Any:
        """Read back."""
        return self._owner.tried(lambda: self.now().numpy())

    def pixels(self) -> Any:
        """Of an image: the colours to show."""
        return self._owner.tried(lambda: self.now().pixels())

    def image(self) -> Handle:
        """Of an observation: the noisy frame itself as a picture."""
        again = self.again
        return Handle(self._owner, self._owner.tried(lambda: self.now().image()), lambda: again().image())

    @property
    def neural_view(self) -> Any:
        """Of an observation."""
        return self._owner.tried(lambda: self.now().neural_view)


class StateHandle(Handle):
    """A state; it is lost with its engine."""

    def __init__(self, owner: FallbackEngine, native: Any) -> None:
        super().__init__(owner, native, lambda: None)
        self.method, self.camera = native.method, native.camera


class FallbackEngine:
    """A GPU engine, and the cpu engine in reserve."""

    def __init__(self, gpu: Engine, cpu: Engine, note: Callable[[str], None] = warn) -> None:
        """Draw on the first.

        Args:
            gpu: that draws.
            cpu: that draws when the other one has failed.
            note: takes the sentence that says so.
        """
        self.active, self._cpu, self.note = gpu, cpu, note

    @property
    def name(self) -> str:
        """Of the engine that draws."""
        return self.active.name

    @property
    def adapter(self) -> Any:
        """The GPU that draws; None on the CPU."""
        return getattr(self.active, "adapter", None)

    def tried(self, call: Callable[[], T]) -> T:
        """What the call gives; if the GPU fails, what it gives on the CPU."""
        try:
            return call()
        except EngineError as error:
            if self.active is self._cpu:
                raise
            self.active = self._cpu
            self.note(f"{str(error).partition('; ')[0].rstrip('.')}: drawing on the CPU from now on.")
        return call()

    def upload(self, gaussians: Gaussians, options: RenderOptions | None = None) -> FallbackScene:
        """Prepare Gaussians for drawing."""
        scene = FallbackScene(gaussians, {}, options)
        self.tried(lambda: scene.on(self.active))
        return scene

    def with_payload(self, scene: FallbackScene, payload: Any) -> FallbackScene:
        """The same scene with another payload."""

        def made() -> dict[str, Any]:
            return {self.name: self.active.with_payload(scene.on(self.active), payload)}

        held = self.tried(made)
        return replace(scene, gaussians=replace(scene.gaussians, payload=payload), held=held)

    def sample(self, scene: FallbackScene, camera: Camera, noise: Noise, options: RenderOptions) -> Handle:
        """Stochastic visibility."""
        return self._made(lambda: self.active.sample(scene.on(self.active), camera, noise, options))

    def decode(self, visibility: Any, scene: FallbackScene, camera: Camera, options: RenderOptions) -> Handle:
        """Colour, depth, alpha and neural view of a visibility sample."""
        again = _again(visibility)
        native = self.tried(lambda: self.active.decode(_now(visibility), scene.on(self.active), camera, options))
        return Handle(self, native, lambda: self.active.decode(again(), scene.on(self.active), camera, options))

    def denoise(
        self,
        denoiser: ConfiguredDenoiser,
        observation: Any,
        camera: Camera,
        state: Any,
        options: RenderOptions,
        with_views: bool = False,
    ) -> tuple[Handle, StateHandle]:
        """One frame of the stream, denoised."""
        check_state_of(state, denoiser.name)

        def step(seen: Any, before: Any) -> tuple[Any, Any]:
            return self.active.denoise(denoiser, seen, camera, before, options, with_views)

        image, after = self.tried(lambda: step(_now(observation), _now(state)))
        again = _again(observation)
        return Handle(self, image, lambda: step(again(), None)[0]), StateHandle(self, after)

    def draw_active_set(
        self,
        denoiser: ConfiguredDenoiser,
        scene: FallbackScene,
        camera: Camera,
        noise: Noise,
        state: Any,
        options: RenderOptions,
    ) -> tuple[Handle, StateHandle]:
        """One frame of `hush` or `sorted`."""
        check_state_of(state, denoiser.name)

        def step(before: Any) -> tuple[Any, Any]:
            return self.active.draw_active_set(denoiser, scene.on(self.active), camera, noise, before, options)

        image, after = self.tried(lambda: step(_now(state)))
        return Handle(self, image, lambda: step(None)[0]), StateHandle(self, after)

    def resize(self, state: Any, camera: Camera) -> StateHandle | None:
        """The state for a picture of another size; None if the method starts anew."""

        def resized() -> Any:
            before = _now(state)
            return None if before is None else self.active.resize(before, camera)

        found = self.tried(resized)
        return None if found is None else StateHandle(self, found)

    def render(
        self, scene: FallbackScene, camera: Camera, method: str, options: RenderOptions, with_depth: bool = True
    ) -> Any:
        """A blended picture; what the GPU does not blend is drawn on the CPU."""
        if method not in getattr(self.active, "blended", (method,)):
            if self._cpu.name not in scene.held:
                scene.held[self._cpu.name] = self._cpu.upload(scene.gaussians, scene.options)
            return self._cpu.render(scene.held[self._cpu.name], camera, method, options, with_depth)
        return self._made(lambda: self.active.render(scene.on(self.active), camera, method, options, with_depth))

    def finish(self) -> None:
        """Block until all work is done."""
        self.tried(lambda: self.active.finish())

    def release_memory(self) -> None:
        """Give pooled buffers back."""
        self.tried(lambda: self.active.release_memory())

    def _made(self, call: Callable[[], Any]) -> Handle:
        return Handle(self, self.tried(call), call)


def _now(given: Any) -> Any:
    """Of the engine that draws now; plain arrays and None are as they are."""
    return given.now() if isinstance(given, Handle) else given


def _again(given: Any) -> Callable[[], Any]:
    return given.again if isinstance(given, Handle) else lambda: given
