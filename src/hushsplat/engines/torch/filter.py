"""Pass 3: the anisotropic filter over a pyramid of this frame (docs/denoiser.md, "Filter")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

LEVELS = 4  # paper, "Spatial Anisotropic Mipmap Filtering"
PROBES = (-1.5, -0.5, 0.5, 1.5)  # paper, appendix "Spatial Filter Details": in units of the minor axis
ZERO_SHOT_SCALE_PX = 2.0  # paper, "Zero-Shot Transfer": a_x = a_y
SMALLEST_AXIS_PX = 1e-4  # ours: far below what moves a probe visibly
TINY = 1e-12  # ours: keeps roots differentiable at 0; its own root is subtracted where that matters


@dataclass(frozen=True)
class Ellipse:
    """The kernel of each pixel."""

    major_px: Float[Tensor, "h w"]  # λ1 >= λ2
    minor_px: Float[Tensor, "h w"]  # λ2 > 0
    cosine: Float[Tensor, "h w"]  # of the angle from the x axis to the major one
    sine: Float[Tensor, "h w"]

    def stacked(self) -> Float[Tensor, "h w 4"]:
        """As one picture."""
        return torch.stack([self.major_px, self.minor_px, self.cosine, self.sine], dim=-1)


@dataclass(frozen=True)
class Pyramid:
    """All levels of a picture in one table of texels, the finest first."""

    texels: Float[Tensor, "n c"]
    widths: Int[Tensor, " levels"]
    heights: Int[Tensor, " levels"]
    starts: Int[Tensor, " levels"]  # of each level in the table


def filter_color(color: Float[Tensor, "h w c"], ellipse: Ellipse) -> Float[Tensor, "h w c"]:
    """Four probes along the major axis of each pixel's ellipse, from the levels that fit its minor axis."""
    pyramid = build_pyramid(color)
    level = torch.log2(ellipse.minor_px).clamp(0, LEVELS - 1)
    ratio = ellipse.minor_px / ellipse.major_px
    total, total_weight = torch.zeros_like(color), torch.zeros_like(level)
    for offset in PROBES:
        step_px = offset * ellipse.minor_px
        weight = torch.exp(-0.5 * (offset * ratio) ** 2)
        probe = sample(pyramid, step_px * ellipse.cosine, step_px * ellipse.sine, level)
        total, total_weight = total + weight[..., None] * probe, total_weight + weight
    return total / total_weight[..., None]


def learned_ellipse(neural_view: Float[Tensor, "h w 4"], lean: float) -> Ellipse:
    """The kernel that the payload asks for."""
    return ellipse_of(*kernel_scales(neural_view), lean)


def kernel_scales(
    neural_view: Float[Tensor, "h w 4"],
) -> tuple[Float[Tensor, "h w"], Float[Tensor, "h w"], Float[Tensor, "h w"]]:
    """a_x, a_y and ρ (paper, appendix "Spatial Filter Details")."""
    up, right, forward, blur = binomial_blur(neural_view).unbind(-1)  # V0..V3
    floor = functional.softplus(blur)
    return functional.relu(right) + floor, functional.relu(up) + floor, torch.tanh(forward)


def zero_shot_ellipse(like: Float[Tensor, "h w"]) -> Ellipse:
    """The fixed kernel for scenes without a payload."""
    scale = torch.full_like(like, ZERO_SHOT_SCALE_PX)
    return ellipse_of(scale, scale, torch.zeros_like(like), 0.0)


def ellipse_of(
    scale_x: Float[Tensor, "h w"],  # a_x
    scale_y: Float[Tensor, "h w"],  # a_y
    correlation: Float[Tensor, "h w"],  # ρ
    lean: float,  # towards x, of the mean of both axes
) -> Ellipse:
    """Axes and direction of the covariance [a_x z; z a_y], z = ρ √(a_x a_y)."""
    covariance = correlation * torch.sqrt(scale_x * scale_y + 1e-8)
    mean, half_difference = (scale_x + scale_y) / 2, (scale_x - scale_y) / 2
    radius = torch.sqrt(half_difference**2 + covariance**2 + TINY) - TINY**0.5
    minor = (mean - radius).clamp(min=SMALLEST_AXIS_PX)
    major = torch.maximum(mean + radius, minor)

    # The angle's double has the direction (along_x, covariance); halving it by adding its length to the larger side
    # loses no digits. Both cases are the same line, and the probes lie on either side of the pixel.
    along_x = half_difference + lean * mean
    long_side = torch.sqrt(along_x**2 + covariance**2 + TINY) + along_x.abs()
    length = torch.sqrt(long_side**2 + covariance**2)
    rather_x = along_x >= 0
    cosine = torch.where(rather_x, long_side, covariance) / length
    sine = torch.where(rather_x, covariance, long_side) / length
    return Ellipse(major, minor, cosine, sine)


