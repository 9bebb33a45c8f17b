"""The baselines (`mean`, `st-taa`, `taa`, `svgf`, `svgf-tuned`) in float64 numpy: one readable function each.

They define what every engine has to compute; engines/cpu/baselines.py says what each method is and where it comes from.
Positions and points are in the space of the frame's camera (x right, y down, z forward).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64
from numpy import ndarray as Array

from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import MeanSettings, StTaaSettings, SvgfSettings, TaaSettings
from hushsplat.spec.state import State
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.image import Image
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation

LARGEST_VALUE = 1e9  # of a colour or a depth; a pixel beyond it counts as black without depth
NEAREST_DEPTH = 1e-6  # world units: what is nearer to a camera, or behind it, has no place in its picture
LUMA = np.array([0.25, 0.5, 0.25])  # Y of YCoCg
BINOMIAL = np.outer([1, 2, 1], [1, 2, 1]) / 16
LONGEST_HISTORY = 65536  # frames: SVGF counts no further
SHORT_HISTORY = 4  # frames: below, SVGF estimates variance over 7×7 pixels (Schied et al. 2017)
WEIGHT_FLOOR = 1e-2  # added to the scale of SVGF's edge stopping weights: no division by 0

Plane = Float64[Array, "h w"]
Color = Float64[Array, "h w 3"]
Values = Float64[Array, "h w c"]


def step(
    denoiser: ConfiguredDenoiser, observation: Observation, camera: Camera, state: State | None
) -> tuple[Image, State]:
    """One frame of a baseline; a state of another picture size is dropped."""
    if observation.depth.shape != (camera.height, camera.width):
        height, width = observation.depth.shape
        raise DenoiseError(
            f"an observation of {width}×{height} px came with a camera of {camera.width}×{camera.height} px; "
            "give the camera it was drawn with."
        )
    if state is not None and state.values.shape[:2] != (camera.height, camera.width):
        state = None
    settings, frames, made_by = denoiser.settings, 0, camera
    if isinstance(settings, MeanSettings):
        shown, frames = mean(observation, camera, state, settings)
        values = shown
        # The camera of the first frame stays: many steps below the tolerance must not add up to a moving camera.
        made_by = camera if state is None or frames == 1 else state.camera
    elif isinstance(settings, TaaSettings):
        shown, values = taa(observation, camera, state, settings)
    elif isinstance(settings, StTaaSettings):
        shown, values = st_taa(observation, camera, state, settings)
    elif isinstance(settings, SvgfSettings):
        shown, values = svgf(observation, camera, state, settings)
    else:
        raise DenoiseError(f"the torch engine does not run {denoiser.name} with {type(settings).__name__}.")
    after = State(denoiser.name, values.astype(np.float32), made_by, denoiser.layout, frames)
    return Image(np.maximum(shown, 0).astype(np.float32)), after


def mean(observation: Observation, camera: Camera, state: State | None, settings: MeanSettings) -> tuple[Color, int]:
    """The mean of this frame and all before it since the camera stopped, and how many they are."""
    color, _ = usable(observation)
    if state is None or not is_static(state.camera, camera, settings.static_tolerance):
        return color, 1
    frames = state.frames + 1
    return state.mean + (color - state.mean) / frames, frames


def st_taa(
    observation: Observation, camera: Camera, state: State | None, settings: StTaaSettings
) -> tuple[Color, Values]:
    """Running means of colour and position, warped forward to where the positions fall now."""
    color, depth = usable(observation)
    position = points_of(camera, filled_by_mean(depth, settings.far_depth))
    frames = np.zeros(depth.shape)
    old_color, old_position = np.zeros(color.shape), np.zeros(position.shape)
    if state is not None:
        history = state.values.astype(np.float64)
        if is_static(state.camera, camera, settings.static_tolerance):
            old_color, frames, old_position = history[..., :3], history[..., 3], history[..., 4:7]
        else:
            points = moved(history[..., 4:7], state.camera, camera)
            x, y, inside = projected(points, camera)
            sources = np.flatnonzero(inside)
            farthest_first = np.lexsort((-sources, -points.reshape(-1, 3)[sources, 2]))
            for source in sources[farthest_first]:  # the nearest comes last and stays; of equals the first pixel
                pixel = int(y.flat[source]), int(x.flat[source])
                row, column = divmod(source, camera.width)
                old_color[pixel], frames[pixel] = history[row, column, :3], history[row, column, 3]
                old_position[pixel] = points[row, column]
            frames = np.where(np.linalg.norm(old_position - position, axis=-1) < settings.reach, frames, 0)
    old, new = np.concatenate([old_color, old_position], -1), np.concatenate([color, position], -1)
    both, length = running_mean(old, frames, new, settings.cap_frames)
    shown = both[..., :3]
    return shown, np.concatenate([shown, length[..., None], both[..., 3:], np.zeros((*depth.shape, 1))], axis=-1)


def taa(observation: Observation, camera: Camera, state: State | None, settings: TaaSettings) -> tuple[Color, Values]:
    """Running mean by reprojection; while the camera moves, history is clipped to the 3×3 neighbourhood."""
    color, depth = usable(observation)
    old, frames = np.zeros(color.shape), np.zeros(depth.shape)
    if state is not None:
        static = is_static(state.camera, camera, settings.static_tolerance)
        filled = filled_by_mean(depth, settings.far_depth)
        history, valid, *_ = reprojected(state.values.astype(np.float64), state.camera, camera, filled, static)
        old, frames = history[..., :3], np.where(valid, history[..., 3], 0)
        if not static:
            around = neighbourhood(color, 1)
            middle, deviation = around.mean(axis=0), around.std(axis=0)
            old = np.clip(old, middle - settings.gamma * deviation, middle + settings.gamma * deviation)
    shown, length = running_mean(old, frames, color, settings.cap_frames)
    return shown, np.concatenate([shown, length[..., None], np.zeros((*depth.shape, 4))], axis=-1)


def svgf(observation: Observation, camera: Camera, state: State | None, settings: SvgfSettings) -> tuple[Color, Values]:
    """Colour and luminance moments integrated over time, then filtered over space as far as their variance asks for."""
    color, depth = usable(observation)
    fill = filled_by_mean if settings.passes else filled_by_nearest
    depth = fill(depth, settings.far_depth)
    luma = (color @ LUMA)[..., None]
    integrated, frames = np.concatenate([color, luma, luma**2], axis=-1), np.ones(depth.shape)
    if state is not None:
        old = state.values.astype(np.float64)
        static = is_static(state.camera, camera, settings.static_tolerance)
        history, known, z, x, y = reprojected(old, state.camera, camera, depth, static)
        there = texels(old[..., 6], x, y, (0, 1))
        close = np.abs(z - there) / np.maximum(z, there) < settings.depth_threshold
        known = known & (close.sum(axis=(0, 1)) >= 2)
        # A history is as long as that of the noisiest pixel it is made of.
        lengths = history[..., 5] if static else texels(old[..., 5], x, y, (0, 1)).min(axis=(0, 1))
        frames = np.where(known, np.minimum(lengths + 1, LONGEST_HISTORY), 1)
        least = np.array([settings.alpha] * 3 + [settings.moments_alpha] * 2)
        weight = np.maximum(least, 1 / frames[..., None]) if settings.running_mean else least
        integrated = np.where(known[..., None], history[..., :5] * (1 - weight) + integrated * weight, integrated)
    spatial = _wavelets if settings.passes else _adapted_filter
    shown, fed_back = spatial(integrated, frames, depth, settings)
    parts = [fed_back, integrated[..., 3:], frames[..., None], depth[..., None], np.zeros((*depth.shape, 1))]
    return shown, np.concatenate(parts, axis=-1)


# What several of them need


def usable(observation: Observation) -> tuple[Color, Plane]:
    """Colour and depth, black and without depth where a value cannot be used."""
    color, depth = observation.color.astype(np.float64), observation.depth.astype(np.float64)
    with np.errstate(invalid="ignore"):
        fine = (np.abs(color) <= LARGEST_VALUE).all(axis=-1) & (np.abs(depth) <= LARGEST_VALUE)
    return np.where(fine[..., None], color, 0), np.where(fine & (depth > 0), depth, 0)


def running_mean(old: Values, frames: Plane, new: Values, cap_frames: float) -> tuple[Values, Plane]:
    """The mean of `frames` old values and a new one, and its length up to the cap."""
    total = frames + 1
    return old + (new - old) / total[..., None], np.minimum(total, cap_frames)


def neighbourhood(
    image: Float64[Array, "h w *c"], radius: int, mode: Literal["edge", "constant"] = "edge"
) -> Float64[Array, "n h w *c"]:
    """The (2r+1)² neighbours of every pixel, row by row; outside the picture its edge repeated, or 0."""
    height, width = image.shape[:2]
    padded = np.pad(image, [(radius, radius)] * 2 + [(0, 0)] * (image.ndim - 2), mode=mode)
    side = range(2 * radius + 1)
    return np.stack([padded[j : j + height, i : i + width] for j in side for i in side])


def filled_by_mean(depth: Plane, far_depth: float) -> Plane:
    """A pixel's own depth, else the mean of its neighbours' that have one, else the far plane."""
    around = neighbourhood(depth, 1, "constant")
    count = (around > 0).sum(axis=0)
    return np.where(depth > 0, depth, np.where(count > 0, around.sum(axis=0) / np.maximum(count, 1), far_depth))


def filled_by_nearest(depth: Plane, far_depth: float) -> Plane:
    """A pixel's own depth, else that of the nearest neighbour that has one, else the far plane."""
    around = neighbourhood(depth, 1, "constant")
    filled = depth
    for k in (1, 3, 5, 7, 0, 2, 6, 8):  # beside before diagonal, then as one reads
        filled = np.where(filled > 0, filled, around[k])
    return np.where(filled > 0, filled, far_depth)


