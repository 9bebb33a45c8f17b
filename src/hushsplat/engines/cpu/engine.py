"""The CPU engine behind the protocol of engines/base.py."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32, UInt8
from numpy import ndarray as Array

from hushsplat.engines.base import GaussianScene
from hushsplat.engines.cpu import _engine, active_set, baselines, denoise
from hushsplat.engines.cpu.arrays import empty_float32, empty_int32, native_background, native_camera
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.sampling import key_salt, level_table, sequence_index
from hushsplat.spec.state import State, check_state_of, resized
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError, SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image
from hushsplat.types.levels import Levels
from hushsplat.types.observation import Observation, Visibility
from hushsplat.types.options import Noise, RenderOptions

# `with cancel:` in one thread, `cancel.set()` in another: drawing ends early with Cancelled.
Cancel, Cancelled = _engine.Cancel, _engine.Cancelled


@dataclass(frozen=True, eq=False)
class CpuScene(GaussianScene):
    """Gaussians in spatially ordered chunks; colours and payload are read from the arrays of the Gaussians."""

    native: _engine.Scene = field(repr=False)
    shown: UInt8[Array, " groups"] | None = field(default=None, repr=False)  # groups that are drawn; None: all
    levels: Levels | None = field(default=None, repr=False)  # of detail, that the groups are; None: there are none

    @property
    def bytes(self) -> int:
        """Memory beside the arrays of the Gaussians."""
        return self.native.bytes

    def showing(self, shown: UInt8[Array, " groups"]) -> CpuScene:
        """The same scene with only these groups, 1 for each that is drawn."""
        return replace(self, shown=shown)

    def seen_by(self, camera: Camera, spacing_px: float) -> CpuScene:
        """Where there are levels, the same scene with Gaussians about so far apart in the picture; 0: as it is."""
        if self.levels is None or spacing_px <= 0:
            return self
        return self.showing(self.levels.seen_by(camera, spacing_px))


class CpuEngine:
    """C++ on all cores, AVX2 or portable."""

    name = "cpu"

    def upload(
        self, gaussians: Gaussians, options: RenderOptions | None = None, group: Int32[Array, " n"] | None = None
    ) -> CpuScene:
        """Order the Gaussians in space and precompute what does not depend on the camera.

        With `group`, a number from 0 on for each Gaussian, frames may leave groups out: `scene.showing(...)`.
        """
        threads = (options or RenderOptions()).threads
        try:
            _engine.require_finite(np.ascontiguousarray(gaussians.sh), "sh", threads)
            native = _engine.Scene(
                np.ascontiguousarray(gaussians.means),
                np.ascontiguousarray(gaussians.scales),
                np.ascontiguousarray(gaussians.rotations),
                np.ascontiguousarray(gaussians.opacities),
                threads,
                group,
            )
        except ValueError as error:
            raise SceneError(f"{error}; remove those Gaussians first.") from None
        native.antialiased = gaussians.antialiased
        return CpuScene(gaussians, native)

    def upload_levels(self, levels: Levels, options: RenderOptions | None = None) -> CpuScene:
        """A scene with its levels of detail; it shows the finest, `scene.seen_by(...)` coarser ones."""
        return replace(self.upload(levels.gaussians, options, levels.group), shown=levels.finest, levels=levels)

    def with_payload(self, scene: CpuScene, payload: Float32[Array, "n 10"] | None) -> CpuScene:
        """The same scene with another payload."""
        return replace(scene, gaussians=replace(scene.gaussians, payload=payload))

    def sample(self, scene: CpuScene, camera: Camera, noise: Noise, options: RenderOptions) -> Visibility:
        """Who is seen in each pixel, `samples` times: the same bits for the same noise."""
        samples, seed, sampler = noise.samples, int(noise.seed), noise.sampler
        times = [sequence_index(int(noise.frame), samples, sample) for sample in range(samples)]
        levels = np.stack([level_table(sampler, seed, t) for t in times])
        salts = np.array([key_salt(sampler, seed, t) for t in times], dtype=np.uint32)
        primitive_id = empty_int32(samples, camera.height, camera.width)
        depth = empty_float32(samples, camera.height, camera.width)
        native = native_camera(camera, options.near)
        by_center = options.order == "center"
        scene.native.stochastic(native, levels, salts, by_center, options.threads, primitive_id, depth, scene.shown)
        return Visibility(primitive_id, depth)

    def decode(self, visibility: Visibility, scene: CpuScene, camera: Camera, options: RenderOptions) -> Observation:
        """Colour by spherical harmonics, depth, alpha, and V0..V3 where the scene has a payload."""
        depth, alpha = _depth_and_alpha(visibility)
        return Observation(
            color=decode_color(visibility, scene, camera, options),
            depth=depth,
            alpha=alpha,
            neural_view=decode_neural_view(visibility, scene, camera, options) if scene.has_payload else None,
        )

    def denoise(
        self,
        denoiser: ConfiguredDenoiser,
        observation: Any,
        camera: Camera,
        state: Any,
        options: RenderOptions,
        with_views: bool = False,
    ) -> tuple[Image, State]:
        """One frame: the paper's passes in one sweep, or a baseline."""
        check_state_of(state, denoiser.name)
        step = denoise.step if denoiser.layout.name == "temporal" else baselines.step
        return step(denoiser, observation.numpy(), camera, state, options.threads, with_views)

    def draw_active_set(
        self,
        denoiser: ConfiguredDenoiser,
        scene: CpuScene,
        camera: Camera,
        noise: Noise,
        state: Any,
        options: RenderOptions,
    ) -> tuple[Image, active_set.ActiveState]:
        """One frame of `hush` or `sorted`."""
        check_state_of(state, denoiser.name)
        return active_set.draw(denoiser, scene.native, scene.gaussians, camera, noise, state, options, scene.shown)

    def resize(self, state: Any, camera: Camera) -> Any:
        """A temporal state at another picture size with a short history; baselines start anew, sets stay."""
        if isinstance(state, active_set.ActiveState):
            return state  # who is in the set does not depend on the picture's size
        if (camera.height, camera.width) == state.values.shape[:2]:
            return state
        if state.layout.name != "temporal":
            return None
        return resized(state, camera)

    def render(
        self, scene: CpuScene, camera: Camera, method: str, options: RenderOptions, with_depth: bool = True
    ) -> Image:
        """`reference`: sorted by the depth of the centres; `exact`: by the depth of the fragments in each pixel."""
        if method not in ("reference", "exact"):
            raise RenderError(f"the cpu engine blends reference and exact, not '{method}'.")
        size = (camera.height, camera.width)
        color, alpha = empty_float32(*size, 3), empty_float32(*size)
        depth = empty_float32(*size) if with_depth else None
        arguments = (
            native_camera(camera, options.near),
            np.ascontiguousarray(scene.gaussians.sh),
            np.ascontiguousarray(scene.gaussians.means),
            native_background(options),
            options.threads,
            color,
            alpha,
            depth,
        )
        if method == "reference":
            scene.native.sorted(*arguments, scene.shown)
            return Image(color, alpha, depth)
        variance = empty_float32(*size, 3)
        scene.native.exact(*arguments, variance, scene.shown)
        return Image(color, alpha, depth, variance)

    def finish(self) -> None:
        """Everything is done when a call returns."""

    def release_memory(self) -> None:
        """Free pooled frame buffers."""
        _engine.release_memory()


