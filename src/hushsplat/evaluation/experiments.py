"""The experiments of the paper: which shots, methods and frames, and how scores become rows."""

from __future__ import annotations

from collections.abc import Sequence
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

# Paper, "Static Quality": after how many frames each method is shown; 98 took the paper as long as 128 of ST-TAA.
STATIC_FRAMES = {"temporal": (16, 98, 128), "temporal-zero-shot": (16, 128), "mean": (1024,)}
OTHER_STATIC_FRAMES = (128,)
CONVERGENCE_FRAMES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# Of the heuristic trust, and the constant ones: the best is searched on the scored tracks themselves.
SIGMAS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
CONSTANTS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
SEARCHED = {
    "trust heuristic": {f"trust heuristic, σ = {sigma:g}": {"trust": "heuristic", "sigma": sigma} for sigma in SIGMAS},
    "trust constant": {f"trust constant, t = {t:g}": {"trust": "constant", "constant_trust": t} for t in CONSTANTS},
}
DEFAULT_METHODS = {
    "static": ("reference", "mean", "st-taa", "svgf", "temporal", "temporal-zero-shot"),
    "navigation": ("mean", "exact", "raw", "st-taa", "svgf", "svgf-tuned", "temporal", "temporal-zero-shot"),
    "convergence": ("reference", "mean", "st-taa", "svgf", "temporal", "temporal-zero-shot"),
    "zero-shot": ("temporal", "temporal-zero-shot"),
    "ablation": ("temporal",),
}


@dataclass(frozen=True)
class FrameSelection:
    """Which frames of a track are drawn, and which of them are scored."""

    fps: float | None = 300.0  # frames a second: the paper's recordings have about 300; None: the track's own
    every: int = 10  # every so many-th frame is scored, beginning with the last of the first so many
    frames: int | None = None  # at most so many frames are scored; None: all

    def __post_init__(self) -> None:
        if self.every < 1 or (self.frames is not None and self.frames < 1):
            raise EvaluationError(f"--every and --frames must be at least 1, got {self.every} and {self.frames}.")


def track_shot(scene: SceneSource, name: str, track: Track, selection: FrameSelection) -> Shot:
    """A track as a shot; with every=1 also the first frames, without history, are scored."""
    moving = track if selection.fps is None else track.resampled(selection.fps)
    if len(moving) < selection.every:
        raise EvaluationError(
            f"{name}: has {len(moving)} frames, so no {selection.every}th one; lower --every or raise --fps."
        )
    scored = tuple(range(selection.every - 1, len(moving), selection.every))[: selection.frames]
    cameras = tuple(moving.camera(index) for index in range(scored[-1] + 1))
    span = float(moving.times_s[-1] - moving.times_s[0])
    fps = (len(moving) - 1) / span / selection.every if span > 0 else 30.0
    return Shot(scene, name, cameras, scored, fps=fps)


def still_shots(
    scene: SceneSource,
    named: NamedScene,
    capture: Capture | None,
    width: int,
    height: int,
    views: int | None,  # at most so many; None: all
    against: str,  # photographs, reference, or either
    frames: int,  # how long the longest method looks
) -> list[Shot]:
    """The held-out views of a capture, or views of our own scene."""
    if capture is not None:
        chosen = _spread(capture.held_out, views)
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


def static_tasks(shots: Sequence[Shot], methods: Sequence[Method]) -> list[Task]:
    """Every method on every view, after the numbers of frames that the paper shows."""
    return [
        Task(shot, method, (0,) if method.is_independent else tuple(k - 1 for k in static_frames(method.name)))
        for shot in shots
        for method in methods
    ]


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
    unknown = [name for name in names if name not in KNOWN]
    if unknown:
        raise EvaluationError(f"--methods takes of {', '.join(KNOWN)}, got '{unknown[0]}'.")
    has_payload = scene.gaussians.payload is not None
    drawn = [drawn_by(name, has_payload).name for name in names]
    notes += [
        f"{scene.name} has no payload for {asked}; {name} draws it."
        for asked, name in zip(names, drawn, strict=True)
        if asked != name
    ]
    return [
        Method(
            label=name,
            name=name,
            settings=adjusted(name, DenoiserSettings()) if name in LEARNED else None,
            samples=reference_samples if name == "mean" else 0,
        )
        for name in dict.fromkeys(drawn)
    ]


def ablation_methods(scene: NamedScene, notes: list[str]) -> list[Method]:
    """The full denoiser and one without each part; zero-shot where the scene has no payload."""
    name = drawn_by("temporal", scene.gaussians.payload is not None).name
    if name != "temporal":
        notes.append(f"{scene.name} has no payload: the ablation is of {name}.")
    full = DenoiserSettings()
    variants: dict[str, DenoiserSettings] = {
        "full": full,
        "trust 1": replace(full, trust="one"),
        **{label: replace(full, **changes) for each in SEARCHED.values() for label, changes in each.items()},
        "no spatial filter": replace(full, spatial_filter=False),
        "no smoothing": replace(full, smooth=False),
        "no stabilisation": replace(full, stabilise=False),
        "gate 0": replace(full, gate=0),
        "gate 1": replace(full, gate=1),
        "as in the paper": PAPER,
    }
    return [Method(label, name, settings) for label, settings in variants.items()]


def track_rows(experiment: str, scores: Sequence[Scores]) -> tuple[list[Row], list[Row]]:
    """A row for each track and method, the mean over its frames; and the values frame by frame."""
    rows, series = [], []
    for found in scores:
        shot = found.task.shot
        head = {"scene": shot.scene.name, "track": shot.track, "method": found.task.method.label}
        values = {metric: _mean(found.values.get(metric, [])) for metric in METRICS if metric in found.values}
        samples = found.task.method.samples
        extra = {"samples": samples} if samples else {}
        rows.append(
            {"experiment": experiment, **head, "frames": len(found.task.frames), **extra, **values, **found.video}
        )
        series.append({**head, "frame": list(found.task.frames), **found.values})
    return rows, series


def still_rows(experiment: str, scores: Sequence[Scores]) -> list[Row]:
    """A row for each scene, method and number of frames, the mean over the scene's views."""
    groups: dict[tuple[str, str, int], list[dict[str, float | None]]] = {}
    for found in scores:
        for index, frame in enumerate(found.task.frames):
            method = found.task.method
            key = (found.task.shot.scene.name, method.label, 0 if method.is_independent else frame + 1)
            values = {metric: by_frame[index] for metric, by_frame in found.values.items()}
            groups.setdefault(key, []).append(values)
    return [
        {
            "experiment": experiment,
            "scene": scene,
            "track": "views",
            "method": method,
            "frames": frames,
            "views": len(values),
            **{metric: _mean([value[metric] for value in values]) for metric in METRICS if metric in values[0]},
        }
        for (scene, method, frames), values in groups.items()
    ]


def best_of_searched(rows: Sequence[Row], series: Sequence[Row], notes: list[str]) -> tuple[list[Row], list[Row]]:
    """Only the best of the heuristic and of the constant trusts, over all tracks; notes say what the others reached."""
    dropped: set[str] = set()
    for name, labels in SEARCHED.items():
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


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
