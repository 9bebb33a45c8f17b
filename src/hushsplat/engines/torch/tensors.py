"""What goes through the denoiser, as tensors: the handles of the torch engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from hushsplat.spec.state import KEPT_FRAMES, TEMPORAL, State, StateChannels, StateLayout
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation

LARGEST_VALUE = 1e9  # ours: of a colour or a depth; beyond, squares and quotients leave float32
LARGEST_VIEW = 1e4  # ours: of V; a kernel of ten thousand pixels is a mistake, and its square still fits float32


@dataclass(frozen=True)
class TensorObservation:
    """One noisy frame."""

    color: Float[Tensor, "h w 3"]  # RGB, background filled in
    depth: Float[Tensor, "h w"]  # camera-space z, world units; 0 where nothing was hit
    neural_view: Float[Tensor, "h w 4"] | None = None  # V0..V3 of the payload
    alpha: Float[Tensor, "h w"] | None = None  # share of the samples that hit anything

    @staticmethod
    def from_numpy(
        observation: Observation,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> TensorObservation:
        """The same frame as tensors."""
        view = observation.neural_view
        return TensorObservation(
            torch.tensor(observation.color, dtype=dtype, device=device),
            torch.tensor(observation.depth, dtype=dtype, device=device),
            None if view is None else torch.tensor(view, dtype=dtype, device=device),
            torch.tensor(observation.alpha, dtype=dtype, device=device),
        )

    def numpy(self) -> Observation:
        """The same frame as float32 arrays."""
        view = None if self.neural_view is None else _array(self.neural_view)
        alpha = (self.depth > 0).float() if self.alpha is None else self.alpha
        return Observation(_array(self.color), _array(self.depth), _array(alpha), view)

    def image(self) -> Image:
        """The noisy frame itself as a picture."""
        return self.numpy().image()

    def checked(self, camera: Camera) -> TensorObservation:
        """The same frame with nothing in it that is not finite; refused if it has not the camera's size."""
        height, width = self.depth.shape
        if (width, height) != (camera.width, camera.height):
            raise DenoiseError(
                f"an observation of {width}×{height} px came with a camera of {camera.width}×{camera.height} px; "
                "give the camera it was drawn with."
            )
        usable = (self.color.abs() <= LARGEST_VALUE).all(-1) & (self.depth.abs() <= LARGEST_VALUE)  # false for NaN
        view = self.neural_view
        if view is not None:
            view = torch.where(view.isfinite(), view, 0).clamp(-LARGEST_VIEW, LARGEST_VIEW)
        return TensorObservation(
            color=torch.where(usable[..., None], self.color, 0),
            depth=torch.where(usable, self.depth, 0),
            neural_view=view,
            alpha=self.alpha,
        )


@dataclass(frozen=True)
class TensorState(StateChannels):
    """The denoiser's memory; its channels have the names of its layout."""

    values: Float[Tensor, "h w 16"]
    camera: Camera
    method: str = "temporal"
    layout: StateLayout = field(default=TEMPORAL, repr=False)

    @staticmethod
    def from_numpy(
        state: State,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> TensorState:
        """The same state as a tensor."""
        return TensorState(torch.tensor(state.values, dtype=dtype, device=device), state.camera, state.method)

    def numpy(self) -> State:
        """The same state as a float32 array."""
        return State(self.method, _array(self.values), self.camera)


def resized(state: TensorState, camera: Camera) -> TensorState:
    """The state at the camera's picture size, its history cut to KEPT_FRAMES.

    Bilinear, with a wider kernel where the picture shrinks. Depths are those of the nearest pixel: between two of them
    there is no surface.
    """
    planes, size = state.values.permute(2, 0, 1)[None], (camera.height, camera.width)
    smooth = functional.interpolate(planes, size, mode="bilinear", antialias=True)
    nearest = functional.interpolate(planes, size, mode="nearest-exact")
    values = smooth[0].permute(1, 2, 0).clone()
    places = state.layout.places
    values[..., places["depth"]] = nearest[0, places["depth"]]
    for name in ("accumulated_frames", "denoised_frames"):
        values[..., places[name]].clamp_(max=KEPT_FRAMES)
    return replace(state, values=values, camera=state.camera.resized(camera.width, camera.height))


@dataclass(frozen=True)
class History(StateChannels):
    """The reprojected state, all 0 where it is not valid, and how well it fits; how well has no gradient."""

    values: Float[Tensor, "h w 16"]
    valid: Bool[Tensor, "h w"]
    motion_px: Float[Tensor, "h w 2"]  # previous - current
    relative_depth: Float[Tensor, "h w"]  # r, 0..1; 1 where not valid
    filled_depth: Float[Tensor, "h w"]  # of this frame, > 0
    static: bool  # the camera has not moved
    layout: StateLayout = field(default=TEMPORAL, repr=False)

    def compressed_motion(self, scale_px: float) -> Float[Tensor, "h w"]:
        """c, 0..1: how far a pixel moved, one half at the scale."""
        length_px = torch.linalg.vector_norm(self.motion_px, dim=-1)
        return length_px / (length_px + scale_px)


@dataclass(frozen=True)
class TensorImage:
    """A denoised picture and what lies behind it, all of it differentiable."""

    color: Float[Tensor, "h w 3"]
    views: dict[str, Float[Tensor, "h w _"]]  # by the names of spec.passes.VIEWS
    history: History  # what this frame found of the one before; training asks how good it was
    trusts: tuple[Float[Tensor, "h w"], Float[Tensor, "h w"]]  # t_s and t_h as predicted; the views have what was used

    def pixels(self) -> np.ndarray:
        """The colours to show."""
        return _array(self.color)

    def numpy(self) -> Image:
        """The same frame as float32 arrays."""
        return Image(_array(self.color), views={name: _array(view) for name, view in self.views.items()})


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to("cpu", torch.float32).numpy()
