"""What a page is told first: what there is to choose from, and within which limits."""

from __future__ import annotations

import base64
import io
from dataclasses import asdict
from typing import Any

from PIL import Image

import hushsplat
from hushsplat.engines.cpu.denoise_names import LEARNED, SHOWN
from hushsplat.io.images import to_bytes
from hushsplat.spec.views import Scale
from hushsplat.stream import BLENDED, METHODS
from hushsplat.viewer.protocol import PICTURE, Draw, settings_in_words
from hushsplat.viewer.service import Studio

BAR_PX = (128, 10)
WHEEL_PX = (128, 30)
# In the order of the menu, and in a few words each; the rest of player.METHODS follows by its name alone.
TITLES = {
    "hush": "learned denoiser, for scenes trained for it",
    "hush-zero-shot": "learned denoiser, any scene",
    "raw": "one sample per pixel",
    "mean": "mean of all frames while still",
    "st-taa": "temporal filter with a fixed history",
    "taa": "temporal anti-aliasing",
    "svgf": "variance-guided filter",
    "svgf-tuned": "variance-guided filter, tuned",
    "reference": "sorted by centres and blended",
    "exact": "sorted in every pixel; slow",
}
VIEW_TITLES = {
    "trust_s": "trust in accumulated",
    "trust_h": "trust in denoised",
    "frames_s": "accumulated frames",
    "frames_h": "denoised frames",
    "gate": "gate: share of denoised",
    "motion": "motion",
    "variance": "variance of luma",
    "depth_change": "change of depth",
    "accumulated": "accumulated colour",
    "smoothed": "smoothed colour",
    "denoised": "denoised colour",
    "filtered": "filtered colour",
    "composite": "before stabilisation",
    "ellipse": "filter ellipses",
}


def introduction(studio: Studio, draw: Draw) -> dict[str, Any]:
    """The first message of a session."""
    names = [*(name for name in TITLES if name in METHODS), *(name for name in METHODS if name not in TITLES)]
    return {
        "type": "hello",
        "version": hushsplat.__version__,
        "methods": [
            {"name": name, "title": TITLES.get(name, ""), "learned": name in LEARNED, "blended": name in BLENDED}
            for name in names
        ],
        "views": [
            {"name": name, "title": VIEW_TITLES.get(name, name), "bar": _bar(scale)}
            for name, (_, scale) in SHOWN.items()
        ],
        "draw": {
            "sides": [asdict(side) for side in draw.sides],
            "samples": draw.samples,
            "config": settings_in_words(),
            "gamma": studio.weights.gamma,
        },
        "picture": PICTURE,
        "max_upload_bytes": studio.options.max_upload_bytes,
    }


def _bar(scale: Scale | None) -> str | None:
    """The colours of a view as a small picture in an address."""
    if scale is None:
        return None
    target = io.BytesIO()
    Image.fromarray(to_bytes(scale.bar(*(WHEEL_PX if scale.wheel else BAR_PX)))).save(target, "PNG")
    return "data:image/png;base64," + base64.b64encode(target.getvalue()).decode()
