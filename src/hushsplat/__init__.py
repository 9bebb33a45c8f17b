"""hushsplat: Gaussian splatting without sorting.

scene = hushsplat.load("garden.ply")
camera = hushsplat.frame_scene(scene, width=800, height=532)
picture = hushsplat.render(scene, camera, method="raw")
hushsplat.save_picture(picture, "garden.png")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hushsplat.core.camera import Camera
from hushsplat.core.errors import HushsplatError
from hushsplat.core.gaussians import Gaussians
from hushsplat.core.picture import Picture
from hushsplat.core.track import Track

# The function takes the name of the package it comes from, which must therefore be imported here and now:
# `hushsplat.render(...)` is what people write, and `from hushsplat.render import ...` still finds the package.
from hushsplat.render import RenderOptions, render

if TYPE_CHECKING:
    from hushsplat.core.framing import frame_scene
    from hushsplat.files.capture import load_capture
    from hushsplat.files.pictures import save_picture
    from hushsplat.files.scene import load, save
    from hushsplat.files.tracks import load_track
    from hushsplat.synth import home_camera, room_and_garden, walk_track

# Imported when first used: together they take as long as all of the above without numpy.
_LATER = {
    "frame_scene": "hushsplat.core.framing",
    "home_camera": "hushsplat.synth",
    "load": "hushsplat.files.scene",
    "load_capture": "hushsplat.files.capture",
    "load_track": "hushsplat.files.tracks",
    "room_and_garden": "hushsplat.synth",
    "save": "hushsplat.files.scene",
    "save_picture": "hushsplat.files.pictures",
    "walk_track": "hushsplat.synth",
}

__all__ = [
    "Camera",
    "Gaussians",
    "HushsplatError",
    "Picture",
    "RenderOptions",
    "Track",
    "frame_scene",
    "home_camera",
    "load",
    "load_capture",
    "load_track",
    "render",
    "room_and_garden",
    "save",
    "save_picture",
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
