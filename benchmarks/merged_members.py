"""What `hush` would gain from levels of detail: neighbours that are close together in the picture drawn as one.

    python benchmarks/merged_members.py synth:2500k --size 800x532
    python benchmarks/merged_members.py bonsai.splat --together 4 --spread-px 0.25 0.5 1

Blocks of neighbours are halved along their longest side down to groups of --together. A group whose weighted distance
from its middle is below --spread-px in the picture becomes one Gaussian of the same mass, mean and covariance
(types/merge.py). For each spread: PSNR of `reference` to that of the whole scene, members and CPU time of `sorted`.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
from hush import psnr

from hushsplat.engines.cpu.engine import CpuEngine, CpuScene
from hushsplat.evaluation.motions import named_track
from hushsplat.scenes import scene_argument
from hushsplat.stream import Stream
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.merge import SMALLEST, joined
from hushsplat.types.morton import BITS, morton_codes
from hushsplat.types.options import RenderOptions
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix

BLOCK = 512  # Gaussians that follow each other along the Morton curve
AT_ONCE = 200_000  # groups
FRAMES = 3  # of `sorted`; the last is timed, when it knows what is hidden


def groups(gaussians: Gaussians, together: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices [group, together], and of those left over."""
    low, high = np.percentile(gaussians.means, [1, 99], axis=0)  # a few that lie far away do not count
    cells = (gaussians.means - low) / float((high - low).max()) * (2**BITS - 1)
    order = np.argsort(morton_codes(cells.clip(0, 2**BITS - 1).astype(np.int64)), kind="stable")
    whole = len(order) // BLOCK * BLOCK
    index = order[:whole].reshape(-1, BLOCK)
    while index.shape[1] > together:
        means, half = gaussians.means[index], index.shape[1] // 2
        axis = np.argmax(np.ptp(means, axis=1), axis=1)
        along = np.take_along_axis(means, axis[:, None, None], axis=2)[..., 0]
        index = np.take_along_axis(index, np.argpartition(along, half, axis=1), axis=1).reshape(-1, half)
    return index, order[whole:]


def one_each(gaussians: Gaussians, index: np.ndarray) -> tuple[Gaussians, np.ndarray]:
    """A Gaussian for each group, and how far its own are spread; world units."""
    columns = gaussians.scales.shape[1]
    frames = matrix_from_quaternion(gaussians.rotations[index].reshape(-1, 4).astype(np.float64))[:, :, :columns]
    axes = (frames * gaussians.scales[index].reshape(-1, 1, columns)).reshape(*index.shape, 3, columns)
    opacity = gaussians.opacities[index].astype(np.float64)
    mass = opacity * np.sort(gaussians.scales[index].astype(np.float64), axis=2)[..., -2:].prod(axis=2) + 1e-30
    weight = mass / mass.sum(axis=1, keepdims=True)
    means = np.einsum("gn,gni->gi", weight, gaussians.means[index])
    offset = gaussians.means[index] - means[:, None]
    between = np.einsum("gn,gni,gnj->gij", weight, offset, offset)
    variance, directions = np.linalg.eigh(between + np.einsum("gn,gnik,gnjk->gij", weight, axes, axes))
    scales = np.sqrt(np.maximum(variance[:, ::-1], SMALLEST**2))
    directions = directions[:, :, ::-1].copy()
    directions[:, :, 2] *= np.sign(np.linalg.det(directions))[:, None]
    behind = 1 - np.exp(np.log1p(-np.minimum(opacity, 1 - 1e-6)).sum(axis=1))
    arrays = (
        means,
        scales[:, :columns],
        quaternion_from_matrix(directions),
        np.minimum(mass.sum(axis=1) / scales[:, :2].prod(axis=1), behind),
        np.einsum("gn,gnkc->gkc", weight, gaussians.sh[index]),
    )
    found = Gaussians(*(array.astype(np.float32) for array in arrays), antialiased=gaussians.antialiased)
    return found, np.sqrt(np.linalg.eigvalsh(between)[:, -1])


def told(scene: CpuScene, camera: Camera) -> str:
    """Members and CPU time of `sorted`."""
    stream = Stream(CpuEngine(), scene, ["sorted"], options=RenderOptions())
    for _ in range(FRAMES):
        begin = process_time()
        stream.step(camera)
        cpu_ms = 1e3 * (process_time() - begin)
    native = stream.states[0].native  # type: ignore[union-attr]
    return f"sorted {cpu_ms:.0f} cpu ms, {native.members:,} members, {native.pairs:,} pairs of member and cell"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("--size", default="1600x1064")
    parser.add_argument("--together", type=int, default=2, help="2, 4, 8 ...")
    parser.add_argument("--spread-px", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    arguments = parser.parse_args()
    scene, on = scene_argument(arguments.scene), CpuEngine()
    gaussians = scene.gaussians
    camera = named_track("walk", scene).resampled(30).camera(40).resized(*map(int, arguments.size.split("x")))

    def reference(uploaded: CpuScene) -> np.ndarray:
        return on.render(uploaded, camera, "reference", RenderOptions(), with_depth=False).color

    index, left = groups(gaussians, arguments.together)
    parts = [one_each(gaussians, index[at : at + AT_ONCE]) for at in range(0, len(index), AT_ONCE)]
    merged, spread = joined([part for part, _ in parts]), np.concatenate([spread for _, spread in parts])
    spread_px = spread * camera.fy / np.linalg.norm(merged.means - camera.position, axis=1)
    whole = on.upload(gaussians)
    picture = reference(whole)
    print(f"{scene.name}, {len(gaussians):,} Gaussians, {arguments.size}: {told(whole, camera)}", flush=True)
    for most in arguments.spread_px:
        close = spread_px < most
        apart = gaussians.take(np.concatenate([index[~close].ravel(), left]))
        drawn = on.upload(joined([apart, merged.take(np.flatnonzero(close))]))
        print(
            f"  below {most:g} px {close.mean():.1%} of groups of {arguments.together}:"
            f" {psnr(reference(drawn), picture):.2f} dB; {told(drawn, camera)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
