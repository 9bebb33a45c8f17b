"""Slow, independent versions of the baselines in float64: one readable function each, the meaning of the fast ones."""

from __future__ import annotations

import numpy as np

from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import SvgfSettings, TaaSettings
from hushsplat.spec.state import State
from hushsplat.types.camera import Camera
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation

FAR = 1000.0
LARGEST = 1e9
LUMA = np.array([0.25, 0.5, 0.25])


def step(
    denoiser: ConfiguredDenoiser, observation: Observation, camera: Camera, state: State | None
) -> tuple[Image, State]:
    """One frame of a baseline; a state of another picture size is dropped."""
    if state is not None and state.values.shape[:2] != (camera.height, camera.width):
        state = None
    settings, frames, first = denoiser.settings, 0, camera
    if denoiser.layout.name == "mean":
        shown, history, frames = mean(observation, camera, state)
        first = camera if state is None or frames == 1 else state.camera
    elif isinstance(settings, TaaSettings):
        shown, history = taa(observation, camera, state, settings.gamma, settings.cap_frames)
    elif isinstance(settings, SvgfSettings):
        shown, history = svgf(observation, camera, state, settings)
    else:
        shown, history = st_taa(observation, camera, state)
    after = State(denoiser.name, history.astype(np.float32), first, denoiser.layout, frames)
    return Image(shown.astype(np.float32)), after


def clean(observation):
    """Colour and depth, black and without depth where a value cannot be used."""
    color, depth = observation.color.astype(np.float64), observation.depth.astype(np.float64)
    with np.errstate(invalid="ignore"):
        fine = (np.abs(color) <= LARGEST).all(axis=-1) & (np.abs(depth) <= LARGEST)
    return np.where(fine[..., None], color, 0), np.where(fine & (depth > 0), depth, 0)


def neighbourhood(image, radius, mode="edge"):
    """[(2r+1)², h, w, ...]: row by row."""
    height, width = image.shape[:2]
    padded = np.pad(image, [(radius, radius)] * 2 + [(0, 0)] * (image.ndim - 2), mode=mode)
    side = range(2 * radius + 1)
    return np.stack([padded[j : j + height, i : i + width] for j in side for i in side])


def filled_by_mean(depth):
    around = neighbourhood(depth, 1, "constant")
    count = (around > 0).sum(axis=0)
    return np.where(depth > 0, depth, np.where(count > 0, around.sum(axis=0) / np.maximum(count, 1), FAR))


def filled_by_nearest(depth):
    around = neighbourhood(depth, 1, "constant")
    filled = depth
    for k in (1, 3, 5, 7, 0, 2, 6, 8):  # beside before diagonal, then as one reads
        filled = np.where(filled > 0, filled, around[k])
    return np.where(filled > 0, filled, FAR)


def is_static(a, b):
    change = np.linalg.inv(a.world_from_camera) @ b.world_from_camera - np.eye(4)
    return np.abs(change).max() <= 1e-6 and (a.fx, a.fy, a.cx, a.cy) == (b.fx, b.fy, b.cx, b.cy)


def points_of(camera, depth):
    """Camera-space points of all pixel centres at their depths."""
    y, x = np.mgrid[: camera.height, : camera.width] + 0.5
    return np.stack([(x - camera.cx) / camera.fx * depth, (y - camera.cy) / camera.fy * depth, depth], axis=-1)


def moved(points, source, to):
    transform = np.linalg.inv(to.world_from_camera) @ source.world_from_camera
    return points @ transform[:3, :3].T + transform[:3, 3]


def projected(points, camera):
    """x and y in px, and whether they lie in the picture before the camera."""
    z = np.where(points[..., 2] > 1e-6, points[..., 2], 1)
    x, y = points[..., 0] / z * camera.fx + camera.cx, points[..., 1] / z * camera.fy + camera.cy
    inside = (points[..., 2] > 1e-6) & (x >= 0) & (x < camera.width) & (y >= 0) & (y < camera.height)
    return x, y, inside


def texels(image, x, y, offsets):
    """[rows, columns, h, w, ...]: texels around the 2×2 block that (x, y) px lies in the middle of."""
    height, width = image.shape[:2]
    column, row = np.floor(x - 0.5).astype(int), np.floor(y - 0.5).astype(int)
    return np.stack(
        [
            np.stack([image[np.clip(row + j, 0, height - 1), np.clip(column + i, 0, width - 1)] for i in offsets])
            for j in offsets
        ]
    )


