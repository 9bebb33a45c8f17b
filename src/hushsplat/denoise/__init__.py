"""A noisy stream in, a calm picture out (docs/denoiser.md)."""

from hushsplat.denoise.config import HushConfig
from hushsplat.denoise.methods import LEARNED, METHODS, Denoiser, denoiser
from hushsplat.denoise.views import SHOWN, ViewPicture, view_picture

__all__ = ["LEARNED", "METHODS", "SHOWN", "Denoiser", "HushConfig", "ViewPicture", "denoiser", "view_picture"]
