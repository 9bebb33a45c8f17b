"""A noisy stream in, a calm picture out (docs/denoiser.md)."""

from hushsplat.denoise.config import PAPER, HushConfig
from hushsplat.denoise.methods import LEARNED, METHODS, Denoiser, denoiser
from hushsplat.denoise.views import SHOWN, ViewPicture, view_picture

__all__ = ["LEARNED", "METHODS", "PAPER", "SHOWN", "Denoiser", "HushConfig", "ViewPicture", "denoiser", "view_picture"]
