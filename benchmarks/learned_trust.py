"""What stage 4 learns to trust, by the chains it learns from, beside trust 1 and constants.

    python benchmarks/learned_trust.py --gradient-frames 1 4 --flight-shares 0 0.7 --rates 1e-3 --steps 400

Stage 4 of `paper` from random weights on surfels of our own scene, in windows of 128×96; then the walk at 300 and at 30
frames per second through the same scene, 320×212, with the trust that was learned, with 1 and with constants. PSNR
against `reference` and the distribution of t_s, over ten frames a second. It is the scene of training: how loss, chains
and step size shape the trust, not how it does elsewhere.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product

import numpy as np

from hushsplat import synth
from hushsplat.cli.console import progress_bar
from hushsplat.engines.base import engine
from hushsplat.methods import configure
from hushsplat.spec.settings import PAPER
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Stream
from hushsplat.training.first_surfels import flattened
from hushsplat.training.joint_stage import JointStage, Subject
from hushsplat.training.settings import Stage4, TrainSettings
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.metrics import psnr
from hushsplat.types.options import RenderOptions

WALK_S, FPS, SIZE_PX, SCORED_FPS = 2.0, (300, 30), (320, 212), 10
CONSTANTS = (0.8, 0.9, 0.95)
TRUSTS = {
    "learned": PAPER,
    "1": replace(PAPER, trust="one"),
    **{f"{t:g}": replace(PAPER, trust="constant", constant_trust=t) for t in CONSTANTS},
}


def play(scene: Gaussians, weights: DenoiserWeights, fps: int) -> tuple[dict[str, float], np.ndarray]:
    """PSNR by trust, and t_s of the learned one, along the walk."""
    drawing, options = engine("cpu"), RenderOptions()
    uploaded, track, every = drawing.upload(scene), synth.walk_track(WALK_S, fps, *SIZE_PX), fps // SCORED_FPS
    stream = Stream(drawing, uploaded, [configure("paper", weights=weights, settings=s) for s in TRUSTS.values()])
    reached: dict[str, list[float]] = {name: [] for name in TRUSTS}
    trusts = []
    for frame in range(len(track)):
        camera, scored = track.camera(frame), frame % every == every - 1
        images = stream.step(camera, with_views=[scored, *[False] * (len(TRUSTS) - 1)]).images
        if scored:
            target = drawing.render(uploaded, camera, "reference", options, with_depth=False).numpy().color
            for name, image in zip(TRUSTS, images, strict=True):
                reached[name].append(psnr(image.numpy().color, target))
            trusts.append(images[0].numpy().views["accumulated_trust"])
    return {name: float(np.mean(values)) for name, values in reached.items()}, np.stack(trusts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3], help="step sizes of the networks")
    parser.add_argument("--gradient-frames", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--flight-shares", type=float, nargs="+", default=[0.0, 0.7])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--count", type=int, default=60_000, help="surfels")
    arguments = parser.parse_args()
    scene = flattened(synth.room_and_garden(arguments.count))
    views = synth.walk_track(60.0, 1.0, *SIZE_PX)
    cameras = [views.camera(frame) for frame in range(len(views))]
    print("| rate | gradient | flights | fps | " + " | ".join(TRUSTS) + " | t_s: 1 % | 10 % | 50 % | 90 % |")
    print("|" + " ---: |" * (len(TRUSTS) + 8))
    variants = product(arguments.rates, arguments.gradient_frames, arguments.flight_shares)
    for rate, gradient, flights in variants:
        stage4 = Stage4(
            steps=arguments.steps,
            gate_warmup=arguments.steps // 8,
            window=(128, 96),
            network_rate=rate,
            gradient_frames=gradient,
            flight_share=flights,
        )
        stage = JointStage(Subject(scene, cameras, cameras[:1], 10.0), TrainSettings(stage4=stage4))
        with progress_bar(f"{rate:g}, {gradient}, {flights:g}", arguments.steps) as bar:
            for index in range(arguments.steps):
                stage.step(index)
                bar.advance()
        payload = replace(scene, payload=stage.payload.detach().numpy())
        for fps in FPS:
            reached, trusts = play(payload, stage.networks.to_weights(), fps)
            numbers = [*reached.values(), *np.percentile(trusts, [1, 10, 50, 90])]
            row = " | ".join(f"{n:.2f}" for n in numbers)
            print(f"| {rate:g} | {gradient} | {flights:g} | {fps} | {row} |", flush=True)


if __name__ == "__main__":
    main()
