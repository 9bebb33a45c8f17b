"""hushsplat: Gaussian splatting without sorting.

scene = hushsplat.load("garden.ply")
image = hushsplat.render(scene, hushsplat.frame_scene(scene, width=800, height=532))
hushsplat.save_image(image, "garden.png")

for image in hushsplat.play(scene, hushsplat.load_track("walk.json")):
    ...  # image.color; denoiser("temporal-zero-shot").step(...) does the same for a renderer of your own
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:  # under its own name: import-linter knows it
    from hushsplat.api import play, play_side_by_side, render, upload
    from hushsplat.engines.base import Engine, Scene, engine
    from hushsplat.home import Place, find_places, frame_scene, orbit_scene, tour
    from hushsplat.io.captures.capture import load_capture
    from hushsplat.io.images import save_image
    from hushsplat.io.scenes.scene import load, save
    from hushsplat.io.tracks import load_track
    from hushsplat.io.weights import read_weights, write_weights
    from hushsplat.methods import METHODS, Denoiser, Method, denoiser
    from hushsplat.spec.denoisers import ConfiguredDenoiser
    from hushsplat.spec.settings import (
        PAPER,
        DenoiserSettings,
        MeanSettings,
        StTaaSettings,
        SvgfSettings,
        TaaSettings,
    )
    from hushsplat.spec.state import State
    from hushsplat.spec.weights import DenoiserWeights
    from hushsplat.stream import Stream, StreamFrame
    from hushsplat.synth import home_camera, room_and_garden, walk_track
    from hushsplat.training.api import TrainResult, train
    from hushsplat.training.log import TrainProgress
    from hushsplat.training.settings import (
        ChainSizes,
        Densification,
        Rates,
        Stage1,
        Stage2,
        Stage3,
        Stage4,
        TrainSettings,
    )
    from hushsplat.types.camera import Camera
    from hushsplat.types.capture import Capture
    from hushsplat.types.errors import HushsplatError
    from hushsplat.types.gaussians import Gaussians
    from hushsplat.types.image import Image
    from hushsplat.types.observation import Observation, Visibility
    from hushsplat.types.options import Noise, RenderOptions
    from hushsplat.types.settings import Settings
    from hushsplat.types.track import Track
    from hushsplat.viewer import view
    from hushsplat.viewer.launch import Viewer
    from hushsplat.viewer.service import ViewerOptions

# Public name: module. Each is imported when first used, so that `import hushsplat` takes no time.
_PUBLIC = {
    "Camera": "types.camera",
    "Capture": "types.capture",
    "ChainSizes": "training.settings",
    "ConfiguredDenoiser": "spec.denoisers",
    "Denoiser": "methods",
    "DenoiserSettings": "spec.settings",
    "DenoiserWeights": "spec.weights",
    "Densification": "training.settings",
    "Engine": "engines.base",
    "Gaussians": "types.gaussians",
    "HushsplatError": "types.errors",
    "Image": "types.image",
    "METHODS": "methods",
    "MeanSettings": "spec.settings",
    "Method": "methods",
    "Noise": "types.options",
    "Observation": "types.observation",
    "PAPER": "spec.settings",
    "Place": "home",
    "Rates": "training.settings",
    "RenderOptions": "types.options",
    "Scene": "engines.base",
    "Settings": "types.settings",
    "StTaaSettings": "spec.settings",
    "Stage1": "training.settings",
    "Stage2": "training.settings",
    "Stage3": "training.settings",
    "Stage4": "training.settings",
    "State": "spec.state",
    "Stream": "stream",
    "StreamFrame": "stream",
    "SvgfSettings": "spec.settings",
    "TaaSettings": "spec.settings",
    "Track": "types.track",
    "TrainProgress": "training.log",
    "TrainResult": "training.api",
    "TrainSettings": "training.settings",
    "Viewer": "viewer.launch",
    "ViewerOptions": "viewer.service",
    "Visibility": "types.observation",
    "denoiser": "methods",
    "engine": "engines.base",
    "find_places": "home",
    "frame_scene": "home",
    "home_camera": "synth",
    "load": "io.scenes.scene",
    "load_capture": "io.captures.capture",
    "load_track": "io.tracks",
    "orbit_scene": "home",
    "play": "api",
    "play_side_by_side": "api",
    "read_weights": "io.weights",
    "render": "api",
    "room_and_garden": "synth",
    "save": "io.scenes.scene",
    "save_image": "io.images",
    "tour": "home",
    "train": "training.api",
    "upload": "api",
    "view": "viewer",
    "walk_track": "synth",
    "write_weights": "io.weights",
}

__all__ = [
    "METHODS",
    "PAPER",
    "Camera",
    "Capture",
    "ChainSizes",
    "ConfiguredDenoiser",
    "Denoiser",
    "DenoiserSettings",
    "DenoiserWeights",
    "Densification",
    "Engine",
    "Gaussians",
    "HushsplatError",
    "Image",
    "MeanSettings",
    "Method",
    "Noise",
    "Observation",
    "Place",
    "Rates",
    "RenderOptions",
    "Scene",
    "Settings",
    "StTaaSettings",
    "Stage1",
    "Stage2",
    "Stage3",
    "Stage4",
    "State",
    "Stream",
    "StreamFrame",
    "SvgfSettings",
    "TaaSettings",
    "Track",
    "TrainProgress",
    "TrainResult",
    "TrainSettings",
    "Viewer",
    "ViewerOptions",
    "Visibility",
    "denoiser",
    "engine",
    "find_places",
    "frame_scene",
    "home_camera",
    "load",
    "load_capture",
    "load_track",
    "orbit_scene",
    "play",
    "play_side_by_side",
    "read_weights",
    "render",
    "room_and_garden",
    "save",
    "save_image",
    "tour",
    "train",
    "upload",
    "view",
    "walk_track",
    "write_weights",
]
__version__ = "0.2.0"


def __getattr__(name: str) -> _Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hushsplat' has no attribute '{name}'")
    value = globals()[name] = getattr(_import_module(f"hushsplat.{_PUBLIC[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
