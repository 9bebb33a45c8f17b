"""The paper's denoiser from its equations alone, in float64 numpy: slow, and independent of every engine.

Where the paper leaves a choice, docs/denoiser.md names it: edges are repeated, networks pad with zeros, lengths and
trusts stay in their ranges where Catmull-Rom overshoots, and the gate counts the frames before this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.observation import Observation

FAR, CAP_S, CAP_H, TAU, EPSILON = 1000.0, 128.0, 24.0, 8.0, 1e-4
YCOCG = np.array([[0.25, 0.5, 0.25], [0.5, 0, -0.5], [-0.25, 0.5, -0.25]])


@dataclass
class Memory:
    """h_t: what a frame leaves."""

    camera: Camera
    s: np.ndarray  # S and the mean of Y²
    n_s: np.ndarray
    t_s: np.ndarray
    d: np.ndarray  # D
    n_h: np.ndarray
    t_h: np.ndarray
    shown: np.ndarray
    depth: np.ndarray


def step(
    weights: DenoiserWeights, frame: Observation, camera: Camera, before: Memory | None, zero_shot: bool
) -> tuple[np.ndarray, Memory]:
    """One frame: what is shown, and the memory for the next one."""
    color = frame.color.astype(np.float64) @ YCOCG.T
    depth = fill_holes(frame.depth.astype(np.float64))
    height, width = depth.shape
    zeros = np.zeros((height, width))
    if before is None:
        before = Memory(camera, np.zeros((height, width, 4)), zeros, zeros, 0 * color, zeros, zeros, 0 * color, zeros)
        static, motion, r, valid = False, np.zeros((height, width, 2)), zeros + 1, zeros > 0
    else:
        static = np.abs(camera.world_from_camera - before.camera.world_from_camera).max() < 1e-9
        motion, r, valid = reproject(depth, camera, before)
    history = [before.s, before.n_s, before.t_s, before.d, before.n_h, before.t_h, before.shown]
    if not static:
        history = [np.where(_wide(valid, a), catmull_rom(a, motion), 0) for a in history]
    s, n_s, t_s, d, n_h, t_h, shown = history
    n_s, n_h, t_s, t_h = n_s.clip(0, CAP_S), n_h.clip(0, CAP_H), t_s.clip(0, 1), t_h.clip(0, 1)

    m = np.linalg.norm(motion, axis=-1)
    c = m / (m + 20)
    view = None if zero_shot else frame.neural_view.astype(np.float64)
    forward = zeros if view is None else view[..., 2]
    change = color - d
    t_s = accumulated_network(
        weights, np.stack([np.abs(color[..., 0] - s[..., 0]), t_s, c**2, n_s / CAP_S, c, r, c * r, forward], -1)
    )
    distance = np.sqrt((change**2).sum(-1))
    features = [np.abs(change[..., 0]), d[..., 0], t_h, n_h / CAP_H, c, distance, r, c**2]
    t_h = denoised_network(weights, np.stack(features, -1))
    t_s = np.where(valid, 1.0 if static else t_s, 0)
    t_h = np.where(valid, t_h, 0)

    filtered = spatial_filter(color, view)
    moments = np.concatenate([color, color[..., :1] ** 2], -1)
    s, n_s = ema(s, n_s, t_s, moments, CAP_S)
    d, n_h = ema(d, n_h, t_h, filtered, CAP_H)

    variance = np.maximum(s[..., 3] - s[..., 0] ** 2, 0)
    error = np.sqrt(variance / (n_s - 1 + EPSILON))
    ripe = 1 - np.exp(-(n_s - 1) / TAU)
    gate = 1 - ripe * (1 - np.clip(weights.gamma * error, 0, 1))
    composite = (gate[..., None] * d + (1 - gate[..., None]) * s[..., :3]) @ np.linalg.inv(YCOCG).T
    result = composite if static else stabilise(composite, shown, r, valid)
    result = np.maximum(result, 0)
    return result, Memory(camera, s, n_s, t_s, d, n_h, t_h, result, depth)


def fill_holes(depth: np.ndarray) -> np.ndarray:
    """A miss borrows the mean valid depth of 3×3 pixels, else the far plane."""
    filled = depth.copy()
    for y, x in np.argwhere(depth <= 0):
        near = depth[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
        filled[y, x] = near[near > 0].mean() if (near > 0).any() else FAR
    return filled


def reproject(depth: np.ndarray, camera: Camera, before: Memory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Motion in px (previous - current), relative depth difference, and where there is history."""
    height, width = depth.shape
    y, x = np.mgrid[:height, :width] + 0.5
    ray = np.stack([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, np.ones_like(x)], -1)
    world = (ray * depth[..., None]) @ camera.world_from_camera[:3, :3].T + camera.world_from_camera[:3, 3]
    there = world @ before.camera.camera_from_world[:3, :3].T + before.camera.camera_from_world[:3, 3]
    z = there[..., 2]
    place = np.stack(
        [
            before.camera.fx * there[..., 0] / z + before.camera.cx,
            before.camera.fy * there[..., 1] / z + before.camera.cy,
        ],
        -1,
    )
    valid = (z > 1e-6) & (place >= 0).all(-1) & (place < [width, height]).all(-1)
    column, row = (np.clip(np.floor(place[..., k]), 0, (width, height)[k] - 1).astype(int) for k in (0, 1))
    seen = before.depth[row, column]
    r = np.where(valid, np.abs(z - seen) / np.maximum(z, seen), 1)
    return np.where(valid[..., None], place - np.stack([x, y], -1), 0), r, valid


