"""A noisy stream in, a calm picture out (docs/denoiser.md)."""

from hushsplat.denoise.config import HushConfig

__all__ = ["HushConfig"]
