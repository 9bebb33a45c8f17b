"""After how many noisy frames a constant trust below 1 pays: L1 and PSNR of the composite by frames since the start.

    python benchmarks/trust_horizon.py

The walk at 300 frames per second through surfels of our own scene, 320×212, drawn by `paper-zero-shot` with constant
trusts, once without any history and once with that of a long rest at the first camera, free of noise. Against
`reference`. It says how many frames of a chain a loss must see before it can prefer a trust below 1.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from hushsplat import synth
from hushsplat.engines.base import engine
from hushsplat.methods import configure
from hushsplat.spec.settings import PAPER
from hushsplat.stream import Stream
from hushsplat.training.first_surfels import flattened
from hushsplat.training.joint_loss import CleanPicture
from hushsplat.training.joint_stage import clean_state
from hushsplat.types.metrics import psnr
from hushsplat.types.options import RenderOptions

METHOD, FPS, SIZE_PX, SCORED = "paper-zero-shot", 300, (320, 212), (8, 16, 32, 64, 128, 256)
TRUSTS = (1.0, 0.97, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60_000, help="surfels")
    arguments = parser.parse_args()
    drawing, options = engine("cpu"), RenderOptions()
    scene = drawing.upload(flattened(synth.room_and_garden(arguments.count)))
    track = synth.walk_track(2.0, FPS, *SIZE_PX)
    settings = [replace(PAPER, zero_shot=True, trust="constant", constant_trust=t) for t in TRUSTS]
    print("| start | frames | " + " | ".join(f"t = {t:g}: L1, PSNR" for t in TRUSTS) + " |")
    print("| --- |" + " ---: |" * (len(TRUSTS) + 1))
    for start in ("nothing", "rest"):
        stream = Stream(drawing, scene, [configure(METHOD, settings=each) for each in settings], options=options)
        if start == "rest":
            camera = track.camera(0)
            picture = CleanPicture.of(drawing.render(scene, camera, "reference", options).numpy())
            stream.states = [clean_state(picture, camera, 128, METHOD, each) for each in settings]
        for frame in range(1, max(SCORED) + 1):
            camera, scored = track.camera(frame), frame in SCORED
            images = stream.step(camera, with_views=scored).images
            if not scored:
                continue
            target = drawing.render(scene, camera, "reference", options, with_depth=False).numpy().color
            shown = [image.numpy().views["composite"] for image in images]
            cells = [f"{np.abs(each - target).mean():.4f}, {psnr(each, target):.2f}" for each in shown]
            print(f"| {start} | {frame} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