def catmull_rom(values: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """16 taps, edges repeated."""
    height, width = motion.shape[:2]
    rows, columns = np.mgrid[:height, :width]
    base = np.floor(motion).astype(int)
    total = np.zeros_like(values, dtype=np.float64)
    for j in range(-1, 3):
        for i in range(-1, 3):
            weight = _cubic(motion[..., 0] - base[..., 0] - i) * _cubic(motion[..., 1] - base[..., 1] - j)
            tap = values[(rows + base[..., 1] + j).clip(0, height - 1), (columns + base[..., 0] + i).clip(0, width - 1)]
            total += _wide(weight, values) * tap
    return total


def _cubic(x: np.ndarray) -> np.ndarray:
    """The Catmull-Rom spline."""
    x = np.abs(x)
    return np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, np.where(x < 2, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2, 0))


def accumulated_network(weights: DenoiserWeights, x: np.ndarray) -> np.ndarray:
    """Appendix, "Accumulated-path predictor architecture"."""
    x = silu(pointwise(weights, "accumulated.0", x))
    x = silu(pointwise(weights, "accumulated.2", depthwise(weights, "accumulated.1", x)))
    x = silu(pointwise(weights, "accumulated.3", x))
    x = silu(pointwise(weights, "accumulated.5", depthwise(weights, "accumulated.4", x)))
    return sigmoid(pointwise(weights, "accumulated.head", x)[..., 0])


def denoised_network(weights: DenoiserWeights, x: np.ndarray) -> np.ndarray:
    """ "Denoised-path trust"."""
    return sigmoid(pointwise(weights, "denoised.head", silu(depthwise(weights, "denoised.depthwise", x)))[..., 0])


def pointwise(weights: DenoiserWeights, name: str, x: np.ndarray) -> np.ndarray:
    return x @ weights[f"{name}.weight"][:, :, 0, 0].T.astype(np.float64) + weights[f"{name}.bias"]


