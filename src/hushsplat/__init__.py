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

# These functions take the names of the packages they come from, which must therefore be imported here and now:
# `hushsplat.render(...)` is what people write, and `from hushsplat.engines.cpu.render_names import ...` still finds the package.
from hushsplat.engines.cpu.render_names import RenderOptions, render
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.frame import Frame
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import Observation
from hushsplat.types.picture import Picture
from hushsplat.types.track import Track
from hushsplat.viewer import view

if TYPE_CHECKING:
    from hushsplat.engines.cpu.denoise_names import HushConfig
    from hushsplat.io.captures.capture import load_capture
    from hushsplat.io.images import save_picture
    from hushsplat.io.scenes.scene import load, save
    from hushsplat.io.tracks import load_track
    from hushsplat.stream import Noise, denoiser, play, play_side_by_side
    from hushsplat.synth import home_camera, room_and_garden, walk_track
    from hushsplat.types.framing import frame_scene

# Imported when first used: together they take as long as all of the above without numpy.
_LATER = {
    "HushConfig": "hushsplat.engines.cpu.denoise_names",
    "Noise": "hushsplat.stream",
    "denoiser": "hushsplat.stream",
    "frame_scene": "hushsplat.types.framing",
    "home_camera": "hushsplat.synth",
    "load": "hushsplat.io.scenes.scene",
    "load_capture": "hushsplat.io.captures.capture",
    "load_track": "hushsplat.io.tracks",
    "play": "hushsplat.stream",
    "play_side_by_side": "hushsplat.stream",
    "room_and_garden": "hushsplat.synth",
    "save": "hushsplat.io.scenes.scene",
    "save_picture": "hushsplat.io.images",
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