# Reprojection


def is_static(previous: Camera, current: Camera, tolerance: float) -> bool:
    """Neither pose nor intrinsics moved by more than the tolerance."""
    return CameraMotion.between(previous, current, tolerance).static


def points_of(camera: Camera, depth: Plane) -> Color:
    """Camera-space points of all pixel centres at their depths."""
    y, x = np.mgrid[: camera.height, : camera.width] + 0.5
    return np.stack([(x - camera.cx) / camera.fx * depth, (y - camera.cy) / camera.fy * depth, depth], axis=-1)


def moved(points: Color, source: Camera, to: Camera) -> Color:
    """Points of one camera's space in the other's."""
    to_from_source = np.linalg.inv(to.world_from_camera) @ source.world_from_camera
    return points @ to_from_source[:3, :3].T + to_from_source[:3, 3]


def projected(points: Color, camera: Camera) -> tuple[Plane, Plane, Bool[Array, "h w"]]:
    """x and y in px, and whether they lie in the picture before the camera."""
    before = points[..., 2] > NEAREST_DEPTH
    z = np.where(before, points[..., 2], 1)
    x, y = points[..., 0] / z * camera.fx + camera.cx, points[..., 1] / z * camera.fy + camera.cy
    return x, y, before & (x >= 0) & (x < camera.width) & (y >= 0) & (y < camera.height)