def depthwise(weights: DenoiserWeights, name: str, x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    height, width = x.shape[:2]
    taps = [
        padded[j : j + height, i : i + width] * weights[f"{name}.weight"][:, 0, j, i]
        for j in range(3)
        for i in range(3)
    ]
    return sum(taps) + weights[f"{name}.bias"]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def spatial_filter(color: np.ndarray, view: np.ndarray | None) -> np.ndarray:
    """Appendix, "Spatial Filter Details"; pixel by pixel."""
    height, width = color.shape[:2]
    levels = [color]
    while len(levels) < 4:
        fine = levels[-1]
        even = np.pad(fine, ((0, fine.shape[0] % 2), (0, fine.shape[1] % 2), (0, 0)), mode="edge")
        levels.append((even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4)
    if view is not None:
        padded = np.pad(view, ((1, 1), (1, 1), (0, 0)), mode="edge")
        view = sum(
            wy * wx / 16 * padded[j : j + height, i : i + width]
            for j, wy in enumerate((1, 2, 1))
            for i, wx in enumerate((1, 2, 1))
        )
    found = np.empty_like(color)
    for y in range(height):
        for x in range(width):
            a_x = a_y = 2.0
            rho = 0.0
            if view is not None:
                v = view[y, x]
                floor = np.log1p(np.exp(v[3]))
                a_x, a_y, rho = max(v[1], 0) + floor, max(v[0], 0) + floor, np.tanh(v[2])
            z = rho * np.sqrt(a_x * a_y + 1e-8)
            (minor, major), axes = np.linalg.eigh([[a_x, z], [z, a_y]])
            axis = axes[:, 1] if major - minor > 1e-9 else np.array([1.0, 0.0])
            minor = max(minor, 1e-4)
            level = np.clip(np.log2(minor), 0, 3)
            total, weight_sum = np.zeros(3), 0.0
            for offset in (-1.5, -0.5, 0.5, 1.5):
                weight = np.exp(-0.5 * (offset * minor / major) ** 2)
                place = np.array([x + 0.5, y + 0.5]) + offset * minor * axis
                low = min(int(level), 2)
                probe = (1 - (level - low)) * bilinear(levels[low], place / 2**low)
                probe = probe + (level - low) * bilinear(levels[low + 1], place / 2 ** (low + 1))
                total, weight_sum = total + weight * probe, weight_sum + weight
            found[y, x] = total / weight_sum
    return found


def bilinear(texels: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Texel centres at +0.5, edges clamped."""
    height, width = texels.shape[:2]
    x, y = place - 0.5
    i, j = int(np.floor(x)), int(np.floor(y))
    total = np.zeros(texels.shape[2])
    for dj in (0, 1):
        for di in (0, 1):
            weight = (1 - abs(x - i - di)) * (1 - abs(y - j - dj))
            total += weight * texels[min(max(j + dj, 0), height - 1), min(max(i + di, 0), width - 1)]
    return total


def ema(mean: np.ndarray, n: np.ndarray, t: np.ndarray, x: np.ndarray, cap: float) -> tuple[np.ndarray, np.ndarray]:
    """The path update: d = n t + 1, X = (X n t + x) / d, n = min(d, cap)."""
    d = n * t + 1
    return (mean * (n * t)[..., None] + x) / d[..., None], np.minimum(d, cap)


def stabilise(composite: np.ndarray, shown: np.ndarray, r: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Appendix, "Stabilization Pass": clamp, depth re-seed, colour rescue."""
    height, width = r.shape
    padded = np.pad(composite, ((1, 1), (1, 1), (0, 0)), mode="edge")
    around = np.stack([padded[j : j + height, i : i + width] for j in range(3) for i in range(3)])
    tolerance = (around.max(0) - around.min(0)) / 2 + 0.04
    kept = np.clip(shown, composite - tolerance, composite + tolerance)
    rescued = np.abs(composite - kept).max(-1) < 0.10
    a = np.where(valid & ((r <= 0.1) | rescued), 0.9, 0.0)[..., None]
    return a * kept + (1 - a) * composite


def _wide(plane: np.ndarray, like: np.ndarray) -> np.ndarray:
    return plane[..., None] if like.ndim == 3 else plane
