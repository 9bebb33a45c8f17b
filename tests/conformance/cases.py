"""The conformance cases: small scenes and one noisy stream, and what an engine gives for each of them.

Inputs and the outputs of the torch engine are stored in data/, made by tools/make_conformance.py. Only the protocol of
hushsplat.engines.base is used here, so that any engine can be tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushsplat.engines.base import Engine
from hushsplat.methods import configure
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import PAPER, DenoiserSettings, StTaaSettings, SvgfSettings, TaaSettings
from hushsplat.spec.state import LAYOUTS
from hushsplat.spec.weights import SHAPES, DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import Observation, Visibility
from hushsplat.types.options import Noise, RenderOptions
from hushsplat.types.settings import Settings

DATA = Path(__file__).parent / "data"
Arrays = dict[str, np.ndarray]


# Rendering


@dataclass(frozen=True)
class RenderCase:
    """A scene with its camera, drawn by every renderer of an engine."""

    name: str
    columns: int  # of the scales: 2 surfels, 3 ellipsoids
    degree: int  # of the spherical harmonics
    payload: bool = False
    coplanar: bool = False  # all at one depth: ties go to the smaller index
    noise: Noise = Noise(sampler="independent")  # noqa: RUF009  (frozen)
    options: RenderOptions = RenderOptions()  # noqa: RUF009  (frozen)


RENDER_CASES = (
    RenderCase("surfels-sh0", 2, 0),
    RenderCase(
        "surfels-sh3",
        2,
        3,
        payload=True,
        noise=Noise(3, seed=5, frame=85, sampler="stratified"),  # samples 255 to 257: an epoch ends among them
        options=RenderOptions(background=(0.2, 0.5, 0.9)),
    ),
    RenderCase(
        "ellipsoids-sh1",
        3,
        1,
        payload=True,
        noise=Noise(2, seed=2**32 - 1, frame=7, sampler="independent"),
        options=RenderOptions(background=(1.0, 0.0, 0.25)),
    ),
    RenderCase("ellipsoids-sh2", 3, 2, noise=Noise(seed=3, sampler="stratified"), options=RenderOptions(near=1.5)),
    RenderCase("coplanar-surfels", 2, 0, coplanar=True, noise=Noise(2, sampler="independent")),
)


BLENDED = ("reference", "exact")


def render_outputs(engine: Engine, case: RenderCase, inputs: Arrays, blended: Sequence[str] = BLENDED) -> Arrays:
    """Visibility, observation and blended pictures of an engine.

    The observation is decoded from the stored visibility, so that a winner that differs does not count twice.
    """
    scene, camera = engine.upload(gaussians_from(inputs)), camera_from(inputs["camera"])
    seen = engine.sample(scene, camera, case.noise, case.options).numpy()
    if "visibility.id" in inputs:
        stored = Visibility(inputs["visibility.id"].astype(np.int32), inputs["visibility.depth"])
    else:
        stored = seen
    observation = engine.decode(stored, scene, camera, case.options).numpy()
    outputs = {"visibility.id": seen.primitive_id, "visibility.depth": seen.depth}
    outputs |= {f"decode.{name}": getattr(observation, name) for name in ("color", "depth", "alpha")}
    if case.payload:
        outputs["decode.neural_view"] = observation.neural_view
    for method in blended:
        image = engine.render(scene, camera, method, case.options).numpy()
        outputs |= {f"{method}.{name}": getattr(image, name) for name in ("color", "alpha", "depth")}
        if method == "exact":
            outputs["exact.variance"] = image.variance
    return outputs


# Denoising


@dataclass(frozen=True)
class DenoiseCase:
    """A denoiser with settings of its own, over the stored stream."""

    name: str
    method: str
    settings: Settings | None = None
    hostile: bool = False  # NaN, infinities and absurd numbers in the observations
    every_view: bool = False  # all views, else the picture alone

    def configured(self, weights: DenoiserWeights) -> ConfiguredDenoiser:
        learned = self.method in ("temporal", "temporal-zero-shot")
        return configure(self.method, weights=weights if learned else None, settings=self.settings)


WIDTH, HEIGHT = 20, 13  # px; no multiple of 8
FRAMES = 12
STOPS, CUT, RESTART = (5, 6, 7), 8, 10  # the camera stands still, jumps, and history is dropped before this frame
CHECKED = (4, 9, 11)  # moving, after the stop and the cut, after the restart
CHECKED_WHOLE = (4, 7)  # moving, still: every view and every channel of the state

ABLATIONS: dict[str, dict[str, Any]] = {
    "trust-one": {"trust": "one"},
    "trust-heuristic": {"trust": "heuristic", "sigma": 4.0},
    "trust-constant": {"trust": "constant", "constant_trust": 0.7},
    "history-share": {"history": "share"},
    "long-histories": {"history_px": 30.0},
    "no-resample-clamp": {"resample_clamp": False},
    "no-filter-lean": {"filter_lean": 0.0},
    "error-floor": {"error_floor": 0.1},
    "no-pooling": {"pooled_frames": 0.0},
    "no-spatial-filter": {"spatial_filter": False},
    "no-smoothing": {"smooth": False},
    "gate-0": {"gate": 0},
    "gate-1": {"gate": 1},
    "no-stabilisation": {"stabilise": False},
    "short-histories": {"accumulated_cap_frames": 2.0, "denoised_cap_frames": 1.5},
    "other-scales": {"tau_frames": 6.0, "motion_scale_px": 1.0, "far_depth": 6.0, "smooth_errors": 0.3},
    "other-stabilisation": {
        **{"stabilise_weight": 0.5, "stabilise_motion_px": 4.0, "stabilise_slack": 0.01},
        **{"stabilise_depth": 0.3, "stabilise_rescue": 0.02},
    },
    "all-static": {"static_tolerance": 1.0},
}
DENOISE_CASES = (
    DenoiseCase("temporal", "temporal", every_view=True),
    DenoiseCase("temporal-zero-shot", "temporal-zero-shot", every_view=True),
    DenoiseCase("paper", "temporal", PAPER),
    DenoiseCase("paper-zero-shot", "temporal-zero-shot", replace(PAPER, zero_shot=True)),
    *(DenoiseCase(name, "temporal", DenoiserSettings(**changes)) for name, changes in ABLATIONS.items()),
    DenoiseCase("temporal-hostile", "temporal", hostile=True),
    DenoiseCase("mean", "mean"),
    DenoiseCase("st-taa", "st-taa"),
    DenoiseCase("st-taa-short", "st-taa", StTaaSettings(cap_frames=2.0, reach=0.4, far_depth=6.0)),
    DenoiseCase("taa", "taa"),
    DenoiseCase("taa-short", "taa", TaaSettings(cap_frames=2.0, gamma=0.5, far_depth=6.0)),
    DenoiseCase("svgf", "svgf"),
    DenoiseCase("svgf-tuned", "svgf-tuned"),
    DenoiseCase("svgf-fed-back", "svgf", SvgfSettings(alpha=0.1, sigma_luma=2.0, passes=3, kernel=3, feedback=True)),
    DenoiseCase("svgf-hostile", "svgf-tuned", hostile=True),
)
RESIZED = ((32, 9), (12, 7))  # px: wider and lower, about half; no centre on a border of two pixels


def denoise_outputs(engine: Engine, case: DenoiseCase, inputs: Arrays) -> Arrays:
    """The pictures of some frames, and of some cases all views and the channels of the state."""
    denoiser, options = case.configured(weights_from(inputs)), RenderOptions()
    outputs: Arrays = {}
    state: Any = None
    for frame, (observation, camera) in enumerate(stream_from(inputs)):
        if case.hostile:
            observation = with_hostile_pixels(observation, frame)
        if frame == RESTART:
            state = None
        with_views = case.every_view and frame in CHECKED_WHOLE
        image, state = engine.denoise(denoiser, observation, camera, state, options, with_views=with_views)
        if frame in CHECKED:
            outputs[f"{frame}.shown"] = image.numpy().color
        if with_views:
            outputs |= {f"{frame}.view.{name}": view for name, view in image.numpy().views.items()}
        if with_views or (denoiser.weights is None and frame == CHECKED_WHOLE[-1]):
            outputs |= channels(state, f"{frame}.state")
    return outputs


def resize_outputs(engine: Engine, inputs: Arrays) -> Arrays:
    """A temporal state at other picture sizes; a baseline's is dropped."""
    outputs: Arrays = {}
    for method in ("temporal", "taa"):
        state = None
        for observation, camera in stream_from(inputs)[: CHECKED[0] + 1]:
            denoiser = DenoiseCase(method, method).configured(weights_from(inputs))
            _, state = engine.denoise(denoiser, observation, camera, state, RenderOptions())
        for width, height in RESIZED:
            resized = engine.resize(state, camera.resized(width, height))
            if method == "taa":
                assert resized is None
            else:
                outputs |= channels(resized, f"{width}x{height}.state")
    return outputs


