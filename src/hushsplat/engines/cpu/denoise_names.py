"""A noisy stream in, a calm picture out (docs/denoiser.md)."""

from hushsplat.engines.cpu.denoisers import LEARNED, METHODS, Denoiser, denoiser
from hushsplat.spec.settings import PAPER, HushConfig
from hushsplat.spec.views import SHOWN, ViewPicture, view_picture

__all__ = ["LEARNED", "METHODS", "PAPER", "SHOWN", "Denoiser", "HushConfig", "ViewPicture", "denoiser", "view_picture"]
