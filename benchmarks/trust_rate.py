"""What the step size of the networks does to the trust that stage 4 learns, beside one and constants.

    python benchmarks/trust_rate.py --rates 1e-3 1e-4 --steps 2400

Stage 4 of `paper` from random weights on surfels of our own scene, in windows of 128×96; then the walk at 300 frames
per second through the same scene, 320×212, with the trust that was learned, with 1 and with constants. PSNR against
`reference` and the distribution of t_s, over every 30th frame. It is the scene of training: how the loss and the step
size shape the trust, not how it does elsewhere.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

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

WALK_S, FPS, SIZE_PX, EVERY = 5.0, 300, (320, 212), 30
CONSTANTS = (0.8, 0.9, 0.95)
TRUSTS = {
    "learned": PAPER,
    "1": replace(PAPER, trust="one"),
    **{f"{t:g}": replace(PAPER, trust="constant", constant_trust=t) for t in CONSTANTS},
}


def play(scene: Gaussians, weights: DenoiserWeights) -> tuple[dict[str, float], np.ndarray]:
    """PSNR by trust, and t_s of the learned one, along the walk."""
    drawing, options = engine("cpu"), RenderOptions()
    uploaded, track = drawing.upload(scene), synth.walk_track(WALK_S, FPS, *SIZE_PX)
    stream = Stream(drawing, uploaded, [configure("paper", weights=weights, settings=s) for s in TRUSTS.values()])
    reached: dict[str, list[float]] = {name: [] for name in TRUSTS}
    trusts = []
    for frame in range(len(track)):
        camera, scored = track.camera(frame), frame % EVERY == EVERY - 1
        images = stream.step(camera, with_views=[scored, *[False] * (len(TRUSTS) - 1)]).images
        if scored:
            target = drawing.render(uploaded, camera, "reference", options, with_depth=False).numpy().color
            for name, image in zip(TRUSTS, images, strict=True):
                reached[name].append(psnr(image.numpy().color, target))
            trusts.append(images[0].numpy().views["accumulated_trust"])
    return {name: float(np.mean(values)) for name, values in reached.items()}, np.stack(trusts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 1e-4])
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--count", type=int, default=60_000, help="surfels")
    arguments = parser.parse_args()
    scene = flattened(synth.room_and_garden(arguments.count))
    views = synth.walk_track(60.0, 1.0, *SIZE_PX)
    cameras = [views.camera(frame) for frame in range(len(views))]
    print("| rate | " + " | ".join(TRUSTS) + " | t_s: 1 % | 10 % | 50 % | 90 % |\n|" + " ---: |" * (len(TRUSTS) + 5))
    for rate in arguments.rates:
        stage4 = Stage4(steps=arguments.steps, window=(128, 96), network_rate=rate)
        stage = JointStage(Subject(scene, cameras, cameras[:1], 10.0), TrainSettings(stage4=stage4))
        with progress_bar(f"rate {rate:g}", arguments.steps) as bar:
            for index in range(arguments.steps):
                stage.step(index)
                bar.advance()
        payload = replace(scene, payload=stage.payload.detach().numpy())
        reached, trusts = play(payload, stage.networks.to_weights())
        numbers = [*reached.values(), *np.percentile(trusts, [1, 10, 50, 90])]
        print(f"| {rate:g} | " + " | ".join(f"{n:.2f}" for n in numbers) + " |", flush=True)


if __name__ == "__main__":
    main()
