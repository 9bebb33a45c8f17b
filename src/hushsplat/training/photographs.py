"""Training and held-out views: photographs with cameras, or renders where there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray as Array
from torch import Tensor

from hushsplat.engines.base import engine
from hushsplat.home import orbit_scene
from hushsplat.io.captures.capture import covered_pixels, load_photograph
from hushsplat.training.settings import TrainSettings
from hushsplat.types.camera import Camera
from hushsplat.types.capture import HOLD_OUT_EVERY, Capture, View
from hushsplat.types.errors import TrainingError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import to_bytes
from hushsplat.types.options import RenderOptions

EXTENT_MARGIN = 1.1  # 3DGS: the extent of a scene is this times the farthest camera's distance from the mean one


@dataclass(frozen=True)
class TargetView:
    """One view and its photograph."""

    name: str
    camera: Camera
    pixels: UInt8[Array, "h w 3"]
    covered: Bool[Array, "h w"] | None = None  # None: the photograph shows every pixel

    def target(self, device: torch.device | str = "cpu") -> Float[Tensor, "h w 3"]:
        """0..1."""
        return torch.from_numpy(self.pixels).to(device).float() / 255

    def compared(self, color: Float[Tensor, "h w 3"], target: Float[Tensor, "h w 3"]) -> Float[Tensor, "h w 3"]:
        """The picture where the photograph shows something, the target elsewhere: nothing is learned there."""
        if self.covered is None:
            return color
        return torch.where(torch.from_numpy(self.covered).to(color.device)[..., None], color, target)


@dataclass(frozen=True)
class Photographs:
    """Views to learn from and views to measure on."""

    train: Sequence[TargetView]
    held_out: Sequence[TargetView]

    def at_step(self, index: int, seed: int) -> TargetView:
        """Every view once in a random order, then all again in another one; depends on nothing but the numbers."""
        epoch, place = divmod(index, len(self.train))
        order = np.random.default_rng([seed, epoch]).permutation(len(self.train))
        return self.train[int(order[place])]

    @property
    def extent(self) -> float:
        """World units: how far the cameras are spread."""
        places = np.array([view.camera.position for view in self.train])
        spread = np.linalg.norm(places - places.mean(axis=0), axis=1).max()
        return float(EXTENT_MARGIN * spread) or 1.0


def load_photographs(
    capture: Capture, settings: TrainSettings, loaded: Callable[[], None] = lambda: None
) -> Photographs:
    """All photographs at the width of training; `loaded` is called after each."""
    if settings.hold_out and len(capture.train) < 1:
        raise TrainingError(f"{capture.folder}: has {len(capture.views)} view; training needs at least 2.")

    def read(view: View) -> TargetView:
        width = min(settings.width, view.camera.width)
        picture, camera = load_photograph(view, width=width, background=settings.background)
        covered = covered_pixels(view, width=width)
        loaded()
        return TargetView(view.name, camera, to_bytes(picture), None if covered.all() else covered)

    train = capture.train if settings.hold_out else capture.views
    return Photographs([read(view) for view in train], [read(view) for view in capture.held_out])


def made_up_photographs(gaussians: Gaussians, settings: TrainSettings) -> Photographs:
    """Sorted renders of the scene itself, from cameras on rings around its bulk."""
    count = settings.stage3.made_up_views
    options = RenderOptions(settings.background, threads=settings.threads)
    drawing, views = engine("cpu"), []
    scene = drawing.upload(gaussians, options)
    for index, camera in enumerate(made_up_cameras(gaussians, count, settings.width, settings.seed)):
        color = drawing.render(scene, camera, "reference", options, with_depth=False).numpy().color
        views.append(TargetView(f"{index:04d}", camera, to_bytes(color)))
    kept = [view for index, view in enumerate(views) if index % HOLD_OUT_EVERY]
    return Photographs(kept, views[::HOLD_OUT_EVERY])


def made_up_cameras(gaussians: Gaussians, count: int, width: int, seed: int) -> list[Camera]:
    """Around the scene as `orbit_scene` goes, nearer and farther, higher and lower, looking a little aside."""
    height = max(1, round(width * 2 / 3))
    track = orbit_scene(gaussians, width, height, seconds=count / 10, fps=10.0)
    rng = np.random.default_rng([seed, 77])
    poses = track.world_from_camera
    centre = poses[:, :3, 3].mean(axis=0)
    upward = -poses[:, :3, 1].mean(axis=0)
    cameras = []
    for index in range(count):
        eye = poses[index % len(poses), :3, 3]
        target = _nearest_point(poses[index % len(poses)], centre)
        radius = float(np.linalg.norm(eye - target))
        away = eye - target + upward * rng.uniform(-0.25, 0.5) * radius
        moved = target + away * rng.uniform(0.45, 1.1)
        aside = target + rng.normal(0, 0.12 * radius, 3)
        cameras.append(Camera.look_at(moved, aside, upward, width=width, height=height, fov_y_deg=50.0))
    return cameras


def _nearest_point(pose: Float[Array, "4 4"], centre: Float[Array, " 3"]) -> Float[Array, " 3"]:
    """The point of the view's axis that is nearest to `centre`."""
    eye, forward = pose[:3, 3], pose[:3, 2]
    return eye + max(float((centre - eye) @ forward), 1e-3) * forward
