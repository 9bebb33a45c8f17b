"""Pass 1: the previous state as this frame's camera sees it (docs/denoiser.md, "Reproject")."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from hushsplat.engines.torch.tensors import History, TensorState
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import TEMPORAL
from hushsplat.types.camera import Camera
from hushsplat.types.motion import CameraMotion

NEAREST_DEPTH = 1e-6  # world units: what is nearer to the previous camera, or behind it, has no place in its picture
FARTHEST_PX = 1e9  # stands for a motion that has no number; its compressed magnitude rounds to 1


def reproject(
    depth: Float[Tensor, "h w"], camera: Camera, state: TensorState | None, config: DenoiserSettings
) -> History:
    """Move the previous state into this frame's camera; differentiable in what the state remembers."""
    filled = fill_holes(depth, config.far_depth)
    if state is None or state.values.shape[:2] != depth.shape:
        return _no_history(filled)
    motion = _motion_between(state.camera, camera, config.static_tolerance)
    if motion.static:
        return History(
            values=state.values,
            valid=torch.ones_like(filled, dtype=torch.bool),
            motion_px=filled.new_zeros(*filled.shape, 2),
            relative_depth=relative_difference(filled, state.depth.detach()),
            filled_depth=filled,
            static=True,
        )
    motion_px, depth_before = move_pixels(filled, state.camera, camera, motion)
    height, width = filled.shape
    column, row = _pixels(filled)
    column_before = column + torch.floor(motion_px[..., 0] + 0.5).long()  # the pixel in which (x', y') lies
    row_before = row + torch.floor(motion_px[..., 1] + 0.5).long()
    # What lies behind the previous camera has moved too far to be inside.
    valid = (column_before >= 0) & (column_before < width) & (row_before >= 0) & (row_before < height)
    seen_before = state.depth.detach()[row_before.clamp(0, height - 1), column_before.clamp(0, width - 1)]
    return History(
        values=torch.where(valid[..., None], _resampled(state.values, motion_px, config), 0),
        valid=valid,
        motion_px=motion_px,
        relative_depth=torch.where(valid, relative_difference(depth_before, seen_before), 1),
        filled_depth=filled,
        static=False,
    )


@torch.compiler.disable  # float64 arithmetic on a few numbers, in numpy
def _motion_between(previous: Camera, current: Camera, static_tolerance: float) -> CameraMotion:
    return CameraMotion.between(previous, current, static_tolerance)


def fill_holes(depth: Float[Tensor, "h w"], far: float) -> Float[Tensor, "h w"]:
    """A pixel's own depth, else the mean of its neighbours' that have one, else the far plane."""
    hit = depth > 0
    kernel = depth.new_ones(1, 1, 3, 3)
    sums = functional.conv2d(torch.where(hit, depth, 0)[None, None], kernel, padding=1)[0, 0]
    counts = functional.conv2d(hit.to(depth.dtype)[None, None], kernel, padding=1)[0, 0].round()
    neighbours = torch.where(counts > 0, sums / counts.clamp(min=1), far)
    return torch.where(hit, depth, neighbours)


def move_pixels(
    depth: Float[Tensor, "h w"],
    previous: Camera,
    current: Camera,
    motion: CameraMotion,
) -> tuple[Float[Tensor, "h w 2"], Float[Tensor, "h w"]]:
    """How far each pixel's surface moves in the picture, and its depth, seen from the previous camera.

    All terms are differences: float32 rounds relative to the motion, not to the place in the picture.
    """
    column, row = (place.to(depth.dtype) for place in _pixels(depth))
    ray_x = (column + (0.5 - current.cx)) / current.fx
    ray_y = (row + (0.5 - current.cy)) / current.fy
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = motion.rotation_change.tolist()
    shift_x, shift_y, shift_z = (float(shift) / depth for shift in motion.translation)
    change_x = xx * ray_x + xy * ray_y + xz + shift_x  # e, relative to the depth
    change_y = yx * ray_x + yy * ray_y + yz + shift_y
    change_z = zx * ray_x + zy * ray_y + zz + shift_z
    scale = 1 + change_z
    lens_x = (previous.fx - current.fx) * ray_x + (previous.cx - current.cx)
    lens_y = (previous.fy - current.fy) * ray_y + (previous.cy - current.cy)
    motion_x = previous.fx * (change_x - ray_x * change_z) / scale + lens_x
    motion_y = previous.fy * (change_y - ray_y * change_z) / scale + lens_y
    motion_px = torch.stack([motion_x, motion_y], dim=-1)
    depth_before = depth * scale
    known = (depth_before > NEAREST_DEPTH) & motion_px.isfinite().all(-1)
    motion_px = torch.where(known[..., None], motion_px.clamp(-FARTHEST_PX, FARTHEST_PX), FARTHEST_PX)
    return motion_px, depth_before