def reprojected(
    history: Values, previous: Camera, camera: Camera, depth: Plane, static: bool
) -> tuple[Values, Bool[Array, "h w"], Plane, Plane, Plane]:
    """History at each pixel, where it is valid, the pixel's depth seen from there, and its place x, y in px."""
    y, x = np.mgrid[: camera.height, : camera.width] + 0.5
    if static:
        return history, np.ones(depth.shape, bool), depth, x, y
    there = moved(points_of(camera, depth), camera, previous)
    x_before, y_before, valid = projected(there, previous)
    x_before, y_before = np.where(valid, x_before, x), np.where(valid, y_before, y)
    return resampled(history, x_before, y_before), valid, there[..., 2], x_before, y_before


def texels(
    image: Float64[Array, "h w *c"], x: Plane, y: Plane, offsets: tuple[int, ...]
) -> Float64[Array, "rows columns h w *c"]:
    """Texels at these offsets from the first of the 2×2 block that (x, y) px lies in the middle of."""
    height, width = image.shape[:2]
    column, row = np.floor(x - 0.5).astype(int), np.floor(y - 0.5).astype(int)
    rows = [np.clip(row + offset, 0, height - 1) for offset in offsets]
    columns = [np.clip(column + offset, 0, width - 1) for offset in offsets]
    return np.stack([np.stack([image[j, i] for i in columns]) for j in rows])


def resampled(image: Values, x: Plane, y: Plane) -> Values:
    """The image at (x, y) px by Catmull-Rom, kept within the four central texels."""
    taps = texels(image, x, y, (-1, 0, 1, 2))
    along_x, along_y = _catmull_rom_weights((x - 0.5) % 1), _catmull_rom_weights((y - 0.5) % 1)
    value = np.einsum("jihwc,jhw,ihw->hwc", taps, along_y, along_x)
    central = taps[1:3, 1:3]
    return np.clip(value, central.min(axis=(0, 1)), central.max(axis=(0, 1)))


def _catmull_rom_weights(t: Plane) -> Float64[Array, "4 h w"]:
    """Of the taps at -1, 0, 1 and 2 for a place t in 0..1."""
    t2, t3 = t**2, t**3
    return np.stack([(-t + 2 * t2 - t3) / 2, (2 - 5 * t2 + 3 * t3) / 2, (t + 4 * t2 - 3 * t3) / 2, (t3 - t2) / 2])


