"""`hush` and `sorted` on the GPU: only Gaussians that have won a pixel lately are sorted and blended.

Each frame the stochastic raster draws all Gaussians once; winners become members for `period` frames, 255 at most. The
members are culled, ordered by 262,144 buckets of depth and blended like `reference`.
A fragment wins with its weight in the blend, so the share of a tile's pixels whose winner was no member before tells
what the members miss there; where it is large (first frame, cut, border of a turn) all Gaussians of the tile are drawn.
`sorted` and `discovery="everything"` blend all Gaussians. Hardware blending knows no weights: `prune`, `stop`,
`reach_px`, `ellipse_error`, `parallax_px`, `color_deg` and `first_samples` have no effect here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hushsplat.engines.webgpu.device import LIMITS, Buffer, Device, groups_of, tiles_of
from hushsplat.engines.webgpu.handles import GpuImage, GpuVisibility
from hushsplat.engines.webgpu.raster import Members, Rasterizer
from hushsplat.engines.webgpu.scene import GpuScene
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import ActiveSetSettings
from hushsplat.spec.state import ACTIVE_SET, StateLayout
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, EngineError
from hushsplat.types.options import Noise, RenderOptions

LONGEST = 255  # frames that a member stays after it has won: 8 bits
TILE = 32  # px, as lib_members.wgsl
MOST_NEWCOMERS = 1 / 32  # of a tile's pixels, more and all its Gaussians are drawn; ours: docs/gpu.md


@dataclass(frozen=True, eq=False)
class ActiveState:
    """The active set after a frame.

    Attributes:
        method: it belongs to.
        camera: of the frame.
        scene: whose Gaussians are members.
        frames_left: that each Gaussian stays a member, this one included, 8 bits; None where no set is kept.
    """

    method: str
    camera: Camera
    scene: GpuScene = field(repr=False)
    frames_left: Buffer | None = field(repr=False)
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
        return rasterizer.blend(scene, camera, options), ActiveState(denoiser.name, camera, scene, None)
    before = None if state is None or state.scene is not scene else state.frames_left
    seen = rasterizer.sample(scene, camera, replace(noise, samples=1), options)
    members = marked(device, seen, camera, before, settings.period)
    image = rasterizer.blend(scene, camera, options, members=members)
    return image, ActiveState(denoiser.name, camera, scene, members.frames_left)


def marked(device: Device, seen: GpuVisibility, camera: Camera, before: Buffer | None, period: int) -> Members:
    """The members with those that were seen in this frame; `before` it they were these, None: nobody."""
    frames_left, nothing = device.buffer(len(seen.ids)), device.buffer(16)
    newcomers = device.buffer(4 * groups_of(camera.width, TILE) * groups_of(camera.height, TILE))
    membership = device.uniform(
        "mark",
        "Membership",
        width=camera.width,
        height=camera.height,
        period=min(period, LONGEST),
        is_first=before is None,
        most=MOST_NEWCOMERS,
    )
    with device.work() as work:
        work.clear(newcomers)
        if before is None:
            work.clear(frames_left)
        else:
            groups = min(groups_of(frames_left.bytes, 4 * 256), LIMITS["max-compute-workgroups-per-dimension"])
            work.run(device.compute("age"), (groups, 1), left_before=before, frames_left=frames_left)
        bound = {"membership": membership, "place": seen.place[0], "left_before": before or nothing}
        bound |= {"frames_left": frames_left, "newcomers": newcomers}
        work.run(device.compute("mark"), tiles_of(camera.width, camera.height), **bound)
    return Members(membership, frames_left, newcomers)
