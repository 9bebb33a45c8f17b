"""What the shipped weights bring: PSNR along moving tracks, beside plain ways to trust history.

    python benchmarks/default_weights.py --splat bonsai.splat --cameras cameras.json --pictures out/

Parts of the walk through another seed of our scene than was trained on, and with --splat a real scene; each at 30
frames per second and at the 300 of the paper's recordings, ending at the same place. PSNR is the mean over 16 frames
of the last three quarters, against `reference` and against `exact`, which the noise is about: what `exact` itself
reaches against `reference` is the ceiling of the first. Pictures: the last frame of each track.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

import hushsplat
from hushsplat import synth
from hushsplat.engines.cpu.denoise_names import PAPER, DenoiserSettings, denoiser
from hushsplat.engines.cpu.pipeline import step
from hushsplat.engines.cpu.render_names import decode, render_ordered, render_sorted, sample_visibility
from hushsplat.io.weights import read_weights
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.observation import Observation
from hushsplat.types.paths import track_from_cameras

FRAMES = {30: 80, 300: 240}  # by frames per second
MEASURED = 16  # frames of a track
SIZE_PX = (400, 266)
WEIGHTS = Path(__file__).parents[1] / "src/hushsplat/denoise/weights/default.safetensors"

BASELINES = ("svgf", "svgf-tuned")
METHODS = {
    "trust by depth, σ = 5": DenoiserSettings(zero_shot=True, trust="heuristic", sigma=5.0),
    "paper's passes": replace(PAPER, zero_shot=True),
    "hush-zero-shot": DenoiserSettings(zero_shot=True),
}


@dataclass(frozen=True)
class Subject:
    name: str
    gaussians: hushsplat.Gaussians
    cameras: list[Camera]


def walk_piece(name: str, gaussians: hushsplat.Gaussians, seconds: float, end: float, fps: int) -> Subject:
    track = synth.walk_track(seconds, fps, *SIZE_PX)
    last = round(end * len(track))
    cameras = [track.camera(frame) for frame in range(last - FRAMES[fps], last)]
    return Subject(f"{name}, {fps} fps", gaussians, cameras)


def own_subjects() -> Iterator[Subject]:
    scene = synth.room_and_garden(200_000, seed=3)
    for fps in FRAMES:
        yield walk_piece("walk, door, 20 s", scene, 20, 0.42, fps)
        yield walk_piece("walk, garden, 20 s", scene, 20, 0.86, fps)
        yield walk_piece("walk, door, 60 s", scene, 60, 0.40, fps)
    yield Subject("static", scene, [synth.home_camera(*SIZE_PX)] * FRAMES[30])


def real_subjects(splat: Path, cameras_file: Path) -> Iterator[Subject]:
    scene = hushsplat.load(splat)
    listed = json.loads(cameras_file.read_text())
    lens = [listed[key] for key in ("width", "height", "fx", "fy", "cx", "cy")]
    cameras = [Camera(*lens, np.linalg.inv(np.array(frame["viewmat"]))) for frame in listed["frames"]]
    for fps, frames in FRAMES.items():
        for first, neighbours in ((20, 2), (120, 4)):
            track = track_from_cameras(cameras[first : first + neighbours], FRAMES[30] / 30, fps).resized(SIZE_PX[0])
            shown = [track.camera(frame) for frame in range(len(track) - frames, len(track))]
            yield Subject(f"{splat.stem} {first}+{neighbours}, {fps} fps", scene, shown)


def mean_psnr(pictures: list[np.ndarray], expected: list[np.ndarray]) -> float:
    return float(np.mean([psnr(picture, e) for picture, e in zip(pictures, expected, strict=True)]))


def psnr(picture: np.ndarray, expected: np.ndarray) -> float:
    error = np.mean((np.clip(picture, 0, 1) - np.clip(expected, 0, 1)) ** 2)
    return float(-10 * np.log10(max(error, 1e-10)))


def denoised(
    observations: list[Observation], subject: Subject, config: DenoiserSettings, weights: DenoiserWeights
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Shown and not yet stabilised, frame by frame."""
    state = None
    for observation, camera in zip(observations, subject.cameras, strict=True):
        frame, state = step(observation, camera, state, weights=weights, config=config, with_views=True)
        yield frame.color, frame.views["composite"] if frame.views else frame.color


def by_baseline(name: str, observations: list[Observation], subject: Subject) -> Iterator[np.ndarray]:
    method, state = denoiser(name), None
    for observation, camera in zip(observations, subject.cameras, strict=True):
        frame, state = method.step(observation, camera, state)
        yield frame.color


def measure(subject: Subject, weights: DenoiserWeights, pictures: Path | None) -> None:
    scene, cameras = subject.gaussians, subject.cameras
    samples = [sample_visibility(scene, camera, frame=frame) for frame, camera in enumerate(cameras)]
    observations = [decode(sample, scene, camera) for sample, camera in zip(samples, cameras, strict=True)]
    measured = np.linspace(len(cameras) - 1, len(cameras) // 4, MEASURED).astype(int)
    reference = [render_sorted(scene, cameras[frame], with_depth=False).color for frame in measured]
    exact = [render_ordered(scene, cameras[frame]).color for frame in measured]
    shown = {"exact": (exact, exact), "raw": ([observations[frame].color for frame in measured],) * 2}
    for name, config in METHODS.items():
        frames = list(denoised(observations, subject, config, weights))
        shown[name] = ([frames[frame][0] for frame in measured], [frames[frame][1] for frame in measured])
    for name in BASELINES:
        stable = list(by_baseline(name, observations, subject))
        shown[name] = ([stable[frame] for frame in measured],) * 2
    for name, (stable, composite) in shown.items():
        columns = [mean_psnr(stable, reference), mean_psnr(composite, reference)]
        columns += [mean_psnr(stable, exact), mean_psnr(composite, exact)]
        print(f"| {subject.name} | {name} | " + " | ".join(f"{column:.2f}" for column in columns) + " |", flush=True)
    rows = [("reference", reference[0]), *((name, stable[0]) for name, (stable, _) in shown.items())]
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
        for name, color in rows:
            path = pictures / f"{subject.name} {name}.png".replace(" ", "_").replace(",", "")
            Image.fromarray((np.clip(color, 0, 1) * 255 + 0.5).astype(np.uint8)).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--splat", type=Path)
    parser.add_argument("--cameras", type=Path)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    weights = read_weights(arguments.weights)
    print("| track | method | reference | before stabilising | exact | before stabilising |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for subject in own_subjects():
        measure(subject, weights, arguments.pictures)
    if arguments.splat and arguments.cameras:
        for subject in real_subjects(arguments.splat, arguments.cameras):
            measure(subject, weights, arguments.pictures)


if __name__ == "__main__":
    main()
