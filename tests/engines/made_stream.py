"""A made stream: a patterned wall, a board before it that half of the samples miss, holes, and a camera that walks."""

import numpy as np

from hushsplat.types.camera import Camera
from hushsplat.types.observation import Observation

WALL, BOARD = 4.0, 2.5  # world units along z


def camera_at(frame, width=48, height=40, step=0.03):
    """Walks sideways and a little forwards, and turns."""
    eye = np.array([step * frame, 0.02 * np.sin(frame), 0.3 * step * frame])
    return Camera.look_at(
        eye, eye + np.array([0.3 * step * frame, 0.05, 4.0]), width=width, height=height, fov_y_deg=60.0
    )


def observe(camera, frame, *, noise=0.3, holes=0.03):
    """What a camera sees in a frame, one sample a pixel."""
    rng = np.random.default_rng(1000 + frame)
    y, x = np.mgrid[: camera.height, : camera.width] + 0.5
    rays = np.stack([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, np.ones_like(x)], axis=-1)
    rays = rays @ camera.world_from_camera[:3, :3].T
    near = (BOARD - camera.position[2]) / rays[..., 2]
    on_board = camera.position + near[..., None] * rays
    board = (np.abs(on_board[..., :2]) < 0.6).all(axis=-1) & (rng.random(x.shape) < 0.5)
    depth = np.where(board, near, (WALL - camera.position[2]) / rays[..., 2])
    place = camera.position + depth[..., None] * rays
    color = 0.5 + 0.4 * np.sin(
        place @ np.array([[3.0, 5.0, 1.0], [2.0, -4.0, 6.0], [0.0, 1.0, 2.0]]) + board[..., None]
    )
    color = np.maximum(color + noise * rng.standard_normal(color.shape), 0)
    hit = rng.random(x.shape) >= holes
    if camera.height > 6:
        hit[2:6, 3:9] = False  # a hole that no neighbour fills
    depth = np.where(hit, depth, 0)
    return Observation(
        np.where(hit[..., None], color, 0).astype(np.float32), depth.astype(np.float32), hit.astype(np.float32)
    )
