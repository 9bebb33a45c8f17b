"""YCoCg of tensors, as types/colour.py has it for arrays."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def ycocg_from_rgb(rgb: Float[Tensor, "*any 3"]) -> Float[Tensor, "*any 3"]:
    """Luma Y, Co (orange against blue) and Cg (green against purple)."""
    red, green, blue = rgb.unbind(-1)
    luma = red / 4 + green / 2 + blue / 4
    return torch.stack([luma, red / 2 - blue / 2, -red / 4 + green / 2 - blue / 4], dim=-1)


def rgb_from_ycocg(ycocg: Float[Tensor, "*any 3"]) -> Float[Tensor, "*any 3"]:
    """The inverse of `ycocg_from_rgb`."""
    luma, orange, green = ycocg.unbind(-1)
    return torch.stack([luma + orange - green, luma + green, luma - orange - green], dim=-1)
