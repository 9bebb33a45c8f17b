"""What an evaluation spends its time on: processor time of a frame by each method, and of a pair of pictures by metric.

python benchmarks/evaluation_costs.py --lpips-weights vgg16_lpips.npz
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hushsplat.engines.base import engine
from hushsplat.evaluation.metrics import ssim
from hushsplat.evaluation.motions import named_track
from hushsplat.evaluation.perceptual import cvvdp_of, cvvdp_problem, lpips_of, lpips_problem
from hushsplat.scenes import scene_argument
from hushsplat.stream import Stream
from hushsplat.types.options import Noise, RenderOptions

DENOISERS = ("st-taa", "svgf", "svgf-tuned", "paper-zero-shot")
FRAMES, VIDEO_FRAMES = 8, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", default="synth:200k")
    parser.add_argument("--width", type=int, default=800)
    parser.add_argument("--height", type=int, default=532)
    parser.add_argument("--lpips-weights", type=Path)
    options = parser.parse_args()
    named = scene_argument(options.scene)
    track = named_track("walk", named).resized(options.width, options.height).resampled(300.0)
    drawn_on = engine("cpu")
    scene = drawn_on.upload(named.gaussians)

    def of_methods(*names: str, samples: int = 1) -> float:
        noise, one = Noise(samples=samples), RenderOptions(threads=1)
        stream, cameras = Stream(drawn_on, scene, names, noise=noise, options=one), map(track.camera, range(9999))
        return seconds(lambda: stream.step(next(cameras)), FRAMES if samples == 1 else 1)

    for name in ("raw", *DENOISERS, "hush", "reference", "exact"):
        print(f"{name:<20} {of_methods(name):8.3f} s a frame")
    print(f"{f'raw + {len(DENOISERS)} denoisers':<20} {of_methods('raw', *DENOISERS):8.3f} s a frame")
    print(f"{'64 samples of raw':<20} {of_methods('raw', samples=64):8.3f} s a frame")

    rng = np.random.default_rng(0)
    shown = rng.integers(0, 255, (VIDEO_FRAMES, options.height, options.width, 3)).astype(np.uint8)
    expected = (shown // 2 + 60).astype(np.uint8)
    first, second = (pictures[0].astype(np.float32) / 255 for pictures in (shown, expected))
    print(f"{'SSIM':<20} {seconds(lambda: ssim(first, second), FRAMES):8.3f} s a pair")
    weights, problem = options.lpips_weights, lpips_problem(options.lpips_weights)
    if weights is None or problem is not None:
        print(problem)
    else:
        time_s = seconds(lambda: lpips_of("lpips_3dgs", shown[:1], expected[:1], weights), 1)
        print(f"{'LPIPS':<20} {time_s:8.3f} s a pair")
    video = seconds(lambda: cvvdp_of(shown, expected, 30.0), 1) / VIDEO_FRAMES if cvvdp_problem() is None else None
    print(cvvdp_problem() if video is None else f"{'ColorVideoVDP':<20} {video:8.3f} s a pair")


def seconds(work: Callable[[], object], times: int) -> float:
    """Processor time of one call, after one that is not measured."""
    work()
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times


if __name__ == "__main__":
    main()
