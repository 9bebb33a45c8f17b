"""hushsplat: Gaussian splatting without sorting.

scene = hushsplat.load("garden.ply")
camera = hushsplat.frame_scene(scene, width=800, height=532)
picture = hushsplat.render(scene, camera, method="raw")
hushsplat.save_picture(picture, "garden.png")

for frame in hushsplat.play(scene, hushsplat.load_track("walk.json"), method="hush-zero-shot"):
    ...  # frame.color, calm; denoiser("hush-zero-shot").step(...) is the same for a renderer of your own
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hushsplat.core.camera import Camera
from hushsplat.core.errors import HushsplatError
from hushsplat.core.frame import Frame
from hushsplat.core.gaussians import Gaussians
from hushsplat.core.picture import Picture
from hushsplat.core.stream import Observation
from hushsplat.core.track import Track

# These functions take the names of the packages they come from, which must therefore be imported here and now:
# `hushsplat.render(...)` is what people write, and `from hushsplat.render import ...` still finds the package.
from hushsplat.render import RenderOptions, render
from hushsplat.view import view

if TYPE_CHECKING:
    from hushsplat.core.framing import frame_scene
    from hushsplat.denoise import HushConfig
    from hushsplat.files.capture import load_capture
    from hushsplat.files.pictures import save_picture
    from hushsplat.files.scene import load, save
    from hushsplat.files.tracks import load_track
    from hushsplat.player import Noise, denoiser, play, play_side_by_side
    from hushsplat.synth import home_camera, room_and_garden, walk_track

# Imported when first used: together they take as long as all of the above without numpy.
_LATER = {
    "HushConfig": "hushsplat.denoise",
    "Noise": "hushsplat.player",
    "denoiser": "hushsplat.player",
    "frame_scene": "hushsplat.core.framing",
    "home_camera": "hushsplat.synth",
    "load": "hushsplat.files.scene",
    "load_capture": "hushsplat.files.capture",
    "load_track": "hushsplat.files.tracks",
    "play": "hushsplat.player",
    "play_side_by_side": "hushsplat.player",
    "room_and_garden": "hushsplat.synth",
    "save": "hushsplat.files.scene",
    "save_picture": "hushsplat.files.pictures",
    "walk_track": "hushsplat.synth",
}

__all__ = [
    "Camera",
    "Frame",
    "Gaussians",
    "HushConfig",
    "HushsplatError",
    "Noise",
    "Observation",
    "Picture",
    "RenderOptions",
    "Track",
    "denoiser",
    "frame_scene",
    "home_camera",
    "load",
    "load_capture",
    "load_track",
    "play",
    "play_side_by_side",
    "render",
    "room_and_garden",
    "save",
    "save_picture",
    "view",
    "walk_track",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'hushsplat' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
