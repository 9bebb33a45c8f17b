"""One sound call of everything in the native module that takes arrays, for tests that spoil one argument at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushsplat.engines.cpu import _engine

HEIGHT, WIDTH, COUNT = 5, 7, 4
Arguments = dict[str, Any]


def floats(*shape: int) -> np.ndarray:
    return np.full(shape, 0.5, dtype=np.float32)


def camera(height: int = HEIGHT, width: int = WIDTH) -> Arguments:
    return {
        "rotation": np.eye(3, dtype=np.float32),
        "eye": np.zeros(3, dtype=np.float32),
        "intrinsics": floats(4),
        "width": width,
        "height": height,
        "near": 0.2,
    }


def surfels() -> Arguments:
    rotations = np.tile(np.float32([1, 0, 0, 0]), (COUNT, 1))
    return {
        "means": floats(COUNT, 3),
        "scales": floats(COUNT, 2),
        "rotations": rotations,
        "opacities": floats(COUNT),
        "sh": floats(COUNT, 4, 3),
    }


def scene() -> Arguments:
    return {name: value for name, value in surfels().items() if name != "sh"} | {"threads": 1}


def blended() -> Arguments:
    return {
        "camera": _engine.Camera(**camera()),
        "sh": floats(COUNT, 4, 3),
        "means": floats(COUNT, 3),
        "background": floats(3),
        "threads": 1,
        "color": floats(HEIGHT, WIDTH, 3),
        "alpha": floats(HEIGHT, WIDTH),
        "depth": floats(HEIGHT, WIDTH),
    }


def stochastic(samples: int = 2) -> Arguments:
    return {
        "camera": _engine.Camera(**camera()),
        "levels": floats(samples, 4096),
        "sequence": np.zeros(samples, dtype=np.uint32),
        "by_center": False,
        "threads": 1,
        "id": np.zeros((samples, HEIGHT, WIDTH), dtype=np.int32),
        "depth": floats(samples, HEIGHT, WIDTH),
    }


def decode(samples: int = 2) -> Arguments:
    return {
        "id": np.zeros((samples, HEIGHT, WIDTH), dtype=np.int32),
        "camera": _engine.Camera(**camera()),
        "sh": floats(COUNT, 4, 3),
        "means": floats(COUNT, 3),
        "background": floats(3),
        "threads": 1,
        "color": floats(HEIGHT, WIDTH, 3),
    }


def decode_view(height: int = HEIGHT, width: int = WIDTH, samples: int = 2) -> Arguments:
    return {
        "id": np.zeros((samples, height, width), dtype=np.int32),
        "depth": floats(samples, height, width),
        "payload": floats(COUNT, 10),
        "axes": np.eye(3, dtype=np.float32),
        "threads": 1,
        "view": floats(height, width, 4),
    }


def drawing(channels: int = 6) -> Arguments:
    return {
        "color": floats(HEIGHT, WIDTH, 3),
        "alpha": floats(HEIGHT, WIDTH, 1),
        "geometry": floats(HEIGHT, WIDTH, channels),
    }


def draw() -> Arguments:
    return {
        "camera": _engine.Camera(**camera()),
        "surfels": _engine.Surfels(**surfels()),
        "background": floats(3),
        "threads": 1,
        "drawing": _engine.Drawing(**drawing()),
        "tape": None,
        "stop": 1e-4,
    }


def gradient() -> Arguments:
    return {
        "camera": _engine.Camera(**camera()),
        "surfels": _engine.Surfels(**surfels()),
        "threads": 1,
        "drawn": _engine.Drawn(**drawing()),
        "by_drawn": _engine.Drawn(**drawing()),
        "tape": None,
        "gradients": _engine.SurfelGradients(**surfels()),
        "by_center": floats(COUNT, 2),
        "seen": np.zeros(COUNT, dtype=np.uint8),
    }


def adam() -> Arguments:
    tables = {name: floats(COUNT, 6) for name in ("values", "gradient", "first", "second")}
    rates = {"beta1": 0.9, "beta2": 0.999, "second_scale": 1.0, "epsilon": 1e-8}
    return tables | {"sizes": floats(6)} | rates | {"threads": 1}


def ssim(height: int = HEIGHT, width: int = WIDTH) -> Arguments:
    pictures = {name: floats(height, width, 3) for name in ("first", "second", "by_first")}
    return pictures | {"threads": 1}


def denoise(height: int = HEIGHT, width: int = WIDTH) -> Arguments:
    return {
        "color": floats(height, width, 3),
        "depth": floats(height, width),
        "neural_view": floats(height, width, 4),
        "previous": floats(height, width, 16),
        "is_static": False,
        "intrinsics": floats(4),
        "previous_intrinsics": floats(4),
        "motion": floats(3, 4),
        "weights": floats(_engine.DENOISER_FLOATS),
        "settings": _engine.DenoiserSettings(),
        "threads": 1,
        "state": floats(height, width, 16),
        "shown": floats(height, width, 3),
        "views": floats(height, width, _engine.VIEW_FLOATS),
    }


def motion() -> Arguments:
    return {"is_static": False, "lens": floats(4), "other_lens": floats(4), "change": floats(3, 4)}


def baseline(settings: Any, height: int = HEIGHT, width: int = WIDTH) -> Arguments:
    return {
        "color": floats(height, width, 3),
        "depth": floats(height, width),
        "previous": floats(height, width, 8),
        "motion": _engine.CameraMotion(**motion()),
        "settings": settings,
        "threads": 1,
        "history": floats(height, width, 8),
        "shown": floats(height, width, 3),
    }


def mean(height: int = HEIGHT, width: int = WIDTH) -> Arguments:
    made = baseline(None, height, width)
    made |= {"previous": floats(height, width, 3), "history": floats(height, width, 3), "frames": 2}
    return {name: value for name, value in made.items() if name not in ("motion", "settings")}


def _of_scene(name: str) -> Callable[..., None]:
    return lambda **arguments: getattr(_engine.Scene(**scene()), name)(**arguments)


def _of_trained(name: str) -> Callable[..., None]:
    trained = _engine.TrainedScene(_engine.Surfels(**surfels()), 1)
    return lambda **arguments: getattr(trained, name)(**arguments)


# Every binding that takes an array: how it is called, and sound arguments.
def active_set() -> Arguments:
    settings = _engine.ActiveSetSettings()
    settings.prune, settings.stop, settings.period, settings.parallax_px, settings.first_samples = (
        0.01,
        0.01,
        8,
        16.0,
        2,
    )
    settings.discovery = 2  # stream: the one that takes random levels
    taken = blended()
    return {
        "scene": _engine.Scene(**scene()),
        **{name: taken[name] for name in ("camera", "sh", "means", "background")},
        "settings": settings,
        "levels": floats(2, 4096),
        "sequence": np.zeros(2, dtype=np.uint32),
        "previous": None,
        "by_center": False,
        **{name: taken[name] for name in ("threads", "color", "alpha", "depth")},
    }


def is_member(scene: _engine.Scene, out: np.ndarray) -> None:
    _engine.draw_active_set(**active_set()).is_member(scene, out)


CALLS: dict[str, tuple[Callable[..., Any], Callable[[], Arguments]]] = {
    "Camera": (_engine.Camera, camera),
    "Scene": (_engine.Scene, scene),
    "Scene.stochastic": (_of_scene("stochastic"), stochastic),
    "Scene.sorted": (_of_scene("sorted"), blended),
    "Scene.exact": (_of_scene("exact"), lambda: blended() | {"variance": floats(HEIGHT, WIDTH, 3)}),
    "Surfels": (_engine.Surfels, surfels),
    "SurfelGradients": (_engine.SurfelGradients, surfels),
    "Drawing": (_engine.Drawing, drawing),
    "Drawn": (_engine.Drawn, drawing),
    "TrainedScene.draw": (_of_trained("draw"), draw),
    "TrainedScene.gradient": (_of_trained("gradient"), gradient),
    "draw_active_set": (_engine.draw_active_set, active_set),
    "ActiveSet.is_member": (
        is_member,
        lambda: {"scene": _engine.Scene(**scene()), "out": np.zeros(COUNT, dtype=bool)},
    ),
    "adam": (_engine.adam, adam),
    "ssim": (_engine.ssim, ssim),
    "require_finite": (
        _engine.require_finite,
        lambda: {"values": floats(3), "name": "floats", "threads": 1},
    ),
    "decode": (_engine.decode, decode),
    "decode_view": (_engine.decode_view, decode_view),
    "denoise": (_engine.denoise, denoise),
    "CameraMotion": (_engine.CameraMotion, motion),
    "baseline_mean": (_engine.baseline_mean, mean),
    "baseline_st_taa": (_engine.baseline_st_taa, lambda: baseline(_engine.StTaaSettings())),
    "baseline_taa": (_engine.baseline_taa, lambda: baseline(_engine.TaaSettings())),
    "baseline_svgf": (_engine.baseline_svgf, lambda: baseline(svgf_settings())),
}


def svgf_settings() -> _engine.SvgfSettings:
    settings = _engine.SvgfSettings()
    settings.passes, settings.kernel = 2, 5
    return settings
