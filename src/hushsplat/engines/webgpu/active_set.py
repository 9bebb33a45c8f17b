"""`hush` and `sorted` on the GPU: only Gaussians that have won a pixel lately are sorted and blended.

Each frame the stochastic raster draws all Gaussians once; winners are marked with the frame's number. The members,
marked within the last `period` frames, are culled, ordered by 262,144 buckets of depth and blended like `reference`.
`sorted` and `discovery="everything"` blend all Gaussians. Hardware blending knows no weights: `prune`, `stop`,
`reach_px`, `ellipse_error` and `parallax_px` have no effect here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hushsplat.engines.webgpu.device import Buffer, groups_of
from hushsplat.engines.webgpu.handles import GpuImage
from hushsplat.engines.webgpu.raster import ROW_GROUPS, Members, Rasterizer
from hushsplat.engines.webgpu.scene import GpuScene
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import ActiveSetSettings
from hushsplat.spec.state import ACTIVE_SET, StateLayout
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, EngineError
from hushsplat.types.options import Noise, RenderOptions

FRAMES = 65535  # as lib_frames.wgsl


@dataclass(frozen=True, eq=False)
class ActiveState:
    """The active set after a frame.

    Attributes:
        method: it belongs to.
        camera: of the frame.
        scene: whose Gaussians are members.
        frame: number of the frame, 1 to 65,535 and then from 1 on again.
        won_in: the frame in which each Gaussian won last, 16 bits, 0: never; None where no set is kept.
    """

    method: str
    camera: Camera
    scene: GpuScene = field(repr=False)
    frame: int
    won_in: Buffer | None = field(repr=False)
    layout: StateLayout = field(default=ACTIVE_SET, repr=False)

    def numpy(self) -> ActiveState:
        """Itself: nothing above the engine reads a set."""
        return self


def draw(
    rasterizer: Rasterizer,
    denoiser: ConfiguredDenoiser,
    scene: GpuScene,
    camera: Camera,
    noise: Noise,
    state: ActiveState | None,
    options: RenderOptions,
) -> tuple[GpuImage, ActiveState]:
    """One frame and the state for the next one; a state of another scene starts anew."""
    settings, device = denoiser.settings, rasterizer.device
    if not isinstance(settings, ActiveSetSettings):
        raise DenoiseError(f"{denoiser.name} takes ActiveSetSettings, got {type(settings).__name__}.")
    if options.order == "pixel":
        raise EngineError(f"the gpu engine orders {denoiser.name} by the depth of centres; use the cpu engine.")
    if settings.discovery == "everything":
        return rasterizer.blend(scene, camera, options), ActiveState(denoiser.name, camera, scene, 1, None)
    if state is not None and (state.scene is not scene or state.won_in is None):
        state = None
    frame = 1 if state is None else state.frame % FRAMES + 1
    samples = settings.first_samples if state is None else 1
    seen = rasterizer.sample(scene, camera, replace(noise, samples=samples), options)
    won_in, pixels = device.buffer(2 * scene.count), camera.width * camera.height
    marking = device.uniform("mark", "Marking", pixels=pixels, frame=frame)
    groups = groups_of(pixels, 256)
    grid = (min(groups, ROW_GROUPS), groups_of(groups, ROW_GROUPS))
    with device.work() as work:
        if state is None or state.won_in is None:
            work.clear(won_in)
        else:
            work.copy(state.won_in, won_in)
        for place in seen.place:
            work.run(device.compute("mark"), grid, marking=marking, place=place, won_in=won_in)
    membership = device.uniform("cull", "Membership", frame=frame, period=settings.period)
    image = rasterizer.blend(scene, camera, options, members=Members(membership, won_in))
    return image, ActiveState(denoiser.name, camera, scene, frame, won_in)
