"""Error of the mean of raw frames over their number, `stratified` against `independent`, static and along a track.

    python benchmarks/samplers.py --splat bonsai.splat --cameras cameras.json -o docs/images/samplers.png

Static: one camera, the running mean of N frames against `exact`, over all pixels. Moving: points of the surface are
followed along a track; a point's samples are what the raw frames show in its pixel, and their mean is held against the
mean of what `exact` shows there: the error of sampling alone, as a denoiser with perfect reprojection would see it.
Both are root mean squares over pixels (points), channels and seeds. Without --splat only our own scene is measured.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import hushsplat
from hushsplat import synth
from hushsplat.io.captures.capture import load_capture
from hushsplat.spec.sampling import SAMPLERS
from hushsplat.types.paths import track_from_cameras

FRAMES = 128
SEEDS = 4
POINTS = 4000
COUNTS = [1, 2, 4, 8, 16, 32, 64, 128]


@dataclass(frozen=True)
class Subject:
    name: str
    scene: hushsplat.Scene
    track: hushsplat.Track  # FRAMES frames long


def raw_frames(subject: Subject, cameras: list[hushsplat.Camera], sampler: str, seed: int) -> Iterator[np.ndarray]:
    noise = hushsplat.Noise(seed=seed, sampler=sampler)
    return (image.color for image in hushsplat.play(subject.scene, cameras, "raw", noise=noise))


def exact(subject: Subject, camera: hushsplat.Camera) -> hushsplat.Image:
    return hushsplat.render(subject.scene, camera, "exact")


def static_errors(subject: Subject, sampler: str) -> list[float]:
    camera = subject.track.camera(FRAMES // 2)
    expected = exact(subject, camera).color
    squares = np.zeros(len(COUNTS))
    for seed in range(SEEDS):
        total = np.zeros(expected.shape)
        for frame, color in enumerate(raw_frames(subject, [camera] * FRAMES, sampler, seed)):
            total += color
            if frame + 1 in COUNTS:
                squares[COUNTS.index(frame + 1)] += np.mean((total / (frame + 1) - expected) ** 2)
    return list(np.sqrt(squares / SEEDS))


def followed_pixels(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of POINTS surface points in every frame; points that ever leave the picture are dropped."""
    middle = subject.track.camera(FRAMES // 2)
    picture = exact(subject, middle)
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, middle.height, 4 * POINTS), rng.integers(0, middle.width, 4 * POINTS)
    depth = picture.depth[rows, columns].astype(np.float64)
    solid = picture.alpha[rows, columns] > 0.9
    rays = np.stack(
        [(columns + 0.5 - middle.cx) / middle.fx, (rows + 0.5 - middle.cy) / middle.fy, np.ones(len(rows))], axis=1
    )
    world = (rays * depth[:, None])[solid] @ middle.world_from_camera[:3, :3].T + middle.position
    all_rows, all_columns = [], []
    for frame in range(FRAMES):
        camera = subject.track.camera(frame)
        x, y, z = (world - camera.position).dot(camera.world_from_camera[:3, :3]).T
        all_columns.append(np.floor(camera.fx * x / z + camera.cx))
        all_rows.append(np.where(z > 0, np.floor(camera.fy * y / z + camera.cy), -1))
    rows, columns = np.array(all_rows), np.array(all_columns)
    inside = ((rows >= 0) & (rows < middle.height) & (columns >= 0) & (columns < middle.width)).all(axis=0)
    return rows[:, inside][:, :POINTS].astype(int), columns[:, inside][:, :POINTS].astype(int)


def moving_errors(subject: Subject) -> dict[str, list[float]]:
    rows, columns = followed_pixels(subject)
    cameras = [subject.track.camera(frame) for frame in range(FRAMES)]
    pictures = (exact(subject, camera).color for camera in cameras)
    expected = np.array([picture[rows[f], columns[f]] for f, picture in enumerate(pictures)])
    errors = {}
    for sampler in SAMPLERS:
        squares = np.zeros(len(COUNTS))
        for seed in range(SEEDS):
            frames = enumerate(raw_frames(subject, cameras, sampler, seed))
            shown = np.array([color[rows[f], columns[f]] for f, color in frames])
            sums = np.cumsum(shown.astype(np.float64) - expected, axis=0)
            for k, count in enumerate(COUNTS):
                squares[k] += np.mean((sums[count - 1] / count) ** 2)
        errors[sampler] = list(np.sqrt(squares / SEEDS))
    return errors


def subjects(arguments: argparse.Namespace) -> list[Subject]:
    width, height = arguments.width, round(arguments.width * 532 / 800)
    ours = synth.walk_track(seconds=12, fps=30, width=width, height=height)
    start = len(ours) // 4
    walk = hushsplat.Track(
        *(getattr(ours, name) for name in ("width", "height", "fx", "fy", "cx", "cy")),
        ours.times_s[start : start + FRAMES],
        ours.world_from_camera[start : start + FRAMES],
    )
    found = [Subject("our scene, 500k surfels", hushsplat.upload("synth:500k"), walk)]
    if arguments.splat:
        capture = load_capture(arguments.cameras, require_photographs=False)
        cameras = [view.camera.resized(width, height) for view in capture.views[:6]]
        track = track_from_cameras(cameras, FRAMES / 30 - 1e-6, 30.0)
        found.append(Subject(arguments.splat.stem, hushsplat.upload(arguments.splat), track))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splat", type=Path)
    parser.add_argument("--cameras", type=Path)
    parser.add_argument("--width", type=int, default=400)
    parser.add_argument("-o", "--output", type=Path, default=Path("samplers.png"))
    arguments = parser.parse_args()
    found = subjects(arguments)
    figure, axes = plt.subplots(2, len(found), figsize=(5.2 * len(found), 7.6), squeeze=False, sharex=True)
    for column, subject in enumerate(found):
        curves = {"static": {s: static_errors(subject, s) for s in SAMPLERS}, "moving": moving_errors(subject)}
        for row, (kind, errors) in enumerate(curves.items()):
            axis = axes[row, column]
            for sampler, color in zip(SAMPLERS, ("#c0392b", "#2471a3"), strict=True):
                axis.loglog(COUNTS, errors[sampler], "o-", color=color, label=sampler, base=2)
            first = errors["independent"][0]
            axis.loglog(COUNTS, [first / np.sqrt(n) for n in COUNTS], ":", color="grey", label="1/√frames", base=2)
            axis.set_title(f"{subject.name}, {kind}")
            axis.set_ylabel("RMS error of the mean")
            axis.grid(alpha=0.3)
            axis.legend()
            ratios = np.array(errors["stratified"]) / np.array(errors["independent"])
            by_frames = {str(n): round(r, 3) for n, r in zip(COUNTS, ratios, strict=True)}
            print(json.dumps({"scene": subject.name, "camera": kind, **by_frames}), flush=True)
    for axis in axes[-1]:
        axis.set_xlabel("frames")
        axis.set_xticks(COUNTS, [str(n) for n in COUNTS])
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=90)
    print(f"error of stratified / error of independent, above; plot in {arguments.output}")


if __name__ == "__main__":
    main()
