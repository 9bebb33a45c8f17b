"""Frames made for the tests of the denoiser: a textured plane with known colours, and plain noise."""

from __future__ import annotations

import numpy as np
import torch

from hushsplat.engines.torch.tensors import TensorObservation, TensorState
from hushsplat.types.camera import Camera

# A tilted plane in front of the cameras: points p with NORMAL · p = OFFSET.
NORMAL = np.array([0.25, -0.15, 1.0])
OFFSET = 4.0


def camera_at(x=0.0, y=0.0, z=0.0, turn=0.0, width=48, height=36, zoom=1.0) -> Camera:
    """Looks at the plane; `turn` is a rotation about the y axis in radians."""
    cos, sin = np.cos(turn), np.sin(turn)
    pose = np.eye(4)
    pose[:3, :3] = [[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]]
    pose[:3, 3] = (x, y, z)
    return Camera(width, height, 50.0 * zoom, 47.0 * zoom, width / 2 + 0.7, height / 2 - 0.4, pose)


def plane_points(camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Where each pixel's ray meets the plane: world points [h, w, 3] and camera-space depths [h, w]."""
    x = (np.arange(camera.width) + 0.5 - camera.cx) / camera.fx
    y = (np.arange(camera.height) + 0.5 - camera.cy) / camera.fy
    rays = np.stack([*np.meshgrid(x, y), np.ones((camera.height, camera.width))], axis=-1)
    directions = rays @ camera.world_from_camera[:3, :3].T
    depth = (OFFSET - NORMAL @ camera.position) / (directions @ NORMAL)
    return camera.position + directions * depth[..., None], depth


def plane_color(points: np.ndarray) -> np.ndarray:
    """A smooth texture of the plane."""
    u, v = points[..., 0], points[..., 1]
    return np.stack(
        [0.5 + 0.3 * np.sin(2 * u + v), 0.5 + 0.3 * np.cos(3 * v - u), 0.4 + 0.2 * np.sin(u) * np.cos(2 * v)], -1
    )


def plane_observation(camera: Camera, noise=0.0, seed=0, dtype=torch.float64, view=True) -> TensorObservation:
    """The plane as the camera sees it, with noise and a random payload."""
    rng = np.random.default_rng(seed)
    points, depth = plane_points(camera)
    color = plane_color(points) + noise * rng.standard_normal((*depth.shape, 3))
    neural_view = rng.uniform(0, 1.5, (*depth.shape, 4)) if view else None
    return TensorObservation(
        torch.tensor(color, dtype=dtype),
        torch.tensor(depth, dtype=dtype),
        None if neural_view is None else torch.tensor(neural_view, dtype=dtype),
    )


def random_observation(width=7, height=5, seed=0, dtype=torch.float64) -> TensorObservation:
    """Noise of every kind, a few holes in the depth."""
    rng = np.random.default_rng(seed)
    depth = rng.uniform(1, 5, (height, width)) * (rng.random((height, width)) > 0.2)
    return TensorObservation(
        torch.tensor(rng.random((height, width, 3)), dtype=dtype),
        torch.tensor(depth, dtype=dtype),
        torch.tensor(rng.uniform(-1, 2, (height, width, 4)), dtype=dtype),
    )


def random_state(camera: Camera, seed=0, dtype=torch.float64) -> TensorState:
    """Values within the bounds that a state keeps, nothing at an end of its range."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.2, 0.8, (camera.height, camera.width, 16))
    values[..., 3] = values[..., 0] ** 2 + rng.uniform(0.001, 0.01, values.shape[:2])
    values[..., 4] = rng.uniform(2, 100, values.shape[:2])
    values[..., 9] = rng.uniform(2, 20, values.shape[:2])
    values[..., 14] = rng.uniform(1, 5, values.shape[:2])
    values[..., 15] = 0
    return TensorState(torch.tensor(values, dtype=dtype), camera)