def catmull_rom(t):
    """Weights of the taps at -1, 0, 1 and 2."""
    t2, t3 = t**2, t**3
    return np.stack([(-t + 2 * t2 - t3) / 2, (2 - 5 * t2 + 3 * t3) / 2, (t + 4 * t2 - 3 * t3) / 2, (t3 - t2) / 2])


def resampled(image, x, y):
    taps = texels(image, x, y, (-1, 0, 1, 2))
    along_x, along_y = catmull_rom((x - 0.5) % 1), catmull_rom((y - 0.5) % 1)
    value = np.einsum("jihwc,jhw,ihw->hwc", taps, along_y, along_x)
    central = taps[1:3, 1:3]
    return np.clip(value, central.min(axis=(0, 1)), central.max(axis=(0, 1)))


def history_before(history, state_camera, camera, depth):
    """The reprojected history, where it is valid, the depth each pixel had, and its place in the previous frame."""
    y, x = np.mgrid[: camera.height, : camera.width] + 0.5
    if is_static(state_camera, camera):
        return history, np.ones(depth.shape, bool), depth, x, y
    there = moved(points_of(camera, depth), camera, state_camera)
    x_before, y_before, valid = projected(there, state_camera)
    x_before, y_before = np.where(valid, x_before, x), np.where(valid, y_before, y)
    return resampled(history, x_before, y_before), valid, there[..., 2], x_before, y_before


def running_mean(old, frames, new, cap):
    total = frames + 1
    return old + (new - old) / total[..., None], np.minimum(total, cap)


def mean(observation, camera, state):
    color, _ = clean(observation)
    if state is None or not is_static(state.camera, camera):
        return color, color, 1
    result = state.mean + (color - state.mean) / (state.frames + 1)
    return result, result, state.frames + 1


def st_taa(observation, camera, state):
    color, depth = clean(observation)
    position = points_of(camera, filled_by_mean(depth))
    frames = np.zeros(depth.shape)
    old_color, old_position = np.zeros(color.shape), np.zeros(position.shape)
    if state is not None:
        history = state.values.astype(np.float64)
        if is_static(state.camera, camera):
            old_color, frames, old_position = history[..., :3], history[..., 3], history[..., 4:7]
        else:
            points = moved(history[..., 4:7], state.camera, camera)
            x, y, inside = projected(points, camera)
            sources = np.flatnonzero(inside)
            farthest_first = np.lexsort((-sources, -points.reshape(-1, 3)[sources, 2]))
            for source in sources[farthest_first]:  # the nearest comes last and stays
                pixel = int(y.flat[source]), int(x.flat[source])
                row, column = divmod(source, camera.width)
                old_color[pixel], frames[pixel] = history[row, column, :3], history[row, column, 3]
                old_position[pixel] = points[row, column]
            frames = np.where(np.linalg.norm(old_position - position, axis=-1) < 100, frames, 0)
    both, length = running_mean(
        np.concatenate([old_color, old_position], -1), frames, np.concatenate([color, position], -1), 128
    )
    zero = np.zeros((*depth.shape, 1))
    return both[..., :3], np.concatenate([both[..., :3], length[..., None], both[..., 3:], zero], axis=-1)


def taa(observation, camera, state, gamma, cap):
    color, depth = clean(observation)
    old, frames = np.zeros(color.shape), np.zeros(depth.shape)
    if state is not None:
        history, valid, *_ = history_before(
            state.values.astype(np.float64), state.camera, camera, filled_by_mean(depth)
        )
        old, frames = history[..., :3], np.where(valid, history[..., 3], 0)
        if not is_static(state.camera, camera):
            around = neighbourhood(color, 1)
            middle, deviation = around.mean(axis=0), around.std(axis=0)
            old = np.clip(old, middle - gamma * deviation, middle + gamma * deviation)
    result, length = running_mean(old, frames, color, cap)
    return result, np.concatenate([result, length[..., None], np.zeros((*depth.shape, 4))], axis=-1)


