"""Finds the constants of `svgf-tuned` on one scene, our own, one constant after the other; about ten minutes.

    python benchmarks/tune_svgf.py

Two pieces of the walk through room and garden, each at 30 and at 300 frames per second, 400×266; score: mean PSNR
against `exact`, what the noise is about, over 16 frames of each. The frozen constants in
hushsplat/denoise/baselines/svgf.py come from an earlier search of this kind, which began with bonsai; whether this one
ends at the same place was not tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushsplat import synth
from hushsplat.core.camera import Camera
from hushsplat.core.stream import Observation
from hushsplat.denoise.baselines import svgf
from hushsplat.denoise.baselines.svgf import SvgfConfig
from hushsplat.render import decode, render_ordered, sample_visibility

SIZE_PX = (400, 266)
WALK_SECONDS = 20
ENDS = (0.42, 0.86)  # of the walk: through the door, in the garden
FRAMES = {30: 80, 300: 240}  # by frames per second
MEASURED = 16  # frames of each piece
CHOICES: dict[str, tuple[Any, ...]] = {
    "feedback": (True, False),
    "passes": (1, 2, 3),
    "kernel": (3, 5),
    "sigma_luma": (0.5, 1.0, 2.0, 4.0, 8.0),
    "alpha": (0.02, 0.03, 0.05),
    "moments_alpha": (0.02, 0.05, 0.2),
    "depth_threshold": (0.1, 0.2, 0.4, 0.7),
    "sigma_depth": (0.03, 0.1, 0.3, 1.0),
}


@dataclass(frozen=True)
class Piece:
    frames: list[tuple[Observation, Camera]]
    expected: dict[int, np.ndarray]  # by frame


def pieces() -> list[Piece]:
    gaussians = synth.room_and_garden(200_000, seed=3)
    found = []
    for fps, count in FRAMES.items():
        track = synth.walk_track(WALK_SECONDS, fps, *SIZE_PX)
        for end in ENDS:
            first = round(end * len(track)) - count
            cameras = [track.camera(first + frame) for frame in range(count)]
            frames = [
                (decode(sample_visibility(gaussians, camera, frame=k), gaussians, camera), camera)
                for k, camera in enumerate(cameras)
            ]
            measured = np.linspace(count // 4, count - 1, MEASURED).astype(int)
            found.append(Piece(frames, {int(k): render_ordered(gaussians, cameras[k]).color for k in measured}))
    return found


def score(config: SvgfConfig, piece: Piece) -> float:
    state, found = None, []
    for k, (observation, camera) in enumerate(piece.frames):
        frame, state = svgf.step(observation, camera, state, config=config)
        if k in piece.expected:
            error = np.mean((np.clip(frame.color, 0, 1) - np.clip(piece.expected[k], 0, 1)) ** 2)
            found.append(-10 * np.log10(max(error, 1e-10)))
    return float(np.mean(found))


def main() -> None:
    streams = pieces()

    def mean_score(config: SvgfConfig) -> float:
        return float(np.mean([score(config, piece) for piece in streams]))

    print(f"svgf: {mean_score(svgf.ADAPTED):.2f} dB", flush=True)
    best = replace(svgf.TUNED, passes=2, feedback=True)
    highest = mean_score(best)
    for _ in range(2):
        for name, choices in CHOICES.items():
            for choice in choices:
                candidate = replace(best, **{name: choice})
                reached = mean_score(candidate)
                print(f"{name} {choice}: {reached:.2f} dB", flush=True)
                if reached > highest + 0.005:
                    best, highest = candidate, reached
    print(f"{highest:.2f} dB: {best}")


if __name__ == "__main__":
    main()
