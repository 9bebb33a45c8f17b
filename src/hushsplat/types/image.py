"""A picture, drawn or denoised, with whatever its maker knows beside the colour."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8
from numpy import ndarray as Array

Pixels = Float32[Array, "h w 3"] | UInt8[Array, "h w 3"]  # colours of the scene, or as they are encoded


def to_bytes(pixels: Pixels) -> UInt8[Array, "h w 3"]:
    """Values 0..1 as 0..255, rounded; the scene's colours are display values already, so no curve is applied."""
    if pixels.dtype == np.uint8:
        return pixels
    return (np.clip(np.nan_to_num(pixels), 0, 1) * 255 + 0.5).astype(np.uint8)


@dataclass(frozen=True)
class Image:
    """Colour, and where known alpha, depth, variance and the denoiser's views.

    Attributes:
        color: [h, w, 3], linear in the scene's own colour space, background included; may exceed 1.
        alpha: [h, w], 0..1: coverage by Gaussians, 1 - transmittance. None for a denoised picture.
        depth: [h, w], camera-space z in world units, mean by blending weight; 0 where nothing was hit.
        variance: [h, w, 3], of the colour of one stochastic sample; only `exact` knows it.
        views: intermediate results of a denoiser by the names in `hushsplat.spec.views.VIEWS`; None unless asked for.
    """

    color: Float32[Array, "h w 3"]
    alpha: Float32[Array, "h w"] | None = None
    depth: Float32[Array, "h w"] | None = None
    variance: Float32[Array, "h w 3"] | None = None
    views: Mapping[str, Float32[Array, "h w _"]] | None = None

    def __repr__(self) -> str:
        height, width, _ = self.color.shape
        known = [name for name in ("alpha", "depth", "variance", "views") if getattr(self, name) is not None]
        return f"Image({width}×{height}{''.join(f', {name}' for name in known)})"

    def _repr_png_(self) -> bytes:
        """The picture as notebooks show it: a PNG without filters."""
        height, width, _ = self.color.shape
        pixels = to_bytes(self.color).reshape(height, 3 * width)
        rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels], axis=1).tobytes()
        header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
        png = b"\x89PNG\r\n\x1a\n"
        for kind, data in chunks:
            png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        return png

    def pixels(self) -> Pixels:
        """The colours to show or to encode; an engine that packs them by itself gives bytes."""
        return self.color

    def numpy(self) -> Image:
        """Itself: its arrays are numpy's already (images of other engines are read back by this call)."""
        return self

    @staticmethod
    def stacked(bands: Sequence[Image]) -> Image:
        """One image of several with the same columns, from top to bottom."""

        def joined(name: str) -> Array | None:
            parts = [getattr(band, name) for band in bands]
            return None if any(part is None for part in parts) else np.concatenate(parts)

        color = np.concatenate([band.color for band in bands])
        return Image(color, joined("alpha"), joined("depth"), joined("variance"))
