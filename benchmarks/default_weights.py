"""PSNR of the weights of the package along moving tracks, beside heuristic trust and the paper's passes.

    python benchmarks/default_weights.py --splat bonsai.splat --cameras cameras.json --pictures out/

Parts of the walk through another seed of our scene than was trained on, and with --splat a real scene; each at 30
frames per second and at the 300 of the paper's recordings, ending at the same place. PSNR is the mean over 16 frames
of the last three quarters, against `reference` and against `exact`, the mean of the stream: what `exact` itself reaches
against `reference` is the most that a denoiser can. Pictures: the last frame of each track.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

import hushsplat
from hushsplat import synth
from hushsplat.engines.base import engine
from hushsplat.methods import configure, weights_of
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Stream
from hushsplat.types.camera import Camera
from hushsplat.types.metrics import psnr
from hushsplat.types.options import RenderOptions
from hushsplat.types.paths import track_from_cameras

FRAMES = {30: 80, 300: 240}  # by frames per second
MEASURED = 16  # frames of a track
SIZE_PX = (400, 266)

BASELINES = ("svgf", "svgf-tuned")
METHODS = {
    "trust by depth, σ = 5": DenoiserSettings(zero_shot=True, trust="heuristic", sigma=5.0),
    "paper's passes": replace(PAPER, zero_shot=True),
    "temporal-zero-shot": DenoiserSettings(zero_shot=True),
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


def measure(subject: Subject, weights: DenoiserWeights, pictures: Path | None) -> None:
    drawing, cameras, options = engine("cpu"), subject.cameras, RenderOptions()
    scene = drawing.upload(subject.gaussians)
    learned = [configure("temporal-zero-shot", weights=weights, settings=settings) for settings in METHODS.values()]
    names = ["raw", *METHODS, *BASELINES]
    stream = Stream(drawing, scene, ["raw", *learned, *map(configure, BASELINES)], options=options)
    with_views = [name in METHODS for name in names]
    measured = np.linspace(len(cameras) - 1, len(cameras) // 4, MEASURED).astype(int)
    reference, exact = (
        [drawing.render(scene, cameras[frame], name, options, with_depth=False).numpy().color for frame in measured]
        for name in ("reference", "exact")
    )
    frames = {}
    for number, camera in enumerate(cameras):
        images = stream.step(camera, with_views=with_views).images
        if number in measured:
            frames[number] = [(image.color, (image.views or {}).get("composite", image.color)) for image in images]
    shown = {"exact": (exact, exact)}
    for place, name in enumerate(names):
        stable, composite = zip(*(frames[number][place] for number in measured), strict=True)
        shown[name] = (list(stable), list(composite))
    for name, (stable, composite) in shown.items():
        columns = [mean_psnr(stable, reference), mean_psnr(composite, reference)]
        columns += [mean_psnr(stable, exact), mean_psnr(composite, exact)]
        print(f"| {subject.name} | {name} | " + " | ".join(f"{column:.2f}" for column in columns) + " |", flush=True)
    rows = [("reference", reference[0]), *((name, stable[0]) for name, (stable, _) in shown.items())]
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
        for name, color in rows:
            path = pictures / f"{subject.name} {name}.png".replace(" ", "_").replace(",", "")
            Pillow.fromarray((np.clip(color, 0, 1) * 255 + 0.5).astype(np.uint8)).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, help="of the package if not given")
    parser.add_argument("--splat", type=Path)
    parser.add_argument("--cameras", type=Path)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    weights = weights_of(arguments.weights, "temporal-zero-shot")
    print("| track | method | reference | before stabilising | exact | before stabilising |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for subject in own_subjects():
        measure(subject, weights, arguments.pictures)
    if arguments.splat and arguments.cameras:
        for subject in real_subjects(arguments.splat, arguments.cameras):
            measure(subject, weights, arguments.pictures)


if __name__ == "__main__":
    main()