def svgf(observation, camera, state, config):
    color, depth = clean(observation)
    depth = filled_by_mean(depth) if config.passes else filled_by_nearest(depth)
    luma = (color @ LUMA)[..., None]
    integrated, frames = np.concatenate([color, luma, luma**2], axis=-1), np.ones(depth.shape)
    if state is not None:
        old = state.values.astype(np.float64)
        history, known, z, x, y = history_before(old, state.camera, camera, depth)
        there = texels(old[..., 6], x, y, (0, 1))
        close = np.abs(z - there) / np.maximum(z, there) < config.depth_threshold
        known = known & (close.sum(axis=(0, 1)) >= 2)
        lengths = (
            history[..., 5] if is_static(state.camera, camera) else texels(old[..., 5], x, y, (0, 1)).min(axis=(0, 1))
        )
        frames = np.where(known, lengths + 1, 1)
        least = np.array([config.alpha] * 3 + [config.moments_alpha] * 2)
        weight = np.maximum(least, 1 / frames[..., None]) if config.running_mean else least
        integrated = np.where(known[..., None], history[..., :5] * (1 - weight) + integrated * weight, integrated)
    spatial = _wavelets if config.passes else _adapted_filter
    shown, fed_back = spatial(integrated, frames, depth, config)
    parts = [fed_back, integrated[..., 3:], frames[..., None], depth[..., None], np.zeros((*depth.shape, 1))]
    return shown, np.concatenate(parts, axis=-1)


def _adapted_filter(integrated, frames, depth, config):
    color, luma = integrated[..., :3], integrated[..., :3] @ LUMA
    first, second = neighbourhood(integrated[..., 3:], 1).mean(axis=0).transpose(2, 0, 1)
    variance = np.maximum(0, second - first**2)
    smooth = neighbourhood(depth, 1).mean(axis=0)
    weight = np.exp(-np.abs(neighbourhood(depth, 1) - smooth) / (config.sigma_depth * smooth + 1e-2))
    weight *= np.exp(-np.abs(neighbourhood(luma, 1) - luma) / (config.sigma_luma * np.sqrt(variance) + 1e-2))
    weight *= (np.outer([1, 2, 1], [1, 2, 1]) / 16).reshape(9, 1, 1)
    return (weight[..., None] * neighbourhood(color, 1)).sum(axis=0) / weight.sum(axis=0)[..., None], color


def _spatial_variance(integrated, depth, smooth, config):
    inside = neighbourhood(np.ones(depth.shape), 3, "constant")
    weight = inside * np.exp(-np.abs(neighbourhood(depth, 3) - smooth) / (config.sigma_depth * smooth + 1e-2))
    moments = (weight[..., None] * neighbourhood(integrated[..., 3:], 3)).sum(axis=0) / weight.sum(axis=0)[..., None]
    return np.maximum(0, moments[..., 1] - moments[..., 0] ** 2)


def _wavelets(integrated, frames, depth, config):
    smooth = neighbourhood(depth, 1).mean(axis=0)
    variance = np.maximum(0, integrated[..., 4] - integrated[..., 3] ** 2)
    variance = np.where(frames < 4, _spatial_variance(integrated, depth, smooth, config) * 4 / frames, variance)
    color = fed_back = integrated[..., :3]
    line = np.array([1, 4, 6, 4, 1]) / 16 if config.kernel == 5 else np.array([1, 2, 1]) / 4
    for number in range(config.passes):
        color, variance = _wavelet_pass(color, variance, depth, smooth, line, 2**number, config)
        if number == 0 and config.feedback:
            fed_back = color
    return color, fed_back


def _wavelet_pass(color, variance, depth, smooth, line, stride, config):
    radius, luma = len(line) // 2 * stride, color @ LUMA
    blurred = np.tensordot(np.outer([1, 2, 1], [1, 2, 1]).ravel() / 16, neighbourhood(variance, 1), axes=1)
    totals, squares, weights = np.zeros(color.shape), np.zeros(depth.shape), np.zeros(depth.shape)
    padded = [
        np.pad(a, [(radius, radius)] * 2 + [(0, 0)] * (a.ndim - 2))
        for a in (color, variance, depth, np.ones_like(depth))
    ]
    height, width = depth.shape
    for j, along_y in enumerate(line):
        for i, along_x in enumerate(line):
            window = np.s_[j * stride : j * stride + height, i * stride : i * stride + width]
            tap_color, tap_variance, tap_depth, inside = (a[window] for a in padded)
            weight = along_y * along_x * inside
            weight = weight * np.exp(-np.abs(tap_depth - smooth) / (config.sigma_depth * smooth + 1e-2))
            weight = weight * np.exp(-np.abs(tap_color @ LUMA - luma) / (config.sigma_luma * np.sqrt(blurred) + 1e-2))
            totals += weight[..., None] * tap_color
            squares += weight**2 * tap_variance
            weights += weight
    return totals / weights[..., None], squares / weights**2