ENGINE = CpuEngine


def decode_color(
    visibility: Visibility, scene: CpuScene, camera: Camera, options: RenderOptions
) -> Float32[Array, "h w 3"]:
    """The mean colour over the samples, the background where nothing was hit."""
    height, width = visibility.primitive_id.shape[1:]
    if (height, width) != (camera.height, camera.width):
        raise RenderError(
            f"a visibility sample of {width}×{height} px cannot be decoded with a camera of "
            f"{camera.width}×{camera.height} px; give the camera it was drawn with."
        )
    color = empty_float32(camera.height, camera.width, 3)
    try:
        _engine.decode(
            np.ascontiguousarray(visibility.primitive_id),
            native_camera(camera, options.near),
            np.ascontiguousarray(scene.gaussians.sh),
            np.ascontiguousarray(scene.gaussians.means),
            native_background(options),
            options.threads,
            color,
        )
    except IndexError as error:
        raise _another_scene(error) from None
    return color


def decode_neural_view(
    visibility: Visibility, scene: CpuScene, camera: Camera, options: RenderOptions
) -> Float32[Array, "h w 4"]:
    """V0..V3 (paper, "Spatial Anisotropic Mipmap Filtering"): |view vector · camera axis|, V0 and V1 over depth.

    The payload's three view vectors face up, right and forward, in world space; its last float is the blur V3.
    """
    payload = scene.gaussians.payload
    if payload is None:
        raise RenderError("the scene has no payload to decode.")
    right, down, forward = camera.world_from_camera[:3, :3].T.astype(np.float32)
    view = empty_float32(*visibility.primitive_id.shape[1:], 4)
    try:
        _engine.decode_view(
            np.ascontiguousarray(visibility.primitive_id),
            np.ascontiguousarray(visibility.depth),
            np.ascontiguousarray(payload),
            np.stack([-down, right, forward]),
            options.threads,
            view,
        )
    except IndexError as error:
        raise _another_scene(error) from None
    return view


def _depth_and_alpha(visibility: Visibility) -> tuple[Float32[Array, "h w"], Float32[Array, "h w"]]:
    hit = visibility.primitive_id >= 0
    if len(hit) == 1:  # by far the commonest case, and it has nothing to average
        return visibility.depth[0], hit[0].astype(np.float32)
    hits = hit.sum(axis=0, dtype=np.float32)
    return visibility.depth.sum(axis=0) / np.maximum(hits, 1), hits / np.float32(len(hit))


def _another_scene(found: object) -> RenderError:
    """An id that the scene does not have; the native decoder checks every one before it reads there."""
    return RenderError(f"{found}; give the scene that was drawn.")
