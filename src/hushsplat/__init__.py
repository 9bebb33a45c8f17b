"""hushsplat: Gaussian splatting without sorting."""

from hushsplat.core.camera import Camera
from hushsplat.core.errors import HushsplatError
from hushsplat.core.gaussians import Gaussians
from hushsplat.core.track import Track

__all__ = ["Camera", "Gaussians", "HushsplatError", "Track"]
__version__ = "0.1.0"
