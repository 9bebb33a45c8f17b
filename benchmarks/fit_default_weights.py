"""Fit the weights that ship with the package: our own scene, small windows, several speeds; a few minutes on a CPU.

    python benchmarks/fit_default_weights.py -o src/hushsplat/denoise/weights/default.safetensors

They are for scenes without a payload (`HushConfig(zero_shot=True)`). `benchmarks/default_weights.py` measures them, and
shows that they are a beginning: along moving tracks they beat blind trust by 0.5 to 2.6 dB, while the best depth
heuristic and svgf are still ahead.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from hushsplat import synth
from hushsplat.core.camera import Camera
from hushsplat.core.gaussians import Gaussians
from hushsplat.denoise.config import HushConfig
from hushsplat.files.weights import write_weights
from hushsplat.learn import Denoiser
from hushsplat.learn.fit import Chain, FitSettings, fit
from hushsplat.render import decode, render_ordered, sample_visibility

FRAMES = 48  # of a chain
WINDOW_PX = (112, 76)
VIEW_PX = ((240, 160), (400, 266), (800, 532))  # sizes of the whole picture that a window is cut from
WALK_SECONDS = (8, 15, 30, 60)  # for the whole walk: from a run to a stroll
HELD_OUT = ((0.28, 0.42), (0.72, 0.86))  # parts of the walk that are left for measuring


def record(gaussians: Gaussians, cameras: Sequence[Camera], seed: int) -> Chain:
    observations, targets = [], []
    for frame, camera in enumerate(cameras):
        visibility = sample_visibility(gaussians, camera, seed=seed, frame=frame)
        observations.append(decode(visibility, gaussians, camera))
        targets.append(render_ordered(gaussians, camera).color)  # what the noise is about; sorting errs by itself
    return Chain(cameras, observations, targets)


def walking(rng: np.random.Generator, size: tuple[int, int]) -> list[Camera]:
    track = synth.walk_track(float(rng.choice(WALK_SECONDS)), 30, *size)
    while True:
        first = int(rng.integers(len(track) - FRAMES))
        span = first / len(track), (first + FRAMES) / len(track)
        if not any(start < span[1] and span[0] < end for start, end in HELD_OUT):
            return [track.camera(first + frame) for frame in range(FRAMES)]


def hovering(rng: np.random.Generator, size: tuple[int, int], amount: float) -> list[Camera]:
    """Around a photograph's position: `amount` metres to each side, turning as much, at a random pace."""
    views = synth.view_cameras(60, *size)
    view = views[rng.integers(len(views))]
    phase = rng.uniform(0, 2 * np.pi, 6) + np.arange(FRAMES)[:, None] * rng.uniform(0.03, 0.25, 6)
    cameras = []
    for shift in amount * np.sin(phase):
        pose = view.world_from_camera.copy()
        pose[:3, 3] += shift[:3]
        turn, _ = np.linalg.qr(np.eye(3) + 0.5 * np.cross(np.eye(3), shift[3:]))
        pose[:3, :3] @= turn * np.sign(np.diag(turn))
        cameras.append(replace(view, world_from_camera=pose))
    return cameras


def windowed(rng: np.random.Generator, cameras: Sequence[Camera]) -> list[Camera]:
    """The same cameras, seeing only one part of their pictures: pixels of large pictures at little cost."""
    width, height = WINDOW_PX
    left = int(rng.integers(cameras[0].width - width + 1))
    top = int(rng.integers(cameras[0].height - height + 1))
    return [replace(c, width=width, height=height, cx=c.cx - left, cy=c.cy - top) for c in cameras]


def make_chains(count: int, seed: int) -> list[Chain]:
    rng = np.random.default_rng(seed)
    scenes = [synth.room_and_garden(60_000, seed=1), synth.room_and_garden(200_000, seed=2)]
    chains = []
    for index in range(count):
        size = VIEW_PX[index % len(VIEW_PX)]
        if index % 10 == 9:
            cameras = hovering(rng, size, 0.0)  # stands still
        elif index % 4 == 3:
            cameras = hovering(rng, size, rng.uniform(0.01, 0.15))
        else:
            cameras = walking(rng, size)
        chains.append(record(scenes[rng.integers(len(scenes))], windowed(rng, cameras), seed=index))
    return chains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=FitSettings.steps)
    parser.add_argument("--chains", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # tiny pictures: more threads only wait for each other

    start = time.perf_counter()
    chains = make_chains(arguments.chains, arguments.seed)
    print(f"{len(chains)} chains of {FRAMES} frames in {time.perf_counter() - start:.0f} s", flush=True)
    losses: list[float] = []

    def report(step: int, loss: float, denoiser: Denoiser) -> None:
        losses.append(loss)  # of the composite
        if step % 100 == 99:
            gamma, seconds = denoiser.gate.gamma.item(), time.perf_counter() - start
            print(f"step {step + 1}: loss {np.mean(losses[-100:]):.5f}, γ {gamma:.2f}, {seconds:.0f} s", flush=True)
            write_weights(denoiser.to_weights(), arguments.output)

    settings = FitSettings(steps=arguments.steps, seed=arguments.seed)
    write_weights(fit(chains, HushConfig(zero_shot=True), settings, report), arguments.output)


if __name__ == "__main__":
    main()
