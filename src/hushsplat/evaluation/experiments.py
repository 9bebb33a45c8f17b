"""The experiments of the paper: which shots, methods and frames, and how scores become rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushsplat.evaluation.plan import METRICS, Scores, Task
from hushsplat.evaluation.results import Row
from hushsplat.evaluation.shots import Method, SceneSource, Shot
from hushsplat.io.captures.photographs import is_file
from hushsplat.methods import LEARNED, adjusted, drawn_by
from hushsplat.methods import METHODS as KNOWN
from hushsplat.scenes import NamedScene
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.synth import view_cameras
from hushsplat.types.capture import Capture, View
from hushsplat.types.errors import EvaluationError
from hushsplat.types.track import Track

# Paper, "Static Quality": after how many frames each method is shown; and where the times are known, after as many as
# take as long as 128 of ST-TAA (98 in the paper).
STATIC_FRAMES = {
    **dict.fromkeys(("paper", "temporal"), (16, 128)),
    **dict.fromkeys(("paper-zero-shot", "temporal-zero-shot", "hush"), (16, 128)),
    "mean": (1024,),
}
OTHER_STATIC_FRAMES = (128,)
CONVERGENCE_FRAMES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# Of the heuristic trust, and the constant ones: the best is searched on the scored tracks themselves.
SIGMAS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
CONSTANTS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
SEARCHED = ("trust heuristic", "trust constant")  # rows of a table: the best of those that begin so
# StochasticSplats: samples by the depth of centres, whose mean is `reference`; the paper compares with that mean.
SS = {"ss-1": 1, "ss-4": 4}  # name: samples a pixel
OURS = ("paper", "paper-zero-shot", "temporal", "temporal-zero-shot", "hush")  # below the baselines of every table
DEFAULT_METHODS = {
    "static": ("reference", "mean", "st-taa", "svgf", *OURS),
    "navigation": ("mean", "exact", "raw", *SS, "st-taa", "svgf", "svgf-literal", "svgf-tuned", *OURS),
    "convergence": ("reference", "mean", "st-taa", "svgf", *OURS),
    "zero-shot": ("paper", "paper-zero-shot", "temporal", "temporal-zero-shot"),
    "ablation": ("temporal",),
}
SCORED_FPS = 30.0  # frames a second that are scored if --every does not say: the paper's every 10th at about 300
T95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
)  # Student's t from 1 degree of freedom on


@dataclass(frozen=True)
class FrameSelection:
    """Which frames of a track are drawn, and which of them are scored."""

    fps: float | None = 300.0  # frames a second: the paper's recordings have about 300; None: the track's own
    # Every so many-th frame is scored, beginning with the last of the first so many; None: about SCORED_FPS of them.
    every: int | None = None
    frames: int | None = None  # at most so many frames are scored; None: all

    def __post_init__(self) -> None:
        if any(value is not None and value < 1 for value in (self.every, self.frames)):
            raise EvaluationError(f"--every and --frames must be at least 1, got {self.every} and {self.frames}.")

    def step(self, fps: float) -> int:
        """Every so many-th frame is scored of a track with this many a second."""
        return self.every or max(1, round(fps / SCORED_FPS))


def track_shot(scene: SceneSource, name: str, track: Track, selection: FrameSelection) -> Shot:
    """A track as a shot; with every=1 also the first frames, without history, are scored."""
    moving = track if selection.fps is None else track.resampled(selection.fps)
    span = float(moving.times_s[-1] - moving.times_s[0])
    fps = (len(moving) - 1) / span if span > 0 else SCORED_FPS
    every = selection.step(fps)
    if len(moving) < every:
        raise EvaluationError(f"{name}: has {len(moving)} frames, so no {every}th one; lower --every or raise --fps.")
    scored = tuple(range(every - 1, len(moving), every))[: selection.frames]
    cameras = tuple(moving.camera(index) for index in range(scored[-1] + 1))
    return Shot(scene, name, cameras, scored, fps=fps / every, drawn_fps=selection.fps)


def still_shots(
    scene: SceneSource,
    named: NamedScene,
    capture: Capture | None,
    width: int,
    height: int,
    views: int | None,  # at most so many; None: all
    against: str,  # photographs, reference, or either
    frames: int,  # how long the longest method looks
    split: str = "held-out",  # or all: of a capture
) -> list[Shot]:
    """The held-out views of a capture, or all, or views of our own scene."""
    if capture is not None:
        chosen = _spread(capture.held_out if split == "held-out" else capture.views, views)
        photographed = all(is_file(view.image_path) for view in chosen)
        if against == "photographs" and not photographed:
            raise EvaluationError(f"{capture.folder}: photographs are missing; evaluate with --against reference.")
        seen = photographed if against == "either" else against == "photographs"
        return [_still(scene, view, width, frames, seen) for view in chosen]
    if against == "photographs":
        raise EvaluationError(f"{scene.name}: --against photographs needs a --capture with photographs.")
    if not named.is_own:
        raise EvaluationError(f"{scene.name}: static views need a --capture, a folder or a .json list of cameras.")
    cameras = view_cameras(views or 8, width, height)
    return [Shot(scene, f"view {i}", (camera,) * frames, (frames - 1,)) for i, camera in enumerate(cameras)]


def static_tasks(
    shots: Sequence[Shot],
    methods: Sequence[Method],
    equal_time: Mapping[str, int] | None = None,  # method: frames in the time of 128 of ST-TAA
) -> list[Task]:
    """Every method on every view, after the numbers of frames that the paper shows."""

    def frames(method: Method) -> tuple[int, ...]:
        if method.is_independent:
            return (0,)
        counts = {*static_frames(method.name), (equal_time or {}).get(method.name, 1)} - {1}
        return tuple(count - 1 for count in sorted(counts))

    return [Task(shot, method, frames(method)) for shot in shots for method in methods]


def equal_time_frames(times_ms: Mapping[str, float]) -> dict[str, int]:
    """Of each method of OURS with a payload as many frames as take as long as 128 of ST-TAA, at most 128."""
    allowed = OTHER_STATIC_FRAMES[0] * times_ms["st-taa"]
    timed = {name: times_ms[name] for name in ("paper", "temporal") if name in times_ms}
    return {name: max(1, min(OTHER_STATIC_FRAMES[0], round(allowed / time_ms))) for name, time_ms in timed.items()}


def static_frames(name: str) -> tuple[int, ...]:
    """After how many frames a method is shown."""
    return STATIC_FRAMES.get(name, OTHER_STATIC_FRAMES)


def convergence_tasks(shots: Sequence[Shot], methods: Sequence[Method]) -> list[Task]:
    """Every method on every view, after each of CONVERGENCE_FRAMES."""
    steps = tuple(count - 1 for count in CONVERGENCE_FRAMES)
    return [Task(shot, method, (0,) if method.is_independent else steps) for shot in shots for method in methods]


def track_tasks(shots: Sequence[Shot], methods: Sequence[Method]) -> list[Task]:
    """Every method on every track."""
    return [Task(shot, method, shot.scored) for shot in shots for method in methods]


def methods_of(
    names: Sequence[str],
    scene: NamedScene,
    reference_samples: int,
    notes: list[str],
) -> list[Method]:
    """The methods by name; a note says where a scene without payload is drawn by a fallback."""
    unknown = [name for name in names if name not in (*KNOWN, *SS)]
    if unknown:
        raise EvaluationError(f"--methods takes of {', '.join((*KNOWN, *SS))}, got '{unknown[0]}'.")
    has_payload = scene.gaussians.payload is not None
    drawn = [name if name in SS else drawn_by(name, has_payload).name for name in names]
    notes += [
        f"{scene.name} has no payload for {asked}; {name} draws it."
        for asked, name in zip(names, drawn, strict=True)
        if asked != name
    ]
    return [_method(name, reference_samples) for name in dict.fromkeys(drawn)]


def _method(name: str, reference_samples: int) -> Method:
    if name in SS:
        return Method(name, "raw", samples=SS[name], order="center", sampler="independent")
    settings = adjusted(name, DenoiserSettings()) if name in LEARNED else None
    return Method(name, name, settings, samples=reference_samples if name == "mean" else 0)


def ablation_methods(
    scene: NamedScene,
    notes: list[str],
    of: str = "temporal",
    sigmas: Sequence[float] = SIGMAS,
    constants: Sequence[float] = CONSTANTS,
) -> list[Method]:
    """The full denoiser, temporal or paper, and one without each part; zero-shot where the scene has no payload."""
    name = drawn_by(of, scene.gaussians.payload is not None).name
    if name != of:
        notes.append(f"{scene.name} has no payload: the ablation is of {name}.")
    full = adjusted(of, DenoiserSettings())
    variants: dict[str, DenoiserSettings] = {
        "full": full,
        "trust 1": replace(full, trust="one"),
        **{f"trust heuristic, σ = {sigma:g}": replace(full, trust="heuristic", sigma=sigma) for sigma in sigmas},
        **{f"trust constant, t = {t:g}": replace(full, trust="constant", constant_trust=t) for t in constants},
        "no spatial filter": replace(full, spatial_filter=False),
        **({"no smoothing": replace(full, smooth=False)} if full.smooth else {}),
        "no stabilisation": replace(full, stabilise=False),
        "gate 0": replace(full, gate=0),
        "gate 1": replace(full, gate=1),
        **({"as in the paper": PAPER} if of == "temporal" else {}),
    }
    return [Method(label, name, settings) for label, settings in variants.items()]


def with_seeds(methods: Sequence[Method], seeds: int) -> list[Method]:
    """Every method whose picture depends on noise, so many times."""
    return [replace(method, seed=seed) for method in methods for seed in range(seeds if method.is_random else 1)]


def track_rows(experiment: str, scores: Sequence[Scores]) -> tuple[list[Row], list[Row]]:
    """A row for each track and method, the mean over its frames and seeds; and the values frame by frame."""
    rows, series = [], []
    groups: dict[tuple[str, str, str], list[Scores]] = {}
    for one in scores:
        groups.setdefault((one.task.shot.scene.name, one.task.shot.track, one.task.method.label), []).append(one)
    for found in groups.values():
        task = found[0].task
        head = {"scene": task.shot.scene.name, "track": task.shot.track, "method": task.method.label}
        extra: Row = {"samples": task.method.samples} if task.method.samples else {}
        extra |= {} if task.shot.drawn_fps is None else {"fps": task.shot.drawn_fps}
        by_seed = [{**{metric: _mean(values) for metric, values in one.values.items()}, **one.video} for one in found]
        rows.append({"experiment": experiment, **head, "frames": len(task.frames), **extra, **_over_seeds(by_seed)})
        frames = {
            metric: [_mean(v) for v in zip(*(one.values[metric] for one in found if metric in one.values), strict=True)]
            for metric in found[0].values
        }
        series.append({**head, "frame": list(task.frames), **frames})
    return rows, series


def still_rows(experiment: str, scores: Sequence[Scores]) -> list[Row]:
    """A row for each scene, method and number of frames, the mean over the scene's views and seeds."""
    groups: dict[tuple[str, str, int], dict[int, list[dict[str, float | None]]]] = {}
    for found in scores:
        for index, frame in enumerate(found.task.frames):
            method = found.task.method
            key = (found.task.shot.scene.name, method.label, 0 if method.is_independent else frame + 1)
            values = {metric: by_frame[index] for metric, by_frame in found.values.items()}
            groups.setdefault(key, {}).setdefault(method.seed, []).append(values)
    return [
        {
            "experiment": experiment,
            "scene": scene,
            "track": "views",
            "method": method,
            "frames": frames,
            "views": len(seeds[0]),
            **_over_seeds([{m: _mean([view[m] for view in views]) for m in views[0]} for views in seeds.values()]),
        }
        for (scene, method, frames), seeds in groups.items()
    ]


