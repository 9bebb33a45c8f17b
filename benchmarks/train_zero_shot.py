"""Train the weights that ship with the package, on several scenes at once; half an hour on two idle cores.

    python benchmarks/train_zero_shot.py -o weights.safetensors bonsai.splat flowers/lod-meta.json show.sog room.ply

Our own scene is always among them, in several sizes and seeds. Chains are windows of pictures of several sizes: a
third moves and turns at paces from a twentieth of a pixel to 12 pixels a frame, a third does so fast, a third is
pieces of walks (our own scene) and of flights around a scene, at 8 to 300 frames a second.
Some chains stop, some start again after a rest, and some have a cut.
`benchmarks/default_weights.py` measures what comes out. Weights are written after every round.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator

import hushsplat
from hushsplat import synth
from hushsplat.engines.base import Engine, Scene, engine
from hushsplat.home import orbit_scene
from hushsplat.io.weights import read_weights, write_weights
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.training.chain_cameras import paced
from hushsplat.training.joint_stage import windowed
from hushsplat.training.zero_shot import RecordedChain, ZeroShotSettings, record, train_zero_shot
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions
from hushsplat.types.track import Track

LEAST_COVERED = 0.7  # of a window's pixels: empty views have nothing to train on
STATIC_SHARE = 0.06
STOP_SHARE = 0.1  # of the chains come to rest
RESTART_SHARE = 0.25  # of the chains rest first, for RESTED frames, and then move, slowly as often as fast
CUT_SHARE = 0.1  # of the chains jump to another view
RESTED = (20, 140)  # frames


@dataclass(frozen=True)
class Kind:
    """One kind of chain."""

    window_px: tuple[int, int]
    view_px: tuple[int, ...]  # widths of the whole picture that the window is cut from
    pace_px: tuple[float, float]  # a frame
    frames: tuple[int, int]


SLOW = Kind((144, 112), (400, 800, 1600), (0.05, 12.0), (24, 160))
FAST = Kind((256, 168), (320, 400, 480), (1.5, 14.0), (24, 60))


WALK_WINDOW_PX, WALK_VIEW_PX = (256, 168), (320, 400, 800)
WALK_SECONDS = (12.0, 60.0)  # from the first room to the garden's end, or once around
WALK_FPS = (8.0, 300.0)


@dataclass(frozen=True)
class Scenery:
    name: str
    scene: Scene
    views: Sequence[Camera]
    walk: Callable[[float, float], Track]  # seconds, frames per second


def sceneries(drawing: Engine, paths: Sequence[Path]) -> list[Scenery]:
    found = []
    for count, seed in ((60_000, 1), (200_000, 2), (200_000, 5), (300_000, 7)):
        views, walk = synth.view_cameras(60, 800, 532), partial(synth.walk_track, width=800, height=532)
        scene = drawing.upload(synth.room_and_garden(count, seed=seed))
        found.append(Scenery(f"own {seed}", scene, views, walk))
    for path in paths:
        gaussians = hushsplat.load(path)
        track = orbit_scene(gaussians, 800, 532, seconds=2.0, fps=30.0)
        views = [track.camera(frame) for frame in range(len(track))]
        found.append(Scenery(path.name, drawing.upload(gaussians), views, partial(_flight, gaussians)))
    return found


def _flight(gaussians: Gaussians, seconds: float, fps: float) -> Track:
    return orbit_scene(gaussians, 800, 532, seconds=seconds, fps=fps)


def depth_of(drawing: Engine, scenery: Scenery, camera: Camera) -> np.ndarray:
    return drawing.render(scenery.scene, camera, "exact", RenderOptions()).numpy().depth


def walk_of(drawing: Engine, scenery: Scenery, rng: Generator) -> RecordedChain:
    while True:
        seconds, fps = (float(np.exp(rng.uniform(*np.log(limits)))) for limits in (WALK_SECONDS, WALK_FPS))
        track, frames = scenery.walk(seconds, fps), int(rng.integers(*FAST.frames))
        first, width = int(rng.integers(len(track) - frames)), int(rng.choice(WALK_VIEW_PX))
        place = int(rng.integers(1 << 30))  # of the window, the same in all frames
        cameras = [
            windowed(track.camera(first + frame).resized(width), WALK_WINDOW_PX, np.random.default_rng(place))
            for frame in range(frames)
        ]
        if np.mean(depth_of(drawing, scenery, cameras[0]) > 0) > LEAST_COVERED:
            return record(drawing, scenery.scene, cameras, seed=int(rng.integers(1 << 30)))


def chain_of(drawing: Engine, scenery: Scenery, kind: Kind, rng: Generator) -> RecordedChain:
    while True:
        view = scenery.views[int(rng.integers(len(scenery.views)))].resized(int(rng.choice(kind.view_px)))
        view = windowed(view, kind.window_px, rng)
        depth = depth_of(drawing, scenery, view)
        if np.mean(depth > 0) > LEAST_COVERED:
            break
    frames = int(rng.integers(*kind.frames))
    pixels = 0.0 if rng.random() < STATIC_SHARE else float(np.exp(rng.uniform(*np.log(kind.pace_px))))
    cameras = paced(view, frames, pixels, float(np.median(depth[depth > 0])), rng)
    event = rng.random()
    if event < STOP_SHARE:
        rest = int(frames * rng.uniform(0.2, 0.6))
        cameras = cameras[:rest] + [cameras[rest]] * (frames - rest)
    elif event < STOP_SHARE + RESTART_SHARE:
        cameras = [cameras[0]] * int(rng.integers(*RESTED)) + cameras[: RESTED[0]]
    elif event < STOP_SHARE + RESTART_SHARE + CUT_SHARE:
        other = scenery.views[int(rng.integers(len(scenery.views)))]
        there = windowed(other.resized(int(rng.choice(kind.view_px))), kind.window_px, rng)
        cut = frames // 2
        cameras = cameras[:cut] + paced(there, frames - cut, pixels, float(np.median(depth[depth > 0])), rng)
    return record(drawing, scenery.scene, cameras, seed=int(rng.integers(1 << 30)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", type=Path, nargs="*", help="trained scenes beside our own")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="weights to begin with")
    parser.add_argument("--chains", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=ZeroShotSettings().rounds)
    parser.add_argument("--steps", type=int, default=ZeroShotSettings().steps)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # tiny pictures: more threads only wait for each other

    begun, rng, chains = time.perf_counter(), np.random.default_rng(arguments.seed), []
    drawing = engine("cpu")
    places = sceneries(drawing, arguments.scenes)
    for index in range(arguments.chains):
        scenery = places[index % len(places)]
        kind = (SLOW, FAST, None)[index // len(places) % 3]
        chains.append(walk_of(drawing, scenery, rng) if kind is None else chain_of(drawing, scenery, kind, rng))
        print(
            f"chain {index + 1} of {arguments.chains}, {scenery.name}, {time.perf_counter() - begun:.0f} s", flush=True
        )
    losses: list[float] = []

    def report(round_: int, step: int, loss: float, weights: DenoiserWeights) -> None:
        losses.append(loss)
        if (step + 1) % 100 == 0:
            mean, seconds = np.mean(losses[-100:]), time.perf_counter() - begun
            print(f"round {round_ + 1} step {step + 1}: {mean:.5f}, γ {weights.gamma:.2f}, {seconds:.0f} s", flush=True)
            write_weights(weights, arguments.output)

    start = None if arguments.start is None else read_weights(arguments.start)
    settings = ZeroShotSettings(rounds=arguments.rounds, steps=arguments.steps, seed=arguments.seed)
    write_weights(train_zero_shot(chains, settings, start, report), arguments.output)


if __name__ == "__main__":
    main()
