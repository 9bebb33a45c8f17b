"""The loss of stage 4 as a list of its terms (paper, "Joint optimisation"), and the disocclusion mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from numpy import ndarray as Array
from torch import Tensor

from hushsplat.engines.torch.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.engines.torch.filter import Ellipse, filter_color, kernel_scales
from hushsplat.engines.torch.gate import standard_error
from hushsplat.engines.torch.lpips import Lpips
from hushsplat.engines.torch.ops import ssim
from hushsplat.engines.torch.reproject import move_pixels, relative_difference
from hushsplat.engines.torch.smooth import mixed, neighbour_weights
from hushsplat.engines.torch.tensors import TensorImage, TensorObservation
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.training.settings import Stage4
from hushsplat.training.trust_loss import trust_loss
from hushsplat.types.camera import Camera
from hushsplat.types.errors import TrainingError
from hushsplat.types.image import Image
from hushsplat.types.motion import CameraMotion

LEAST_DEPTH = 1e-6  # world units: keeps relative differences finite


class CleanPicture(NamedTuple):
    """A blended picture with alpha and depth."""

    color: Float32[Array, "h w 3"]
    alpha: Float32[Array, "h w"]
    depth: Float32[Array, "h w"]

    @staticmethod
    def of(image: Image) -> CleanPicture:
        """The parts of an image."""
        if image.alpha is None or image.depth is None:
            raise TrainingError("a clean picture needs alpha and depth.")
        return CleanPicture(image.color, image.alpha, image.depth)


@dataclass(frozen=True)
class JointLoss:
    """The weighted terms by name; a term that does not apply to a frame is left out."""

    settings: Stage4
    denoiser: DenoiserSettings  # of the passes that are trained
    lpips: Lpips | None = None
    threads: int = 0

    def terms(
        self,
        frame: TensorImage,  # denoised, differentiable
        observation: TensorObservation,
        target: Float[Tensor, "h w 3"],
        disoccluded: Bool[Tensor, "h w"] | None,
        near_static: bool,
    ) -> dict[str, Float[Tensor, ""]]:
        """All terms of one frame."""
        settings, views = self.settings, frame.views
        composite, trusts = views["composite"], frame.trusts
        terms = {"l1": (composite - target).abs().mean()}
        if settings.ssim:
            terms["ssim"] = settings.ssim * (1 - ssim(composite, target, self.threads))
        if settings.lpips and self.lpips is not None:
            terms["lpips"] = settings.lpips * self.lpips(*(x.permute(2, 0, 1)[None] for x in (composite, target)))[0]
        if settings.accumulated:
            terms["accumulated"] = settings.accumulated * (views["accumulated"] - target).abs().mean()
        if settings.symmetry and observation.neural_view is not None:
            scale_x, scale_y, _ = kernel_scales(observation.neural_view)
            terms["symmetry"] = settings.symmetry * (scale_x - scale_y).abs().mean()
        if settings.trust_loss and frame.history.valid.any():
            terms["trust_loss"] = settings.trust_loss * both_trust_losses(frame, observation, target, self.denoiser)
        if near_static and frame.history.valid.any():
            weight = settings.transfer_near_static if settings.transfer else settings.near_static
            terms["near_static"] = weight * (2 - trusts[0].mean() - trusts[1].mean())
        if disoccluded is not None and disoccluded.any():
            weight = settings.transfer_disocclusion if settings.transfer else settings.disocclusion
            terms["disocclusion"] = weight * ((trusts[0] + trusts[1]) * disoccluded).mean()
        return terms


def both_trust_losses(
    frame: TensorImage, observation: TensorObservation, target: Float[Tensor, "h w 3"], config: DenoiserSettings
) -> Float[Tensor, ""]:
    """Of both paths; the denoised one against the filtered target, since the blur is common to all it averages."""
    history, views = frame.history, frame.views
    ellipse = Ellipse(*views["ellipse"].detach().unbind(-1))
    soft = rgb_from_ycocg(filter_color(ycocg_from_rgb(target), ellipse))
    denoised = trust_loss(
        history.denoised_frames,
        frame.trusts[1],
        squared(rgb_from_ycocg(history.denoised) - soft),
        squared(views["filtered"].detach() - soft),
        history.valid,
        config.history,
    )
    if history.static:  # the accumulated path's trust is 1, whatever the network predicts
        return denoised
    # Errors are compared after smoothing, which removes most of a sample's noise and nothing of a wrong history.
    luma = ycocg_from_rgb(views["accumulated"].detach())[..., 0]
    error = standard_error(views["variance"][..., 0].detach(), views["accumulated_frames"][..., 0].detach() - 1, config)
    weights = neighbour_weights(luma, error, config)
    return denoised + trust_loss(
        history.accumulated_frames,
        frame.trusts[0],
        squared(mixed(rgb_from_ycocg(history.accumulated) - target, weights)),
        squared(mixed(observation.color - target, weights)),
        history.valid,
        config.history,
    )


@torch.no_grad()
def disocclusion(
    picture: CleanPicture, camera: Camera, before: CleanPicture, camera_before: Camera, settings: Stage4
) -> Bool[Tensor, "h w"]:
    """Opaque pixels where the clean pictures of two frames differ in reprojected depth and in colour."""
    motion = CameraMotion.between(camera_before, camera, 0.0)
    depth = torch.from_numpy(np.where(picture.depth > 0, picture.depth, DenoiserSettings().far_depth))
    motion_px, depth_before = move_pixels(depth, camera_before, camera, motion)
    height, width = depth.shape
    column = torch.arange(width) + torch.floor(motion_px[..., 0] + 0.5).long()
    row = torch.arange(height)[:, None] + torch.floor(motion_px[..., 1] + 0.5).long()
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = row.clamp(0, height - 1), column.clamp(0, width - 1)
    seen = torch.from_numpy(before.depth)[place].clamp(min=LEAST_DEPTH)
    apart = relative_difference(depth_before.clamp(min=LEAST_DEPTH), seen) > settings.disocclusion_depth
    colors = (torch.from_numpy(picture.color) - torch.from_numpy(before.color)[place]).abs().amax(-1)
    opaque = torch.from_numpy(picture.alpha) >= settings.disocclusion_opacity
    return inside & apart & opaque & (colors > settings.disocclusion_color)


def squared(difference: Float[Tensor, "h w 3"]) -> Float[Tensor, "h w"]:
    """Mean over the channels."""
    return difference.square().mean(-1)
