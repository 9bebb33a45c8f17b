"""Surfels to begin with: one per point of the capture, scattered where the cameras look, or flattened ellipsoids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray as Array
from torch import Tensor

from hushsplat.training.photographs import Photographs
from hushsplat.training.settings import Stage1
from hushsplat.training.surfel_model import SurfelModel
from hushsplat.types.capture import Capture
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix

FIRST_OPACITY = 0.1  # 3DGS
NEIGHBOURS = 3  # a surfel is as large as the mean distance to these; 3DGS
ROWS_AT_ONCE = 256


def first_surfels(capture: Capture, photographs: Photographs, settings: Stage1, seed: int) -> SurfelModel:
    """Random directions, opacity 0.1, the colour of the points, as large as the gaps between them."""
    rng = np.random.default_rng([seed, 1])
    if capture.points is None or len(capture.points) < NEIGHBOURS + 1:
        points = _scattered(photographs, settings.random_points, rng)
        colors = np.full_like(points, 0.5)
    else:
        points = capture.points
        given = capture.point_colors
        colors = np.full_like(points, 0.5) if given is None else given.astype(np.float32) / 255
    if len(points) > settings.most_points:
        kept = np.sort(rng.choice(len(points), settings.most_points, replace=False))
        points, colors = points[kept], colors[kept]
    scales = neighbour_distance(torch.from_numpy(np.ascontiguousarray(points))).clamp(min=1e-7)
    quaternions = rng.normal(size=(len(points), 4)).astype(np.float32)
    sh = torch.zeros(len(points), (settings.sh_degree + 1) ** 2, 3)
    sh[:, 0] = torch.from_numpy((colors - 0.5) / np.float32(SH_C0))
    return SurfelModel(
        {
            "means": torch.tensor(points),
            "log_scales": scales.log()[:, None].repeat(1, 2),
            "quaternions": torch.nn.functional.normalize(torch.from_numpy(quaternions), dim=1),
            "logits": torch.logit(torch.full((len(points), 1), FIRST_OPACITY)),
            "sh": sh,
        }
    )


def flattened(gaussians: Gaussians) -> Gaussians:
    """The same scene of flat Gaussians; surfels stay what they are. A payload is dropped: it belonged to that one."""
    if gaussians.is_surfels:
        return replace(gaussians, payload=None)
    order = np.argsort(-gaussians.scales, axis=1, kind="stable")  # largest first, the normal last
    axes = np.take_along_axis(matrix_from_quaternion(gaussians.rotations.astype(np.float64)), order[:, None, :], axis=2)
    mirrored = np.linalg.det(axes) < 0
    axes[mirrored, :, 2] *= -1
    return replace(
        gaussians,
        scales=np.take_along_axis(gaussians.scales, order[:, :2], axis=1),
        rotations=quaternion_from_matrix(axes).astype(np.float32),
        payload=None,
    )


def neighbour_distance(points: Float[Tensor, "n 3"]) -> Float[Tensor, " n"]:
    """Root of the mean squared distance to the nearest neighbours; compares all with all."""
    count = min(NEIGHBOURS, len(points) - 1)
    if count < 1:
        return torch.ones(len(points))
    found = []
    for rows in points.split(ROWS_AT_ONCE):
        squared = torch.cdist(rows, points, compute_mode="donot_use_mm_for_euclid_dist").square()
        found.append(squared.topk(count + 1, largest=False).values[:, 1:].mean(dim=1))
    return torch.cat(found).sqrt()


def _scattered(photographs: Photographs, count: int, rng: np.random.Generator) -> Float32[Array, "n 3"]:
    """In front of the cameras, at depths from a tenth to twice the spread of the cameras."""
    cameras = [view.camera for view in photographs.train]
    chosen = rng.integers(len(cameras), size=count)
    depth = photographs.extent * rng.uniform(0.1, 2.0, count)
    spots = rng.uniform(size=(count, 2))
    points = np.empty((count, 3))
    for index, camera in enumerate(cameras):
        mine = chosen == index
        x = (spots[mine, 0] * camera.width - camera.cx) / camera.fx
        y = (spots[mine, 1] * camera.height - camera.cy) / camera.fy
        rays = np.stack([x, y, np.ones_like(x)], axis=1) * depth[mine, None]
        points[mine] = rays @ camera.world_from_camera[:3, :3].T + camera.position
    return points.astype(np.float32)
