"""JSON for the page: the hello message with all choices, the scene, its places, and the legends of views."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import asdict
from typing import Any

from PIL import Image as Pillow

from hushsplat.home import Place
from hushsplat.methods import BLENDED, METHODS, weights_of
from hushsplat.spec.views import SHOWN, Scale
from hushsplat.types.camera import Camera
from hushsplat.types.image import to_bytes
from hushsplat.types.options import RenderOptions
from hushsplat.viewer.protocol import PICTURE, TUNABLE, Draw
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import RenderService

BAR_PX = (128, 10)
WHEEL_PX = (128, 30)
# In the order of the menu, and in a few words each; other methods of the registry follow with their summaries.
TITLES = {
    "hush": "only what was seen and matters, blended",
    "hush-fast": "hush, faster",
    "hush-best": "hush, as good as reference",
    "temporal": "learned denoiser, for scenes trained for it",
    "temporal-zero-shot": "learned denoiser, any scene",
    "paper": "the paper's denoiser, for scenes trained for it",
    "paper-zero-shot": "the paper's denoiser, any scene",
    "raw": "one sample per pixel",
    "mean": "mean of all frames while still",
    "st-taa": "temporal filter with a fixed history",
    "taa": "temporal anti-aliasing",
    "svgf": "variance-guided filter",
    "svgf-literal": "variance-guided filter, the paper's words",
    "svgf-tuned": "variance-guided filter, tuned",
    "sorted": "sorted by centres, hidden ones left out",
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


def hello_message(service: RenderService, draw: Draw) -> dict[str, Any]:
    """The first message of a session: what there is to choose from, the defaults and the limits."""
    names = [*(name for name in TITLES if name in METHODS), *(name for name in METHODS if name not in TITLES)]
    return {
        "type": "hello",
        "methods": [_method_info(name) for name in names],
        "views": [
            {"name": name, "title": VIEW_TITLES.get(name, name), "bar": _bar(scale)}
            for name, (_, scale) in SHOWN.items()
        ],
        "draw": {
            "sides": [asdict(side) for side in draw.sides],
            "samples": draw.samples,
            "config": {name: getattr(draw.settings, name) for name in TUNABLE},
            "gamma": weights_of(service.options.weights, "temporal").gamma,
        },
        "picture": PICTURE,
        "max_upload_bytes": service.options.max_upload_bytes,
    }


def scene_info(entry: SceneEntry, options: RenderOptions) -> dict[str, Any]:
    """The scene as JSON; samples its depths for the pivot of the first place."""
    first, *others = entry.places
    distance = None if first.pivot is not None else entry.middle_depth(first.camera, options)
    return {
        "name": entry.name,
        "gaussians": len(entry.gaussians),
        "kind": "surfels" if entry.gaussians.is_surfels else "ellipsoids",
        "sh_degree": entry.gaussians.sh_degree,
        "payload": entry.scene.has_payload,
        "up": entry.up.tolist(),
        "radius": entry.radius,
        "inside": entry.is_inside(options),
        "places": [place_info(first, distance), *(place_info(place) for place in others)],
        "lenses": [_lens(view.camera) for view in entry.photographs],
    }


def _lens(camera: Camera) -> list[float]:
    """How a photograph lies in a picture: width, height, focal lengths and principal point, px."""
    return [float(value) for value in (camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy)]


def place_info(place: Place, distance: float | None = None) -> dict[str, Any]:
    """A place as JSON; the distance of its pivot, or else of what it looks at, if that is known."""
    camera = place.camera
    if place.pivot is not None:
        distance = float((place.pivot - camera.position) @ camera.world_from_camera[:3, 2])
    return {
        "name": place.name,
        "world_from_camera": camera.world_from_camera.tolist(),
        "fov_y_deg": math.degrees(2 * math.atan(0.5 * camera.height / camera.fy)),
        "distance": distance if distance is not None and distance > 0 else None,
    }


def legend(scale: Scale | None) -> dict[str, Any] | None:
    """What the colours of a view mean; its colour bar is in the hello message."""
    if scale is None:
        return None
    return {"title": scale.title, "ticks": [scale.value(place) for place in (0.0, 0.5, 1.0)], "wheel": scale.wheel}


def _method_info(name: str) -> dict[str, Any]:
    method = METHODS[name]
    return {
        "name": name,
        "title": TITLES.get(name, method.summary),
        "learned": method.learned,
        "blended": name in BLENDED,
        "fallback": method.fallback,
    }


def _bar(scale: Scale | None) -> str | None:
    """The colours of a view as a data URL."""
    if scale is None:
        return None
    target = io.BytesIO()
    Pillow.fromarray(to_bytes(scale.bar(*(WHEEL_PX if scale.wheel else BAR_PX)))).save(target, "PNG")
    return "data:image/png;base64," + base64.b64encode(target.getvalue()).decode()