# SVGF over space: the picture to show, and the colour that becomes the history


def _depth_weight(tap: Array, smooth: Plane, settings: SvgfSettings) -> Array:
    """1 at equal depth, 1/e at a relative difference of sigma_depth."""
    return np.exp(-np.abs(tap - smooth) / (settings.sigma_depth * smooth + WEIGHT_FLOOR))


def _luma_weight(tap: Array, luma: Plane, variance: Plane, settings: SvgfSettings) -> Array:
    """1 at equal luminance, 1/e at sigma_luma standard deviations."""
    return np.exp(-np.abs(tap - luma) / (settings.sigma_luma * np.sqrt(variance) + WEIGHT_FLOOR))


def _adapted_filter(integrated: Values, frames: Plane, depth: Plane, settings: SvgfSettings) -> tuple[Color, Color]:
    """The paper's one 3×3 pass; history is not filtered."""
    color, luma = integrated[..., :3], integrated[..., :3] @ LUMA
    first, second = neighbourhood(integrated[..., 3:], 1).mean(axis=0).transpose(2, 0, 1)
    variance = np.maximum(0, second - first**2)
    smooth = neighbourhood(depth, 1).mean(axis=0)
    weight = _depth_weight(neighbourhood(depth, 1), smooth, settings)
    weight = weight * _luma_weight(neighbourhood(luma, 1), luma, variance, settings)
    weight = weight * BINOMIAL.reshape(9, 1, 1)
    return (weight[..., None] * neighbourhood(color, 1)).sum(axis=0) / weight.sum(axis=0)[..., None], color


def _wavelets(integrated: Values, frames: Plane, depth: Plane, settings: SvgfSettings) -> tuple[Color, Color]:
    """Several à-trous passes, the variance filtered along; the first may become the history."""
    smooth = neighbourhood(depth, 1).mean(axis=0)
    variance = np.maximum(0, integrated[..., 4] - integrated[..., 3] ** 2)
    spatial = _spatial_variance(integrated, depth, smooth, settings) * SHORT_HISTORY / frames
    variance = np.where(frames < SHORT_HISTORY, spatial, variance)
    color = fed_back = integrated[..., :3]
    line = np.array([1, 4, 6, 4, 1]) / 16 if settings.kernel == 5 else np.array([1, 2, 1]) / 4
    for number in range(settings.passes):
        color, variance = _wavelet_pass(color, variance, depth, smooth, line, 2**number, settings)
        if number == 0 and settings.feedback:
            fed_back = color
    return color, fed_back


def _spatial_variance(integrated: Values, depth: Plane, smooth: Plane, settings: SvgfSettings) -> Plane:
    """Of the luminance over 7×7 pixels of about the same depth."""
    inside = neighbourhood(np.ones(depth.shape), 3, "constant")
    weight = inside * _depth_weight(neighbourhood(depth, 3), smooth, settings)
    moments = (weight[..., None] * neighbourhood(integrated[..., 3:], 3)).sum(axis=0) / weight.sum(axis=0)[..., None]
    return np.maximum(0, moments[..., 1] - moments[..., 0] ** 2)


def _wavelet_pass(
    color: Color,
    variance: Plane,
    depth: Plane,
    smooth: Plane,
    line: Float64[Array, " taps"],
    stride: int,  # px between two taps
    settings: SvgfSettings,
) -> tuple[Color, Plane]:
    """One à-trous pass: colour, and the variance of what it averages."""
    radius, luma = len(line) // 2 * stride, color @ LUMA
    blurred = np.tensordot(BINOMIAL.ravel(), neighbourhood(variance, 1), axes=1)
    totals, squares, weights = np.zeros(color.shape), np.zeros(depth.shape), np.zeros(depth.shape)
    padded = [
        np.pad(plane, [(radius, radius)] * 2 + [(0, 0)] * (plane.ndim - 2))
        for plane in (color, variance, depth, np.ones_like(depth))
    ]
    height, width = depth.shape
    for j, along_y in enumerate(line):
        for i, along_x in enumerate(line):
            window = np.s_[j * stride : j * stride + height, i * stride : i * stride + width]
            tap_color, tap_variance, tap_depth, inside = (plane[window] for plane in padded)
            weight = along_y * along_x * inside * _depth_weight(tap_depth, smooth, settings)
            weight = weight * _luma_weight(tap_color @ LUMA, luma, blurred, settings)
            totals += weight[..., None] * tap_color
            squares += weight**2 * tap_variance
            weights += weight
    return totals / weights[..., None], squares / weights**2