def _resampled(
    values: Float[Tensor, "h w 16"], motion_px: Float[Tensor, "h w 2"], config: DenoiserSettings
) -> Float[Tensor, "h w 16"]:
    """The state at other places; lengths and trusts stay what they are even where Catmull-Rom overshoots."""
    found = resample(values, motion_px, config.resample_sharpness, config.resample_clamp)
    if not config.resample_clamp:
        caps = {"accumulated": config.accumulated_cap_frames, "denoised": config.denoised_cap_frames}
        for path, cap in caps.items():
            found[..., TEMPORAL.places[f"{path}_frames"]].clamp_(0, cap)
            found[..., TEMPORAL.places[f"{path}_trust"]].clamp_(0, 1)
    return found


def resample(
    values: Float[Tensor, "h w c"], motion_px: Float[Tensor, "h w 2"], sharpness: float = 0.5, clamp: bool = True
) -> Float[Tensor, "h w c"]:
    """Each pixel's value at its place plus the motion, by 16 taps; `clamp`: kept within the four central ones."""
    height, width, channels = values.shape
    texels = values.reshape(-1, channels)
    column, row = _pixels(motion_px[..., 0])
    base = torch.floor(motion_px)
    weights_x, weights_y = (_cubic_weights(part, -sharpness) for part in (motion_px - base).unbind(-1))
    columns = [(column + base[..., 0].long() + k).clamp(0, width - 1) for k in (-1, 0, 1, 2)]
    rows = [(row + base[..., 1].long() + k).clamp(0, height - 1) for k in (-1, 0, 1, 2)]
    total = torch.zeros_like(values)
    least, largest = torch.full_like(values, torch.inf), torch.full_like(values, -torch.inf)
    for j in range(4):
        line = torch.zeros_like(values)
        for i in range(4):
            tap = texels.index_select(0, (rows[j] * width + columns[i]).flatten()).view_as(values)
            line.addcmul_(weights_x[i][..., None], tap)
            if i in (1, 2) and j in (1, 2):
                least, largest = torch.minimum(least, tap), torch.maximum(largest, tap)
        total.addcmul_(weights_y[j][..., None], line)
    return torch.minimum(torch.maximum(total, least), largest) if clamp else total


def relative_difference(a: Float[Tensor, "h w"], b: Float[Tensor, "h w"]) -> Float[Tensor, "h w"]:
    """|a - b| / max(a, b) of depths > 0."""
    return (a - b).abs() / torch.maximum(a, b)


def _cubic_weights(t: Float[Tensor, "h w"], a: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of the taps at -1, 0, 1, 2 for a place t in 0..1; a = -0.5 is Catmull-Rom."""
    return (
        ((a * t - 2 * a) * t + a) * t,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((-(a + 2) * t + (2 * a + 3)) * t - a) * t,
        (a - a * t) * t * t,
    )


def _pixels(like: Float[Tensor, "h w"]) -> tuple[Int[Tensor, "1 w"], Int[Tensor, "h 1"]]:
    height, width = like.shape
    return torch.arange(width, device=like.device)[None, :], torch.arange(height, device=like.device)[:, None]


def _no_history(filled: Float[Tensor, "h w"]) -> History:
    return History(
        values=filled.new_zeros(*filled.shape, TEMPORAL.floats),
        valid=torch.zeros_like(filled, dtype=torch.bool),
        motion_px=filled.new_zeros(*filled.shape, 2),
        relative_depth=torch.ones_like(filled),
        filled_depth=filled,
        static=False,
    )
