"""Finds the constants of `svgf-tuned` on one scene, our own; a quarter of an hour.

    python benchmarks/tune_svgf.py

Random mixtures of all constants first, then one constant after the other from the best of them: once for SVGF as it is
known, with several passes and the first fed back, and once for whatever is best. Two pieces of the walk through room
and garden, each at 30 and at 300 frames per second, 400×266; score: mean PSNR against `exact`, what the noise is
about, over 16 frames of each. TUNED_SVGF in hushsplat/spec/settings.py came from two such runs, the first with fewer
choices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hushsplat
from hushsplat import Camera, Observation, SvgfSettings, synth
from hushsplat.methods import configure
from hushsplat.spec.settings import TUNED_SVGF
from hushsplat.types.metrics import psnr

SIZE_PX = (400, 266)
WALK_SECONDS = 20
ENDS = (0.42, 0.86)  # of the walk: through the door, in the garden
FRAMES = {30: 80, 300: 240}  # by frames per second
MEASURED = 16  # frames of each piece
CHOICES: dict[str, tuple[Any, ...]] = {
    "feedback": (True, False),
    "passes": (1, 2, 3, 4),
    "kernel": (3, 5),
    "sigma_luma": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    "alpha": (0.02, 0.05, 0.1, 0.2, 0.3),
    "moments_alpha": (0.02, 0.05, 0.2),
    "depth_threshold": (0.1, 0.2, 0.4, 0.7),
    "sigma_depth": (0.03, 0.1, 0.3, 1.0),
}
KNOWN = CHOICES | {"feedback": (True,), "passes": (2, 3, 4)}
MIXTURES = 50  # drawn at random, of each kind
LEAST_GAIN_DB = 0.005


@dataclass(frozen=True)
class Piece:
    stream: hushsplat.Stream  # that drew the frames
    frames: list[tuple[Observation, Camera]]
    expected: dict[int, np.ndarray]  # by frame


def pieces() -> list[Piece]:
    on = hushsplat.engine("cpu")
    scene = on.upload(synth.room_and_garden(200_000, seed=3))
    found = []
    for fps, count in FRAMES.items():
        track = synth.walk_track(WALK_SECONDS, fps, *SIZE_PX)
        for end in ENDS:
            first = round(end * len(track)) - count
            cameras = [track.camera(first + frame) for frame in range(count)]
            stream, frames = hushsplat.Stream(on, scene, []), []
            for stream.number, camera in enumerate(cameras):
                frames.append((stream.observe(camera), camera))
            measured = np.linspace(count // 4, count - 1, MEASURED).astype(int)
            expected = {int(k): hushsplat.render(scene, cameras[k], "exact").color for k in measured}
            found.append(Piece(stream, frames, expected))
    return found


def score(settings: SvgfSettings, piece: Piece) -> float:
    denoiser, found = configure("svgf-tuned", settings=settings), []
    stream = hushsplat.Stream(piece.stream.engine, piece.stream.scene, [denoiser])
    for k, (observation, camera) in enumerate(piece.frames):
        image = stream.feed(observation, camera).images[0].numpy()
        if k in piece.expected:
            found.append(psnr(image.color, piece.expected[k]))
    return float(np.mean(found))


def mean_score(settings: SvgfSettings, streams: list[Piece]) -> float:
    return float(np.mean([score(settings, piece) for piece in streams]))


def improved(
    best: SvgfSettings, highest: float, streams: list[Piece], choices: dict[str, tuple[Any, ...]]
) -> tuple[SvgfSettings, float]:
    """Change one constant after the other while that helps."""
    before = -np.inf
    while highest > before:
        before = highest
        for name, values in choices.items():
            for value in values:
                if value == getattr(best, name):
                    continue
                candidate = replace(best, **{name: value})
                reached = mean_score(candidate, streams)
                print(f"{name} {value}: {reached:.2f} dB", flush=True)
                if reached > highest + LEAST_GAIN_DB:
                    best, highest = candidate, reached
    return best, highest


def main() -> None:
    streams, rng = pieces(), np.random.default_rng(0)
    print(f"svgf: {mean_score(SvgfSettings(), streams):.2f} dB", flush=True)
    kinds = {"several passes, the first fed back": KNOWN, "any": CHOICES}
    for kind, choices in kinds.items():
        best, highest = TUNED_SVGF, -np.inf
        for _ in range(MIXTURES):
            drawn = {name: values[rng.integers(len(values))] for name, values in choices.items()}
            candidate = replace(best, **drawn)
            reached = mean_score(candidate, streams)
            print(f"{drawn}: {reached:.2f} dB", flush=True)
            if reached > highest:
                best, highest = candidate, reached
        best, highest = improved(best, highest, streams, choices)
        print(f"{kind}: {highest:.2f} dB with {best}", flush=True)


if __name__ == "__main__":
    main()
