"""Scenes of everything that can go wrong on a screen, and the comparison of the engine's winners with the twin's."""

from __future__ import annotations

import numpy as np

from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix

NEAR = 0.2


def turned_pose(rng: np.random.Generator) -> np.ndarray:
    """A camera anywhere, turned anyhow."""
    pose = np.eye(4)
    pose[:3, :3] = matrix_from_quaternion(rng.normal(size=4))
    pose[:3, 3] = rng.normal(size=3)
    return pose


def odd_camera(rng: np.random.Generator, width: int = 97, height: int = 61) -> Camera:
    """Pixels that are not square, a principal point that is not in the middle, and a size that no tile divides."""
    return Camera(width, height, 0.7 * width, 0.9 * width, 0.42 * width, 0.55 * height, turned_pose(rng))


def crowd(rng: np.random.Generator, camera: Camera, columns: int, count: int = 260, coefficients: int = 4) -> Gaussians:
    """From a hundredth of a pixel to larger than the screen, faint and opaque, behind the camera, through the near
    plane, edge-on, and needles: mixed, with the large ones mostly far away or faint so that they hide not all others.
    """
    depth = np.exp(rng.uniform(np.log(0.25), np.log(30), count))
    behind = rng.random(count) < 0.08
    depth[behind] = rng.uniform(-3, NEAR, behind.sum())
    spread = np.abs(depth)
    centers = np.stack([rng.uniform(-1, 1, count) * spread, rng.uniform(-0.8, 0.8, count) * spread, depth], axis=1)
    sizes = np.exp(rng.uniform(np.log(1e-4), np.log(1), count)) * spread
    shapes = rng.uniform(0.3, 1, (count, columns))
    needles = rng.random(count) < 0.3
    shapes[needles] = np.exp(rng.uniform(np.log(3e-3), 0, (needles.sum(), columns)))
    opacities = rng.uniform(0.005, 1, count) * np.where(sizes > 0.2 * spread, 0.3, 1)
    opacities[rng.random(count) < 0.1] = 1
    rotations = matrix_from_quaternion(rng.normal(size=(count, 4)))
    edge_on = rng.random(count) < 0.15
    rotations[edge_on] = facing_sideways(rng, centers[edge_on])
    return from_camera_space(camera, centers, sizes[:, None] * shapes, rotations, opacities, rng, coefficients)


def beside(rng: np.random.Generator, camera: Camera, columns: int, side: int, count: int = 128) -> Gaussians:
    """A chunk beyond one edge of the picture whose bounds reach behind the eye; the camera is not turned.

    `side` is 0 to 3: left, right, top, bottom. All centres lie outside, and some are so near that they reach inside.
    """
    focal, center, size = (camera.fx, camera.cx, camera.width) if side < 2 else (camera.fy, camera.cy, camera.height)
    edge, outward = (0, -1) if side % 2 == 0 else (size, 1)
    depth = rng.uniform(3.999, 4, count)
    across = (edge + outward * rng.uniform(0.1, 1.5, count) - center) / focal * depth
    along = rng.uniform(-0.5, 0.5, count) * depth
    depth[0] = -1.0
    centers = np.stack([across, along, depth] if side < 2 else [along, across, depth], axis=1)
    scales = 1e-3 * rng.uniform(0.5, 1, (count, columns))  # a fraction of a pixel, and all in one chunk
    rotations = matrix_from_quaternion(rng.normal(size=(count, 4)))
    return from_camera_space(camera, centers, scales, rotations, rng.uniform(0.3, 1, count), rng, 1)


def alone(rng: np.random.Generator, camera: Camera, columns: int) -> Gaussians:
    """One Gaussian, more extreme than those of the crowd: nothing hides what is wrong with it."""
    depth = np.exp(rng.uniform(np.log(NEAR), np.log(30)))
    if rng.random() < 0.25:
        depth = NEAR + np.exp(rng.uniform(np.log(1e-3), 0))
    reach = 1.2 if rng.random() < 0.8 else 10
    center = np.array([rng.uniform(-reach, reach) * depth, rng.uniform(-reach, reach) * depth, depth])
    size = np.exp(rng.uniform(np.log(1e-3), np.log(10))) * depth
    scales = size * (rng.uniform(0.3, 1, columns) if rng.random() < 0.25 else 10 ** rng.uniform(-3, 0, columns))
    rotation = matrix_from_quaternion(rng.normal(size=(1, 4)))
    if rng.random() < 0.2:
        rotation = facing_sideways(rng, center[None])
    opacity = np.array([1.0 if rng.random() < 0.5 else rng.uniform(0.005, 1)])
    return from_camera_space(camera, center[None], scales[None], rotation, opacity, rng, 1)


def facing_sideways(rng: np.random.Generator, centers: np.ndarray) -> np.ndarray:
    """Rotations whose third axis is at a right angle to the ray of the centre, or nearly so."""
    rays = centers / np.linalg.norm(centers, axis=1, keepdims=True)
    across = np.cross(rays, rng.normal(size=rays.shape))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    normal = across + rays * 10 ** rng.uniform(-7, -1, (len(rays), 1))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    first = np.cross(normal, rng.normal(size=rays.shape))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([first, np.cross(normal, first), normal], axis=-1)


def from_camera_space(camera, centers, scales, rotations, opacities, rng, coefficients) -> Gaussians:
    """Gaussians that the camera sees at these places, of random colours."""
    pose = camera.world_from_camera
    arrays = (
        centers @ pose[:3, :3].T + pose[:3, 3],
        scales,
        quaternion_from_matrix(pose[:3, :3] @ rotations),
        opacities,
        rng.normal(size=(len(centers), coefficients, 3)) * 0.6,
    )
    return Gaussians(*(array.astype(np.float32) for array in arrays))


def away_from_pixel_borders(gaussians: Gaussians, camera: Camera) -> Gaussians:
    """Those whose centre's pixel is the same in float32 and in float64: the pattern is anchored to it."""
    camera_from_world = camera.camera_from_world
    x, y, z = (gaussians.means.astype(np.float64) @ camera_from_world[:3, :3].T + camera_from_world[:3, 3]).T
    z = np.where(z > NEAR, z, np.inf)
    center_px = np.stack([camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy], axis=1)
    margin = 1e-3 + 1e-5 * np.abs(center_px)  # float32 is off by 1e-6 of it, times a few
    return gaussians.take(np.flatnonzero((np.abs(center_px - np.round(center_px)) > margin).all(axis=1)))