def best_of_searched(rows: Sequence[Row], series: Sequence[Row], notes: list[str]) -> tuple[list[Row], list[Row]]:
    """Only the best of the heuristic and of the constant trusts, over all tracks; notes say what the others reached."""
    dropped: set[str] = set()
    for name in SEARCHED:
        labels = dict.fromkeys(row["method"] for row in rows if row["method"].startswith(f"{name}, "))
        reached = {label: _mean([row["psnr"] for row in rows if row["method"] == label]) for label in labels}
        known = {label: value for label, value in reached.items() if value is not None}
        if known:
            best = max(known, key=lambda label: known[label])
            others = ", ".join(f"{label.removeprefix(f'{name}, ')}: {value:.2f}" for label, value in known.items())
            notes.append(f"The {name} is the best of {len(known)} by PSNR on these very tracks ({others} dB).")
            dropped |= set(labels) - {best}
    return [row for row in rows if row["method"] not in dropped], [s for s in series if s["method"] not in dropped]


def _still(scene: SceneSource, view: View, width: int, frames: int, photographed: bool) -> Shot:
    camera = view.camera.resized(width)
    name = Path(view.name).stem
    return Shot(scene, name, (camera,) * frames, (frames - 1,), view if photographed else None)


def _spread(items: Sequence[Any], most: int | None) -> list[Any]:
    """At most so many of them, evenly over all."""
    if most is None or most >= len(items):
        return list(items)
    return [items[i] for i in np.unique(np.linspace(0, len(items) - 1, most).round().astype(int))]


def _over_seeds(by_seed: Sequence[Mapping[str, float | None]]) -> Row:
    """Means over seeds, and of several also the half-width of the 95 % confidence interval (Student's t)."""
    row: Row = {"seeds": len(by_seed)} if len(by_seed) > 1 else {}
    for metric in METRICS:
        if metric not in by_seed[0]:
            continue
        known = [value for value in (one.get(metric) for one in by_seed) if value is not None]
        row[metric] = _mean(known)
        if len(known) > 1:
            spread = float(np.std(known, ddof=1)) / np.sqrt(len(known))
            row[f"{metric}_ci95"] = T95[min(len(known) - 1, len(T95)) - 1] * float(spread)
    return row


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
