"""The demo: a walk through the shipped scene by every method beside the reference, evaluated like any other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushsplat.evaluation.draw_jobs import DRAWN_METRICS
from hushsplat.evaluation.experiments import FrameSelection, methods_of, track_shot, track_tasks
from hushsplat.evaluation.loop import FPS as LOOP_FPS
from hushsplat.evaluation.loop import write_loop
from hushsplat.evaluation.motions import named_track
from hushsplat.evaluation.plan import EvaluationOptions
from hushsplat.evaluation.report import write_report
from hushsplat.evaluation.results import Results
from hushsplat.evaluation.runner import evaluate
from hushsplat.evaluation.shots import SceneSource
from hushsplat.jobs import executor
from hushsplat.scenes import DEMO, demo_scene

TRACK = "walk"
WIDTH, HEIGHT = 720, 480  # px: six methods take two cores two minutes
LOOP_TRACK = "orbit"  # of the video that the page opens with
FPS, EVERY = 60.0, 3  # frames a second that are drawn; every EVERY-th is scored and in the video


@dataclass(frozen=True)
class DemoFiles:
    """What the demo has written."""

    results: Results
    page: Path
    video: Path


def run_demo(
    folder: Path,
    workers: int = 0,
    frames: int | None = None,  # at most so many are scored; None: the whole walk
    on_plan: Callable[[int], Callable[[int], None]] = lambda cost: lambda done: None,
) -> DemoFiles:
    """Evaluate, then write a page and a video of all methods side by side into the folder."""
    scene = demo_scene()
    folder.mkdir(parents=True, exist_ok=True)
    track = named_track(TRACK, scene).resized(WIDTH, HEIGHT)
    shot = track_shot(SceneSource(DEMO, None, scene.name), TRACK, track, FrameSelection(FPS, EVERY, frames))
    methods = methods_of(("raw", "st-taa", "svgf", "temporal", "hush"), scene, 0, [])
    results = evaluate(
        "navigation",
        track_tasks([shot], methods),
        EvaluationOptions(DRAWN_METRICS),
        folder / "results.json",
        command=f"hushsplat demo --output {folder}" + (f" --frames {frames}" if frames is not None else ""),
        protocol={"width": WIDTH, "height": HEIGHT, "against": "reference", "fps": FPS, "every": EVERY},
        missing={},
        notes=["hushsplat evaluate navigation takes other scenes and tracks, and has LPIPS and ColorVideoVDP."],
        executor=executor(workers),
        on_plan=on_plan,
    )
    page, video = folder / "report.html", folder / "side-by-side.mp4"
    around = named_track(LOOP_TRACK, scene).resampled(LOOP_FPS).resized(WIDTH, HEIGHT)
    if frames is not None:
        around = around.resampled(LOOP_FPS, max(1.0, len(around) / frames))
    loop = write_loop(scene.gaussians, around, folder / "loop.mp4")
    write_report([results], page, top=loop.html())
    shutil.copyfile(results.asset_path(next(a for a in results.assets if a["kind"] == "video")), video)
    return DemoFiles(results, page, video)