def channels(state: Any, prefix: str) -> Arrays:
    """Every channel of a state by its name, but for what is unused."""
    plain = state.numpy()
    names = [channel.name for channel in LAYOUTS[plain.layout.name].channels if channel.name != "spare"]
    return {f"{prefix}.{name}": getattr(plain, name) for name in names}


def with_hostile_pixels(observation: Observation, frame: int) -> Observation:
    """The observation with a few pixels of every kind that cannot be used, at other places in each frame."""
    color, depth = observation.color.copy(), observation.depth.copy()
    view = None if observation.neural_view is None else observation.neural_view.copy()
    rng = np.random.default_rng(frame)
    for bad in (np.nan, np.inf, -np.inf, 1e30, -1e12):
        row, column = rng.integers(HEIGHT), rng.integers(WIDTH)
        color[row, column, rng.integers(3)] = bad
        depth[rng.integers(HEIGHT), rng.integers(WIDTH)] = bad
        if view is not None:
            view[rng.integers(HEIGHT), rng.integers(WIDTH), rng.integers(4)] = bad
    depth[rng.integers(HEIGHT), rng.integers(WIDTH)] = -1
    return Observation(color, depth, observation.alpha, view)


# Stored arrays


def stored(name: str) -> Arrays:
    """The arrays of one file; a missing one is an error."""
    with np.load(DATA / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def gaussians_from(arrays: Arrays) -> Gaussians:
    names = ("means", "scales", "rotations", "opacities", "sh", "payload")
    return Gaussians(**{name: arrays[f"scene.{name}"] for name in names if f"scene.{name}" in arrays})


def gaussians_arrays(gaussians: Gaussians) -> Arrays:
    names = ("means", "scales", "rotations", "opacities", "sh", "payload")
    return {f"scene.{name}": getattr(gaussians, name) for name in names if getattr(gaussians, name) is not None}


def camera_from(row: np.ndarray) -> Camera:
    width, height, *lens = row[:6]
    return Camera(int(width), int(height), *map(float, lens), row[6:].reshape(4, 4))


def camera_row(camera: Camera) -> np.ndarray:
    lens = [camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy]
    return np.concatenate([lens, camera.world_from_camera.ravel()])


def stream_from(arrays: Arrays) -> list[tuple[Observation, Camera]]:
    names = ("color", "depth", "alpha", "neural_view")
    frames = zip(*(arrays[name].astype(np.float32) for name in names), strict=True)
    return [(Observation(*each), camera_from(row)) for each, row in zip(frames, arrays["cameras"], strict=True)]


def weights_from(arrays: Arrays) -> DenoiserWeights:
    tensors, start = {}, 0
    for name, shape in SHAPES.items():
        size = int(np.prod(shape))
        tensors[name] = arrays["weights"][start : start + size].reshape(shape)
        start += size
    return DenoiserWeights(tensors)