def binomial_blur(values: Float[Tensor, "h w c"]) -> Float[Tensor, "h w c"]:
    """[1 2 1]ᵀ[1 2 1] / 16, edges repeated."""
    planes = functional.pad(values.permute(2, 0, 1)[None], (1, 1, 1, 1), mode="replicate")
    rows = (planes[..., :-2, :] + 2 * planes[..., 1:-1, :] + planes[..., 2:, :]) / 4
    return ((rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:]) / 4)[0].permute(1, 2, 0)


def build_pyramid(color: Float[Tensor, "h w c"]) -> Pyramid:
    """Each level is the mean of 2×2 texels of the one before, an odd last row or column repeated."""
    levels = [color.permute(2, 0, 1)[None]]
    for _ in range(LEVELS - 1):
        finer = levels[-1]
        height, width = finer.shape[-2:]
        even = functional.pad(finer, (0, width % 2, 0, height % 2), mode="replicate")
        levels.append(functional.avg_pool2d(even, 2))
    sizes = torch.tensor([level.shape[-2:] for level in levels], device=color.device)
    counts = sizes[:, 0] * sizes[:, 1]
    return Pyramid(
        texels=torch.cat([level[0].flatten(1).T for level in levels]),
        widths=sizes[:, 1],
        heights=sizes[:, 0],
        starts=counts.cumsum(0) - counts,
    )


def sample(
    pyramid: Pyramid,
    offset_x_px: Float[Tensor, "h w"],
    offset_y_px: Float[Tensor, "h w"],
    level: Float[Tensor, "h w"],
) -> Float[Tensor, "h w c"]:
    """Trilinear: each pixel's centre plus an offset in px of level 0, between two levels; edges are clamped."""
    fine = torch.floor(level).clamp(max=LEVELS - 2)
    blend = (level - fine)[..., None]
    lower = _bilinear(pyramid, offset_x_px, offset_y_px, fine.long())
    upper = _bilinear(pyramid, offset_x_px, offset_y_px, fine.long() + 1)
    return torch.lerp(lower, upper, blend)


def _bilinear(
    pyramid: Pyramid,
    offset_x_px: Float[Tensor, "h w"],
    offset_y_px: Float[Tensor, "h w"],
    level: Int[Tensor, "h w"],
) -> Float[Tensor, "h w c"]:
    height, width = level.shape
    columns = torch.arange(width, device=level.device)[None, :]
    rows = torch.arange(height, device=level.device)[:, None]
    left, right, part_x = _neighbours(columns, offset_x_px, level, pyramid.widths[level])
    top, bottom, part_y = _neighbours(rows, offset_y_px, level, pyramid.heights[level])
    stride, start = pyramid.widths[level], pyramid.starts[level]

    def texel(row: Tensor, column: Tensor) -> Tensor:
        picked = pyramid.texels.index_select(0, (start + row * stride + column).flatten())
        return picked.view(height, width, -1)

    upper = torch.lerp(texel(top, left), texel(top, right), part_x)
    lower = torch.lerp(texel(bottom, left), texel(bottom, right), part_x)
    return torch.lerp(upper, lower, part_y)


def _neighbours(
    pixel: Int[Tensor, "_ _"],
    offset_px: Float[Tensor, "h w"],
    level: Int[Tensor, "h w"],
    size: Int[Tensor, "h w"],
) -> tuple[Int[Tensor, "h w"], Int[Tensor, "h w"], Float[Tensor, "h w 1"]]:
    """Along one direction: the texels before and after a place, and how far it is from the first to the second.

    The pixel's integer place is kept apart from the small offset, so that rounding does not grow with the picture.
    """
    texel = pixel >> level
    rest = pixel - (texel << level)  # of the pixel inside its texel
    place = (rest + 0.5 + offset_px) / (1 << level) - 0.5  # from the centre of that texel
    before = torch.floor(place)
    first = texel + before.detach().long()
    last = size - 1
    return (
        torch.minimum(first.clamp(min=0), last),
        torch.minimum((first + 1).clamp(min=0), last),
        (place - before)[..., None],
    )
