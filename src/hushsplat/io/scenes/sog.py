"""PlayCanvas' SOG (Spatially Ordered Gaussians), version 2: https://developer.playcanvas.com, "The SOG Format"."""

from hushsplat.io.scenes.sog_read import read_sog
from hushsplat.io.scenes.sog_stream import read_streamed_sog
from hushsplat.io.scenes.sog_write import write_sog

__all__ = ["read_sog", "read_streamed_sog", "write_sog"]
