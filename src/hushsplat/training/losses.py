"""Losses of stages 1 to 3: L1 and SSIM against a photograph, and the two regularisers of 2DGS."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from hushsplat.engines.torch.ops import ssim
from hushsplat.types.camera import Camera

NORMAL = slice(3, 6)  # places in Drawing.geometry
DEPTH, INVERSE_DEPTH, INVERSE_DEPTH_2 = 0, 1, 2


def photometric_loss(
    color: Float[Tensor, "h w 3"],
    target: Float[Tensor, "h w 3"],
    dssim_share: float,  # 0..1, the rest is L1
    threads: int = 0,
) -> Float[Tensor, ""]:
    """(1 - share) · L1 + share · (1 - SSIM), as 3DGS."""
    loss = (1 - dssim_share) * (color - target).abs().mean()
    return loss + dssim_share * (1 - ssim(color, target, threads)) if dssim_share else loss


def distortion(
    geometry: Float[Tensor, "h w 6"], alpha: Float[Tensor, "h w 1"], near: float, far: float
) -> Float[Tensor, ""]:
    """Depth distortion of 2DGS: Σ wᵢwⱼ(mᵢ - mⱼ)² over the pairs of a pixel's fragments, m their depth from 0 to 1.

    m = far / (far - near) · (1 - near / z) is linear in 1 / z, so that the pairs come down to three sums per pixel.
    """
    slope = far * near / (far - near)
    first, second = geometry[..., INVERSE_DEPTH], geometry[..., INVERSE_DEPTH_2]
    return slope**2 * (alpha[..., 0] * second - first**2).mean()


def normal_consistency(
    geometry: Float[Tensor, "h w 6"], alpha: Float[Tensor, "h w 1"], camera: Camera
) -> Float[Tensor, ""]:
    """Normal consistency of 2DGS: Σ wᵢ(1 - nᵢ·N), N the normal of the surface that the expected depth makes."""
    depth = geometry[..., DEPTH] / alpha[..., 0].clamp(min=1e-6)
    surface = depth_normals(depth, camera)
    agreement = (geometry[..., NORMAL] * surface).sum(-1)
    return (alpha[..., 0].detach() * (alpha[..., 0] - agreement))[1:-1, 1:-1].mean()


def depth_normals(depth: Float[Tensor, "h w"], camera: Camera) -> Float[Tensor, "h w 3"]:
    """World-space normals of a depth map by central differences, towards the camera; zeros at the border."""
    y = (torch.arange(camera.height, device=depth.device) + 0.5 - camera.cy) / camera.fy
    x = (torch.arange(camera.width, device=depth.device) + 0.5 - camera.cx) / camera.fx
    rays = torch.stack([x.expand(len(y), -1), y[:, None].expand(-1, len(x)), torch.ones_like(depth)], dim=-1)
    points = depth[..., None] * rays.to(depth) @ torch.as_tensor(camera.world_from_camera[:3, :3].T).to(depth)
    down, right = points[2:, 1:-1] - points[:-2, 1:-1], points[1:-1, 2:] - points[1:-1, :-2]
    normals = functional.normalize(torch.linalg.cross(down, right), dim=-1)
    return functional.pad(normals.permute(2, 0, 1), (1, 1, 1, 1)).permute(1, 2, 0)
