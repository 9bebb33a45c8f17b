"""Finds the constants of `svgf-tuned` on one scene, our own, by random search and refinement; seeded, so repeatable.

    python benchmarks/tune_svgf.py --trials 160 --refinements 80

Three windows of the walk through room and garden at 60 fps, 400×266; score: PSNR against `reference` (sorted), mean
over every tenth frame from the twentieth on. Prints each trial as a JSON line, then the best of each number of passes,
kernel and feedback, then the best of all, which hushsplat/denoise/baselines/svgf.py freezes. --taa sweeps the one
constant of `taa` on the same frames.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from hushsplat import synth
from hushsplat.core.camera import Camera
from hushsplat.core.stream import Observation
from hushsplat.denoise.baselines import svgf, taa
from hushsplat.denoise.baselines.svgf import SvgfConfig
from hushsplat.render import decode, render_sorted, sample_visibility

GAUSSIANS = 300_000
WIDTH, HEIGHT = 400, 266
STARTS, FRAMES = (0, 220, 440), 60  # of the walk's 600 frames: in the room, through the door, in the garden
RANGES = {  # searched evenly in the logarithm
    "alpha": (0.01, 0.2),
    "moments_alpha": (0.02, 0.5),
    "depth_threshold": (0.05, 1.0),
    "sigma_depth": (0.05, 3.0),
    "sigma_luma": (0.5, 20.0),
}


@dataclass(frozen=True)
class Window:
    frames: list[tuple[Observation, Camera]]
    references: dict[int, np.ndarray]  # by frame


def windows() -> list[Window]:
    gaussians = synth.room_and_garden(GAUSSIANS)
    track = synth.walk_track(seconds=10, fps=60, width=WIDTH, height=HEIGHT)
    found = []
    for start in STARTS:
        cameras = [track.camera(start + k) for k in range(FRAMES)]
        frames = [
            (decode(sample_visibility(gaussians, camera, frame=k), gaussians, camera), camera)
            for k, camera in enumerate(cameras)
        ]
        references = {k: render_sorted(gaussians, cameras[k]).color for k in range(19, FRAMES, 10)}
        found.append(Window(frames, references))
    return found


def psnr(picture: np.ndarray, reference: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((np.clip(picture, 0, 1) - np.clip(reference, 0, 1)) ** 2)))


def score(step: Callable, over: list[Window]) -> float:
    values = []
    for window in over:
        state = None
        for index, (observation, camera) in enumerate(window.frames):
            frame, state = step(observation, camera, state)
            if index in window.references:
                values.append(psnr(frame.color, window.references[index]))
    return float(np.mean(values))


def drawn(rng: np.random.Generator) -> SvgfConfig:
    numbers = {name: float(np.exp(rng.uniform(*np.log(limits)))) for name, limits in RANGES.items()}
    passes, kernel, feedback = int(rng.integers(1, 6)), int(rng.choice([3, 5])), bool(rng.integers(2))
    return SvgfConfig(**numbers, running_mean=True, passes=passes, kernel=kernel, feedback=feedback)


def nudged(config: SvgfConfig, rng: np.random.Generator) -> SvgfConfig:
    changes = {name: getattr(config, name) * float(np.exp(rng.normal(0, 0.3))) for name in RANGES if rng.random() < 0.5}
    return replace(config, **{name: min(value, 1.0) if "alpha" in name else value for name, value in changes.items()})


def said(value: float, config: SvgfConfig) -> str:
    return json.dumps(
        {"psnr": round(value, 3)} | {k: round(v, 4) if type(v) is float else v for k, v in asdict(config).items()}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=160)
    parser.add_argument("--refinements", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--taa", action="store_true")
    arguments = parser.parse_args()
    over = windows()
    if arguments.taa:
        for gamma in (0.2, 0.3, 0.4, 0.5, 0.75, 1.0):
            value = score(partial(taa.step, config=taa.TaaConfig(gamma=gamma)), over)
            print(json.dumps({"psnr": round(value, 3), "gamma": gamma}), flush=True)
        return
    rng = np.random.default_rng(arguments.seed)
    tried: list[tuple[float, SvgfConfig]] = []
    for number in range(arguments.trials + arguments.refinements):
        best = sorted(tried, key=lambda trial: -trial[0])[:4]
        config = drawn(rng) if number < arguments.trials else nudged(best[number % len(best)][1], rng)
        tried.append((score(partial(svgf.step, config=config), over), config))
        print(said(*tried[-1]), flush=True)
    groups: dict[tuple[int, int, bool], tuple[float, SvgfConfig]] = {}
    for value, config in tried:
        group = (config.passes, config.kernel, config.feedback)
        groups[group] = max(groups.get(group, (value, config)), (value, config), key=lambda trial: trial[0])
    print("best of each number of passes, kernel and feedback:")
    for group in sorted(groups):
        print(said(*groups[group]))
    print("the paper's adaptation:", said(score(svgf.step, over), svgf.ADAPTED))
    print("frozen:                ", said(score(svgf.step_tuned, over), svgf.TUNED))
    print("best:                  ", said(*max(tried, key=lambda trial: trial[0])))


if __name__ == "__main__":
    main()
