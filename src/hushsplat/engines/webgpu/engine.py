"""The GPU engine behind the protocol of engines/base.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.webgpu import active_set, baselines, denoise
from hushsplat.engines.webgpu import scene as scenes
from hushsplat.engines.webgpu.adapters import choose
from hushsplat.engines.webgpu.device import Device, reported
from hushsplat.engines.webgpu.handles import GpuImage, GpuObservation, GpuVisibility
from hushsplat.engines.webgpu.raster import Rasterizer
from hushsplat.engines.webgpu.scene import GpuScene
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.state import check_state_of, resized
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import Noise, RenderOptions


class GpuEngine:
    """WGSL on one adapter. Nothing is read back unless somebody calls `.numpy()`."""

    name = "gpu"
    blended = ("reference",)  # what `render` draws

    def __init__(self, adapter: str | int | None = None, *, exact: bool = False, page_count: int | None = None) -> None:
        """Open a device.

        Args:
            adapter: number or part of the name; None takes the first of `adapters()`.
            exact: test the depth of each fragment instead of its quad's plane, and keep colours in 32 bits: what the
                CPU engine computes, for comparisons; costs early depth tests and memory.
            page_count: Gaussians of a page; None takes as many as one buffer holds.
        """
        self.adapter = choose(adapter)
        self._exact, self._page_count = exact, page_count
        with reported(self.adapter):
            self.device = Device(self.adapter)
            self._rasterizer = Rasterizer(self.device, exact_depth=exact)

    def upload(self, gaussians: Gaussians, options: RenderOptions | None = None) -> GpuScene:
        """Copy the Gaussians to the GPU."""
        with reported(self.adapter):
            return scenes.upload(self.device, gaussians, compact=not self._exact, page_count=self._page_count)

    def with_payload(self, scene: GpuScene, payload: Float32[Array, "n 10"] | None) -> GpuScene:
        """The same scene with another payload."""
        with reported(self.adapter):
            return scenes.with_payload(self.device, scene, payload)

    def sample(self, scene: GpuScene, camera: Camera, noise: Noise, options: RenderOptions) -> GpuVisibility:
        """Who is seen in each pixel, by the hardware's rasterizer and depth test."""
        with reported(self.adapter):
            return self._rasterizer.sample(scene, camera, noise, options)

    def decode(self, visibility: Any, scene: GpuScene, camera: Camera, options: RenderOptions) -> GpuObservation:
        """Colour, depth, alpha and neural view of a visibility sample."""
        with reported(self.adapter):
            if not isinstance(visibility, GpuVisibility):
                visibility = self._rasterizer.visibility_from(visibility.numpy(), scene)
            return self._rasterizer.decode(visibility, scene, camera, options)

    def denoise(
        self,
        denoiser: ConfiguredDenoiser,
        observation: Any,
        camera: Camera,
        state: Any,
        options: RenderOptions,
        with_views: bool = False,
    ) -> tuple[Any, Any]:
        """One frame: the paper's passes, or a baseline."""
        check_state_of(state, denoiser.name)
        step = denoise.step if denoiser.layout.name == "temporal" else baselines.step
        with reported(self.adapter):
            observation = denoise.observation_on(self.device, observation, camera)
            return step(self.device, denoiser, observation, camera, state, with_views)

    def draw_active_set(
        self,
        denoiser: ConfiguredDenoiser,
        scene: GpuScene,
        camera: Camera,
        noise: Noise,
        state: Any,
        options: RenderOptions,
    ) -> tuple[Any, Any]:
        """One frame of `hush` or `sorted`."""
        check_state_of(state, denoiser.name)
        with reported(self.adapter):
            return active_set.draw(self._rasterizer, denoiser, scene, camera, noise, state, options)

    def resize(self, state: Any, camera: Camera) -> Any:
        """A temporal state at another picture size with a short history, resized on the host; baselines start anew."""
        if isinstance(state, active_set.ActiveState):
            return state  # who is in the set does not depend on the picture's size
        if (state.camera.width, state.camera.height) == (camera.width, camera.height):
            return state
        if state.layout.name != "temporal":
            return None
        with reported(self.adapter):
            return denoise.GpuState.from_numpy(self.device, resized(state.numpy(), camera))

    def render(
        self, scene: GpuScene, camera: Camera, method: str, options: RenderOptions, with_depth: bool = True
    ) -> GpuImage:
        """`reference`: sorted by the depth of the centres and blended by the hardware's rasterizer."""
        if method not in self.blended:
            raise RenderError(f"the gpu engine blends {', '.join(self.blended)}, not '{method}'; use the cpu engine.")
        with reported(self.adapter):
            return self._rasterizer.blend(scene, camera, options, with_depth)

    @contextmanager
    def timed_passes(self) -> Iterator[dict[str, float]]:
        """Milliseconds of each pass in the block, by the GPU's clock; empty where the adapter has no timestamps."""
        device = self.device
        device.is_timed, device.passes_ms = "timestamp-query" in device.features, defaultdict(float)
        try:
            yield device.passes_ms
        finally:
            device.is_timed = False

    @contextmanager
    def counted_fragments(self) -> Iterator[dict[str, Any]]:
        """Fragments of each draw in the block, by the name of its pass: how many were tested, and how many shaded.

        Gaussians are drawn in 1024 rounds, and a fragment counts as shaded if it lies before all that the rounds before
        have drawn: those that a GPU shades that tests depth first. Counting takes much longer than drawing.
        """
        found: dict[str, Any] = {}
        self._rasterizer.fragments = found
        try:
            yield found
        finally:
            self._rasterizer.fragments = None

    @property
    def held_bytes(self) -> int:
        """Of the GPU's memory: all buffers and textures, those that wait for their next use too."""
        return self.device.held_bytes + self._rasterizer.target_bytes

    def finish(self) -> None:
        """Block until the GPU is done."""
        with reported(self.adapter):
            self.device.read(self.device.buffer(16))  # comes after everything before it

    def release_memory(self) -> None:
        """Free pooled buffers and textures."""
        self._rasterizer.release_memory()
        self.device.release_memory()


ENGINE = GpuEngine
