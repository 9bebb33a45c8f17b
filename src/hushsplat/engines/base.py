"""The protocol that every engine follows, and the choice of one by name.

An engine executes: it owns its arrays, and what it gives out (Scene, Visibility, Observation, State, Image) are handles
with `.numpy()`. Nothing is read back unless somebody calls that. An engine is added by one line in ENGINES.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.types import observation as plain
from hushsplat.types.camera import Camera
from hushsplat.types.errors import EngineError, HushsplatError, RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image as PlainImage
from hushsplat.types.image import Pixels
from hushsplat.types.options import Noise, RenderOptions

ENGINES = {  # name: module that has its class as ENGINE
    "cpu": "hushsplat.engines.cpu.engine",
    "torch": "hushsplat.engines.torch.engine",
    "gpu": "hushsplat.engines.webgpu.engine",
}
AUTO = "auto"  # gpu where there is one, else cpu


@runtime_checkable
class Scene(Protocol):
    """Gaussians as an engine holds them; made by `upload`, owned by whoever called it."""

    @property
    def count(self) -> int:
        """Number of Gaussians."""

    @property
    def has_payload(self) -> bool:
        """Whether its observations have a neural view."""

    @property
    def bytes(self) -> int:
        """Memory of the engine for it, beside the arrays of the Gaussians."""


@dataclass(frozen=True, eq=False)
class GaussianScene:
    """What the scenes of all our engines have: the Gaussians themselves."""

    gaussians: Gaussians = field(repr=False)

    @property
    def count(self) -> int:
        """Number of Gaussians."""
        return len(self.gaussians)

    @property
    def has_payload(self) -> bool:
        """Whether its observations have a neural view."""
        return self.gaussians.payload is not None


@runtime_checkable
class Visibility(Protocol):
    """Who is seen in each pixel."""

    def numpy(self) -> plain.Visibility:
        """Read back."""


@runtime_checkable
class Observation(Protocol):
    """One noisy frame."""

    @property
    def neural_view(self) -> Any:
        """V0..V3, None for a scene without payload."""

    def image(self) -> Image:
        """The noisy frame itself as a picture."""

    def numpy(self) -> plain.Observation:
        """Read back."""


@runtime_checkable
class State(Protocol):
    """What a denoiser keeps; `method` names the one it belongs to."""

    @property
    def method(self) -> str:
        """Name of the denoiser."""

    @property
    def camera(self) -> Camera:
        """Of the frame it was made by."""

    def numpy(self) -> Any:
        """Read back."""


@runtime_checkable
class Image(Protocol):
    """A finished picture."""

    def pixels(self) -> Pixels:
        """The colours to show or to encode: bytes, or float32 of an engine that has them at hand."""

    def numpy(self) -> PlainImage:
        """Read back."""


@runtime_checkable
class Engine(Protocol):
    """Executes rendering and denoising; knows no methods, no files, no loops."""

    @property
    def name(self) -> str:
        """As in ENGINES."""

    def upload(self, gaussians: Gaussians, options: RenderOptions | None = None) -> Scene:
        """Prepare Gaussians for drawing; refuses values that are not finite."""

    def with_payload(self, scene: Any, payload: Any) -> Scene:
        """The same scene with another payload [n, 10] (or None); everything else is shared."""

    def sample(self, scene: Any, camera: Camera, noise: Noise, options: RenderOptions) -> Visibility:
        """Stochastic visibility: each fragment kept with probability alpha, the nearest kept one wins."""

    def decode(self, visibility: Any, scene: Any, camera: Camera, options: RenderOptions) -> Observation:
        """Colour, depth, alpha and neural view of a visibility sample."""

    def denoise(
        self,
        denoiser: ConfiguredDenoiser,
        observation: Any,  # of this engine, or one of plain arrays
        camera: Camera,
        state: Any,  # of this engine, None on the first frame
        options: RenderOptions,
        with_views: bool = False,
    ) -> tuple[Image, State]:
        """One frame of the stream, denoised, and the state for the next one; a pure function of its inputs."""

    def draw_active_set(
        self,
        denoiser: ConfiguredDenoiser,
        scene: Any,
        camera: Camera,
        noise: Noise,
        state: Any,
        options: RenderOptions,
    ) -> tuple[Image, State]:
        """One frame of `hush` or `sorted`: the Gaussians that matter, blended; and the set for the next frame."""

    def resize(self, state: Any, camera: Camera) -> State | None:
        """The state for a picture of another size; None if the method starts anew."""

    def render(self, scene: Any, camera: Camera, method: str, options: RenderOptions, with_depth: bool = True) -> Image:
        """A blended picture: `reference` or `exact`."""

    def finish(self) -> None:
        """Block until all work that was given is done; nothing to wait for on an engine that computes at once."""

    def release_memory(self) -> None:
        """Give pooled buffers back to the system."""


def engine(name: str = "cpu", adapter: str | int | None = None) -> Engine:
    """The engine of that name.

    Args:
        name: one of ENGINES; or auto: gpu where there is an adapter that is no software, until it fails; else cpu.
        adapter: of the gpu engine: number or part of the name; None takes the first.
    """
    if name == AUTO:
        return _gpu_or_cpu(adapter)
    if name not in ENGINES:
        raise RenderError(f"engine must be one of {', '.join((*ENGINES, AUTO))}, got '{name}'.")
    if adapter is not None and name != "gpu":
        raise RenderError(f"an adapter is for the gpu engine, not for {name}; leave it out.")
    made = import_module(ENGINES[name]).ENGINE
    return made(adapter) if name == "gpu" else made()


def _gpu_or_cpu(adapter: str | int | None) -> Engine:
    """A GPU that is no software with the cpu engine in reserve, or the cpu engine."""
    cpu = engine("cpu")
    try:
        if import_module("hushsplat.engines.webgpu.adapters").choose(adapter).is_software:
            return cpu
    except HushsplatError:
        return cpu
    fallback = import_module("hushsplat.engines.fallback")
    try:
        return fallback.FallbackEngine(engine("gpu", adapter), cpu)
    except EngineError as error:
        fallback.warn(f"{str(error).partition('; ')[0]}: drawing on the CPU.")
        return cpu
