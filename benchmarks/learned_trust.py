"""What stage 4 learns to trust, by the chains it learns from, beside trust 1 and constants.

    python benchmarks/learned_trust.py --gradient-frames 1 8 --flight-shares 0 1
    python benchmarks/learned_trust.py --capture bonsai/ --run RUN/scenes/bonsai --steps 900

Stage 4 of `paper` from random weights on surfels of our own scene, or on those that stages 1 to 3 have left of a
capture, in windows of 128×96; then the first seconds of the walk at 300 and at 30 frames per second through the same
scene, with the trust that was learned, with 1 and with constants. PSNR against the target of the stage and the
distribution of t_s, over five frames a second. It is the scene of training: how loss, chains and step size shape the
trust, not how it does elsewhere.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from hushsplat import synth
from hushsplat.cli.console import progress_bar
from hushsplat.engines.base import engine
from hushsplat.evaluation.motions import named_track
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.scenes.scene import load
from hushsplat.methods import configure
from hushsplat.scenes import scene_argument
from hushsplat.spec.settings import PAPER
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Stream
from hushsplat.training.first_surfels import flattened
from hushsplat.training.joint_stage import JointStage, Subject
from hushsplat.training.settings import ChainSizes, Stage4, TrainSettings
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.metrics import psnr
from hushsplat.types.options import RenderOptions
from hushsplat.types.paths import up_of_cameras
from hushsplat.types.track import Track

SCORED_FPS, SIZE_PX, WIDTH_PX = 5, (320, 212), 400
CONSTANTS = (0.8, 0.9, 0.95)
TRUSTS = {
    "learned": PAPER,
    "1": replace(PAPER, trust="one"),
    **{f"{t:g}": replace(PAPER, trust="constant", constant_trust=t) for t in CONSTANTS},
}


def own(count: int) -> tuple[Subject, Track]:
    """Our own scene as surfels, seen from a walk."""
    views = synth.walk_track(60.0, 1.0, *SIZE_PX)
    cameras = [views.camera(frame) for frame in range(len(views))]
    scene = flattened(synth.room_and_garden(count))
    return Subject(scene, cameras, cameras[:1], 10.0), synth.walk_track(8.0, 300, *SIZE_PX)


def of_capture(capture: Path, run: Path) -> tuple[Subject, Track]:
    """The surfels of stage 3, the target of stage 1, every 8th view held out."""
    cameras = [view.camera.resized(WIDTH_PX) for view in load_capture(capture).views]
    poses = np.stack([camera.world_from_camera for camera in cameras])
    track = named_track("walk", scene_argument(str(run / "stage3.ply")), up_of_cameras(poses))
    places = poses[:, :3, 3]
    radius = 1.1 * float(np.linalg.norm(places - places.mean(axis=0), axis=1).max())
    trained = [camera for index, camera in enumerate(cameras) if index % 8]
    subject = Subject(load(run / "stage3.ply"), trained, cameras[::8], radius, load(run / "stage1.ply"))
    return subject, track.resized(cameras[0].width, cameras[0].height)


def play(
    scene: Gaussians, reference: Gaussians, weights: DenoiserWeights, track: Track, every: int
) -> tuple[dict[str, float], np.ndarray]:
    """PSNR by trust, and t_s of the learned one."""
    drawing, options = engine("cpu"), RenderOptions()
    uploaded, vanilla = drawing.upload(scene), drawing.upload(reference)
    stream = Stream(drawing, uploaded, [configure("paper", weights=weights, settings=s) for s in TRUSTS.values()])
    reached: dict[str, list[float]] = {name: [] for name in TRUSTS}
    trusts = []
    for frame in range(len(track)):
        camera, scored = track.camera(frame), frame % every == every - 1
        images = stream.step(camera, with_views=[scored, *[False] * (len(TRUSTS) - 1)]).images
        if scored:
            target = drawing.render(vanilla, camera, "reference", options, with_depth=False).numpy().color
            for name, image in zip(TRUSTS, images, strict=True):
                reached[name].append(psnr(image.numpy().color, target))
            trusts.append(images[0].numpy().views["accumulated_trust"])
    return {name: float(np.mean(values)) for name, values in reached.items()}, np.stack(trusts)


def first_seconds(track: Track, seconds: float, fps: int) -> Track:
    """So many frames a second of its beginning."""
    return track.interpolate(track.times_s[0] + np.arange(round(min(seconds, track.duration_s) * fps)) / fps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capture", type=Path, help="folder of photographs")
    parser.add_argument("--run", type=Path, help="folder with stage1.ply and stage3.ply of the capture")
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3], help="step sizes of the networks")
    parser.add_argument("--gradient-frames", type=int, nargs="+", default=[8])
    parser.add_argument("--flight-shares", type=float, nargs="+", default=[1.0])
    parser.add_argument("--paces", type=float, nargs=2, default=(0.2, 6.0), help="px a frame of flights")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--count", type=int, default=60_000, help="surfels of our own scene")
    parser.add_argument("--seconds", type=float, default=4.0, help="of the walk at 300 fps; twice as many at 30")
    arguments = parser.parse_args()
    subject, track = own(arguments.count) if arguments.run is None else of_capture(arguments.capture, arguments.run)
    print("| rate | gradient | flights | fps | " + " | ".join(TRUSTS) + " | t_s: 1 % | 10 % | 50 % | 90 % |")
    print("|" + " ---: |" * (len(TRUSTS) + 8))
    for rate, gradient, flights in product(arguments.rates, arguments.gradient_frames, arguments.flight_shares):
        stage4 = Stage4(
            steps=arguments.steps,
            gate_warmup=50,
            window=(128, 96),
            network_rate=rate,
            gradient_frames=gradient,
            flight_share=flights,
            chains=ChainSizes(pace_px=tuple(arguments.paces)),
        )
        stage = JointStage(subject, TrainSettings(stage4=stage4))
        with progress_bar(f"{rate:g}, {gradient}, {flights:g}", arguments.steps) as bar:
            for index in range(arguments.steps):
                stage.step(index)
                bar.advance()
        scene = replace(subject.gaussians, payload=stage.payload.detach().numpy())
        reference = subject.gaussians if subject.reference is None else subject.reference
        for fps, seconds in ((300, arguments.seconds), (30, 2 * arguments.seconds)):
            seen = first_seconds(track, seconds, fps)
            reached, trusts = play(scene, reference, stage.networks.to_weights(), seen, fps // SCORED_FPS)
            numbers = [f"{n:.2f}" for n in reached.values()]
            numbers += [f"{n:.3f}" for n in np.percentile(trusts, [1, 10, 50, 90])]
            print(f"| {rate:g} | {gradient} | {flights:g} | {fps} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
