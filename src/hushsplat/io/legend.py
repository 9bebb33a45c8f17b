"""Annotate pictures: a label, or the scale of a colour map in the corner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from PIL import Image, ImageDraw, ImageFont

from hushsplat.types.image import Pixels, to_bytes

BAR_WIDTH, BAR_HEIGHT, MARGIN = 128, 10, 6  # px
FONT_PX = 12
TICKS = (0.0, 0.5, 1.0)  # places on the bar that get a number


def with_label(color: Pixels, text: str) -> Float32[Array, "h w 3"]:
    """The picture with a text in its upper left corner."""
    image = Image.fromarray(to_bytes(color))
    draw, font = ImageDraw.Draw(image), _font()
    box = draw.textbbox((MARGIN, MARGIN), text, font=font)
    draw.rectangle((box[0] - 4, box[1] - 3, box[2] + 4, box[3] + 3), fill=(0, 0, 0))
    draw.text((MARGIN, MARGIN), text, font=font, fill=(255, 255, 255))
    return _to_floats(image)


def with_scale(
    color: Float32[Array, "h w 3"],
    title: str,
    bar: Float32[Array, "bh bw 3"],  # the colours, low to high from left to right
    value: Callable[[float], float],  # the number at a place 0..1 of the bar
) -> Float32[Array, "h w 3"]:
    """The picture with a bar of its colours in the lower left corner; one that is too small stays as it is."""
    bar_height, bar_width = bar.shape[:2]
    line = FONT_PX + 3
    width, height = bar_width + 2 * MARGIN, bar_height + 2 * line + 2 * MARGIN
    if color.shape[1] < width or color.shape[0] < height:
        return color
    image = Image.fromarray(to_bytes(color))
    draw, font = ImageDraw.Draw(image), _font()
    top = image.height - height
    draw.rectangle((0, top, width, image.height), fill=(0, 0, 0))
    draw.text((MARGIN, top + MARGIN - 2), title, font=font, fill=(255, 255, 255))
    image.paste(Image.fromarray(to_bytes(bar)), (MARGIN, top + MARGIN + line))
    for place in TICKS:
        text = f"{value(place):.3g}"
        x = MARGIN + place * (bar_width - draw.textlength(text, font=font))
        draw.text((x, image.height - MARGIN - line + 4), text, font=font, fill=(255, 255, 255))
    return _to_floats(image)


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(FONT_PX)


def _to_floats(image: Image.Image) -> Float32[Array, "h w 3"]:
    return np.asarray(image, dtype=np.float32) / 255
