"""Visibility to observation, differentiable in the payload."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray as Array
from torch import Tensor

from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import sh_colors
from hushsplat.types.observation import Observation, Visibility
from hushsplat.types.options import RenderOptions


def decode(visibility: Visibility, gaussians: Gaussians, camera: Camera, options: RenderOptions) -> Observation:
    """Means over the samples: colour (background where nothing was hit), depth of what was hit, alpha, neural view."""
    _check_fits(visibility, len(gaussians), camera)
    ids, hit = visibility.primitive_id, visibility.primitive_id >= 0
    colors = sh_colors(gaussians.sh.astype(np.float64), gaussians.means.astype(np.float64), camera.position)
    background = np.array([options.background])
    color = np.concatenate([colors, background])[ids].mean(axis=0)  # -1 picks the last row
    hits = hit.sum(axis=0)
    depth = visibility.depth.sum(axis=0) / np.maximum(hits, 1)
    view = None
    if gaussians.payload is not None:
        view = neural_view(torch.from_numpy(gaussians.payload.copy()), visibility, camera).numpy()
    return Observation(_float32(color), _float32(depth), _float32(hits / len(ids)), view)


def neural_view(payload: Float[Tensor, "n 10"], visibility: Visibility, camera: Camera) -> Float[Tensor, "h w 4"]:
    """V0..V3, mean over the samples, 0 where nothing was hit (paper, "Spatial Anisotropic Mipmap Filtering")."""
    planes = zip(visibility.primitive_id, visibility.depth, strict=True)
    views = [_plane_view(payload, torch.from_numpy(ids), torch.from_numpy(depth), camera) for ids, depth in planes]
    return torch.stack(views).mean(dim=0)


def _plane_view(payload: Tensor, ids: Tensor, depth: Tensor, camera: Camera) -> Float[Tensor, "h w 4"]:
    hit = ids >= 0
    seen = payload[ids[hit].long()]
    right, down, forward = torch.from_numpy(camera.world_from_camera[:3, :3].T.astype(np.float32))
    values = torch.stack(
        [
            (seen[:, 0:3] @ -down).abs() / depth[hit],
            (seen[:, 3:6] @ right).abs() / depth[hit],
            (seen[:, 6:9] @ forward).abs(),
            seen[:, 9],
        ],
        dim=1,
    )
    return torch.zeros(*ids.shape, 4).index_put((hit,), values)


def _check_fits(visibility: Visibility, count: int, camera: Camera) -> None:
    """The sample must be of this scene and of this camera's size."""
    largest = int(visibility.primitive_id.max(initial=-1))
    if largest >= count:
        raise RenderError(f"primitive {largest} was seen, but there are {count}; give the scene that was drawn.")
    height, width = visibility.primitive_id.shape[1:]
    if (height, width) != (camera.height, camera.width):
        raise RenderError(
            f"a visibility sample of {width}×{height} px cannot be decoded with a camera of "
            f"{camera.width}×{camera.height} px; give the camera it was drawn with."
        )


def _float32(values: Array) -> Float32[Array, "*shape"]:
    return values.astype(np.float32)
