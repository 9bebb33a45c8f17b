"""How long a PLY takes to load, as a multiple of reading its bytes: `python benchmarks/load_ply.py`."""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hushsplat.io.scenes.ply import read_ply, write_ply
from hushsplat.types.gaussians import Gaussians


def scene(count: int, degree: int) -> Gaussians:
    random = np.random.default_rng(0)
    rotations = random.standard_normal((count, 4), np.float32)
    return Gaussians(
        means=random.standard_normal((count, 3), np.float32),
        scales=np.exp(random.standard_normal((count, 3), np.float32) - 4),
        rotations=rotations / np.linalg.norm(rotations, axis=1, keepdims=True),
        opacities=random.random(count, np.float32),
        sh=random.standard_normal((count, (degree + 1) ** 2, 3), np.float32),
    )


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = action()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gaussians", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.ply"
        write_ply(scene(arguments.gaussians, arguments.degree), path)
        path.read_bytes()  # into the cache, for both
        times = [(seconds(path.read_bytes), seconds(lambda: read_ply(path))) for _ in range(arguments.rounds)]
        size = path.stat().st_size
    bytes_s, load_s = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(load / read for read, load in times)
    print(f"{arguments.gaussians} Gaussians, SH {arguments.degree}, {size / 1e6:.0f} MB")
    print(f"read_bytes {bytes_s * 1e3:.0f} ms, read_ply {load_s * 1e3:.0f} ms, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
