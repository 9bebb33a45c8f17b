"""The rasterizers in plain PyTorch, in any precision: what the gradients of the engine are tested against.

As `renderers.py`, for surfels only. The cut-offs (fragments with alpha < 1/255, opaque pixels) are discontinuities
that finite differences cannot cross; `sharp=False` leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from hushsplat.engines.torch.raster import STOP, Order, SurfelTensors
from hushsplat.engines.torch.renderers import LOW_PASS_PER_PX2
from hushsplat.spec.sampling import MIN_ALPHA
from hushsplat.types import harmonics
from hushsplat.types.camera import Camera
from hushsplat.types.options import NEAR


@dataclass(frozen=True)
class TwinOptions:
    """How the twin draws."""

    order: Order = "center"
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    near: float = NEAR
    sharp: bool = True  # with the cut-offs of the engine
    stop: float = STOP


@dataclass(frozen=True)
class Region:
    """A part of the picture, px."""

    left: int
    top: int
    right: int
    bottom: int


def draw_twin(
    surfels: SurfelTensors, camera: Camera, options: TwinOptions, region: Region | None = None
) -> tuple[Float[Tensor, "h w 3"], Float[Tensor, "h w 1"], Float[Tensor, "h w 6"]]:
    """Colour, alpha and geometry, as `Rasterizer.draw`; of a region, from the surfels that can reach it."""
    if region is None:
        region = Region(0, 0, camera.width, camera.height)
    else:
        index = _reaching(surfels, camera, options.near, region)
        surfels = SurfelTensors(*(tensor[index] for tensor in surfels))
    colors = sh_colors(surfels.sh, surfels.means, torch.as_tensor(camera.position).to(surfels.means))
    looks = torch.cat([colors, facing_normals(surfels, camera)], dim=1)
    rows, columns = torch.arange(region.top, region.bottom), torch.arange(region.left, region.right)
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    pixels = (torch.stack([x, y], dim=-1).reshape(-1, 2) + 0.5).to(surfels.means)
    picture = _draw_pixels(surfels, looks, camera, pixels, options).reshape(len(rows), len(columns), 10)
    return picture[..., :3], picture[..., 3:4], picture[..., 4:]


def _draw_pixels(
    surfels: SurfelTensors,
    looks: Float[Tensor, "n 6"],  # colour and normal
    camera: Camera,
    pixels: Float[Tensor, "p 2"],
    options: TwinOptions,
) -> Float[Tensor, "p 10"]:
    distance2, depth, center_depth = _fragments(surfels, camera, pixels, options.near)
    drawn = (center_depth > options.near)[:, None]
    alpha = torch.where(drawn, surfels.opacities[:, None] * torch.exp(-distance2 / 2), 0.0)
    if options.sharp:
        alpha = torch.where(alpha < MIN_ALPHA, 0.0, alpha)
    if options.order == "center":
        order = torch.argsort(center_depth, stable=True)[:, None].expand_as(depth)
    else:
        order = torch.argsort(depth, dim=0, stable=True)
    alpha, depth = alpha.gather(0, order), depth.gather(0, order)
    ones = torch.ones_like(alpha[:1])
    before = torch.cat([ones, torch.cumprod(1 - alpha, dim=0)])  # transmittance in front of each, and behind the last
    rest = before[-1]
    if options.sharp:
        seen = before[:-1] >= options.stop
        alpha = torch.where(seen, alpha, 0.0)
        rest = torch.where(seen, 1 - alpha, 1.0).prod(dim=0)
    weight = alpha * before[:-1]
    values = looks[order]  # n p 6
    inverse = 1 / depth
    background = torch.tensor(options.background).to(looks)
    color = (weight[..., None] * values[..., :3]).sum(0) + rest[:, None] * background
    sums = [(weight * value).sum(0) for value in (depth, inverse, inverse**2)]
    normal = (weight[..., None] * values[..., 3:]).sum(0)
    return torch.cat([color, (1 - rest)[:, None], torch.stack(sums, dim=1), normal], dim=1)


def _fragments(
    surfels: SurfelTensors, camera: Camera, pixels: Float[Tensor, "p 2"], near: float
) -> tuple[Float[Tensor, "n p"], Float[Tensor, "n p"], Float[Tensor, " n"]]:
    """D², depth, depth of the centres: the ray meets the plane at z·p = c + u·a + v·b, or the low-pass is it."""
    pose = torch.as_tensor(camera.camera_from_world).to(surfels.means)
    centers = surfels.means @ pose[:3, :3].T + pose[:3, 3]
    center_depth = centers[:, 2]
    centers = torch.where((center_depth > near)[:, None], centers, torch.ones_like(centers))
    axes = pose[:3, :3] @ matrices(surfels.rotations)
    first, second, normal = axes[..., 0], axes[..., 1], axes[..., 2]
    lens = torch.tensor([camera.cx, camera.cy, camera.fx, camera.fy]).to(pixels)
    rays = torch.cat([(pixels - lens[:2]) / lens[2:], torch.ones_like(pixels[:, :1])], dim=1)
    facing = normal @ rays.T
    facing = torch.where(facing.abs() < 1e-12, torch.full_like(facing, 1e-12), facing)
    plane_depth = (normal * centers).sum(1, keepdim=True) / facing
    offset = plane_depth[..., None] * rays - centers[:, None]
    u = (offset * first[:, None]).sum(-1) / surfels.scales[:, :1]
    v = (offset * second[:, None]).sum(-1) / surfels.scales[:, 1:]
    by_plane = u**2 + v**2
    center_px = centers[:, :2] / centers[:, 2:] * lens[2:] + lens[:2]
    low_pass = LOW_PASS_PER_PX2 * ((pixels - center_px[:, None]) ** 2).sum(-1)
    plane: Bool[Tensor, "n p"] = (by_plane <= low_pass) & (plane_depth > near)
    depth = torch.where(plane, plane_depth, centers[:, 2:].expand_as(plane_depth))
    return torch.where(plane, by_plane, low_pass), depth, center_depth


def _reaching(surfels: SurfelTensors, camera: Camera, near: float, region: Region) -> Int[Tensor, " m"]:
    """The surfels whose sphere of 3.33 sigma (alpha 1/255) may be seen in the region."""
    with torch.no_grad():
        pose = torch.as_tensor(camera.camera_from_world).to(surfels.means)
        x, y, z = (surfels.means @ pose[:3, :3].T + pose[:3, 3]).T
        reach = 3.33 * surfels.scales.max(dim=1).values
        slant = 1 + (x.abs() + y.abs()) / z.clamp(min=1e-6)
        radius = reach / (z - reach).clamp(min=1e-6) * max(camera.fx, camera.fy) * slant + 4
        px, py = camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy
        inside = (px - radius < region.right) & (px + radius > region.left)
        inside &= (py - radius < region.bottom) & (py + radius > region.top)
        return ((inside | (z - reach < 0.5 * near)) & (z > near)).nonzero().flatten()


def matrices(quaternions: Float[Tensor, "n 4"]) -> Float[Tensor, "n 3 3"]:
    """Rotation matrices of unit quaternions wxyz."""
    w, x, y, z = quaternions.T
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], dim=-1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], dim=-1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], dim=-1),
    ]
    return torch.stack(rows, dim=-2)


def facing_normals(surfels: SurfelTensors, camera: Camera) -> Float[Tensor, "n 3"]:
    """World-space unit normals towards the camera."""
    axes = matrices(surfels.rotations)
    normals = normalize(torch.linalg.cross(axes[..., 0], axes[..., 1]), dim=1)
    away = ((surfels.means - torch.as_tensor(camera.position).to(normals)) * normals).sum(1, keepdim=True)
    return torch.where(away > 0, -normals, normals)


def sh_colors(
    sh: Float[Tensor, "n k 3"], means: Float[Tensor, "n 3"], eye: Float[Tensor, " 3"]
) -> Float[Tensor, "n 3"]:
    """As `hushsplat.types.harmonics.sh_colors`."""
    x, y, z = normalize(means - eye, dim=1).T
    c1, c2, c3 = harmonics.SH_C1, harmonics.SH_C2, harmonics.SH_C3
    xx, yy, zz = x * x, y * y, z * z
    columns = [
        *(torch.full_like(x, harmonics.SH_C0), -c1 * y, c1 * z, -c1 * x),
        *(c2[0] * x * y, c2[1] * y * z, c2[2] * (2 * zz - xx - yy), c2[3] * x * z, c2[4] * (xx - yy)),
        *(c3[0] * y * (3 * xx - yy), c3[1] * x * y * z, c3[2] * y * (4 * zz - xx - yy)),
        *(c3[3] * z * (2 * zz - 3 * xx - 3 * yy), c3[4] * x * (4 * zz - xx - yy), c3[5] * z * (xx - yy)),
        c3[6] * x * (xx - 3 * yy),
    ]
    basis = torch.stack(columns[: sh.shape[1]], dim=1)
    return (0.5 + torch.einsum("nk,nkc->nc", basis, sh)).clamp(min=0)
