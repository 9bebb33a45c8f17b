"""Make the stored streams and expected outputs of tests/conformance with the torch engine.

    python tools/make_conformance.py

The torch engine is the definition of what every engine computes: run this after it was changed on purpose, and say in
the commit which outputs changed and why. Values are stored with 14 bits of their mantissa, which is enough for the
tolerances of the suite and halves the files.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "conformance"))

import cases
from cases import Arrays, RenderCase

from hushsplat.engines.torch.engine import TorchEngine
from hushsplat.spec.weights import SHAPES
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix

GAUSSIANS = 70
STORED_BITS = 14  # of the 23 of a float32's mantissa
WALL, BOARD = 4.0, 2.5  # world units along z: what the stream shows


def main() -> None:
    """Write every file."""
    cases.DATA.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, arrays in generated().items():
        path = cases.DATA / f"{name}.npz"
        np.savez_compressed(path, **arrays)
        total += path.stat().st_size
    print(f"wrote {len(generated_names())} files, {total / 1e3:.0f} kB")


def generated_names() -> list[str]:
    """Of every file."""
    names = [f"render-{case.name}" for case in cases.RENDER_CASES] + [
        f"denoise-{case.name}" for case in cases.DENOISE_CASES
    ]
    return [*names, "resize", "stream"]


def generated() -> dict[str, Arrays]:
    """Every file's arrays by the name of the file."""
    engine = TorchEngine()
    files: dict[str, Arrays] = {}
    for number, case in enumerate(cases.RENDER_CASES):
        inputs = scene_inputs(case, number)
        files[f"render-{case.name}"] = {**inputs, **compact(cases.render_outputs(engine, case, inputs))}
    stream = files["stream"] = stream_inputs()
    for case in cases.DENOISE_CASES:
        files[f"denoise-{case.name}"] = compact(cases.denoise_outputs(engine, case, stream))
    files["resize"] = compact(cases.resize_outputs(engine, stream))
    return files


def compact(outputs: Arrays) -> Arrays:
    """Outputs as they are stored: fewer bits, ids in two bytes."""
    return {name: _fewer_bits(array) for name, array in outputs.items()}


def _fewer_bits(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.int32:
        return array.astype(np.int16)
    lost = 23 - STORED_BITS
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << (lost - 1))) >> np.uint32(lost) << np.uint32(lost)).view(np.float32)


def scene_inputs(case: RenderCase, seed: int) -> Arrays:
    """Gaussians of many sizes before a turned camera: some behind it, edge-on, faint, or larger than the picture."""
    rng = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = matrix_from_quaternion(rng.normal(size=4)), rng.normal(size=3)
    camera = Camera(21, 17, 19.0, 21.0, 9.4, 8.9, pose)
    depth = np.exp(rng.uniform(np.log(0.5), np.log(12), GAUSSIANS))
    depth[:4] = -1, 0.1, 0.19, 0.3  # behind the camera, before the near plane, just behind it
    spread = np.abs(depth)
    centers = np.stack([rng.uniform(-0.6, 0.6, GAUSSIANS) * spread, rng.uniform(-0.5, 0.5, GAUSSIANS) * spread, depth])
    size = np.exp(rng.uniform(np.log(3e-3), np.log(0.5), GAUSSIANS)) * spread
    scales = size[:, None] * np.exp(rng.uniform(np.log(0.1), 0, (GAUSSIANS, case.columns)))
    rotations = matrix_from_quaternion(rng.normal(size=(GAUSSIANS, 4)))
    opacities = rng.uniform(0.05, 1, GAUSSIANS) * np.where(size > 0.2 * spread, 0.4, 1)
    opacities[rng.random(GAUSSIANS) < 0.15] = 1
    if case.coplanar:  # facing an untilted camera at one depth, each pixel covered by many that are opaque
        camera = replace(camera, world_from_camera=np.eye(4))
        centers[2], rotations = 2.0, np.broadcast_to(np.eye(3), rotations.shape)
        centers[:2] = rng.uniform(-0.7, 0.7, (2, GAUSSIANS))
        scales, opacities = rng.uniform(0.1, 0.6, scales.shape), np.where(rng.random(GAUSSIANS) < 0.5, 1, opacities)
    pose = camera.world_from_camera
    arrays = (
        centers.T @ pose[:3, :3].T + pose[:3, 3],
        scales,
        quaternion_from_matrix(pose[:3, :3] @ rotations),
        opacities,
        0.6 * rng.normal(size=(GAUSSIANS, (case.degree + 1) ** 2, 3)),
    )
    scene = Gaussians(*(array.astype(np.float32) for array in arrays))
    if case.payload:
        scene = replace(scene, payload=rng.normal(size=(GAUSSIANS, 10)).astype(np.float32))
    return {**cases.gaussians_arrays(_off_borders(scene, camera)), "camera": cases.camera_row(camera)}


def _off_borders(scene: Gaussians, camera: Camera) -> Gaussians:
    """Those whose centre is not on the border of two pixels: the pattern is anchored to the centre's pixel."""
    points = (scene.means.astype(np.float64) - camera.position) @ camera.world_from_camera[:3, :3]
    z = np.where(points[:, 2] > 0, points[:, 2], 1)
    places = np.stack([camera.fx * points[:, 0] / z + camera.cx, camera.fy * points[:, 1] / z + camera.cy], axis=1)
    return scene.take(np.flatnonzero((np.abs(places - np.round(places)) > 2e-3).all(axis=1)))


def stream_inputs() -> Arrays:
    """Observations and cameras of the stream, and weights at which every layer matters."""
    rng = np.random.default_rng(7)
    shots = [camera_at(frame) for frame in range(cases.FRAMES)]
    frames = [observe(camera, frame) for frame, camera in enumerate(shots)]
    weights = [8.0 if name == "gate.gamma" else 0.4 * rng.standard_normal(shape) for name, shape in SHAPES.items()]
    return {
        **{name: np.stack([frame[name] for frame in frames]) for name in frames[0]},
        "cameras": np.stack([cases.camera_row(camera) for camera in shots]),
        "weights": np.concatenate([np.ravel(tensor) for tensor in weights]).astype(np.float32),
    }


def camera_at(frame: int) -> Camera:
    """Walks sideways and forwards and turns, stands still for a while, jumps to another place, and walks on."""
    place = frame - sum(stop <= frame for stop in cases.STOPS)
    eye = np.array([0.11 * place, 0.03 * np.sin(place), 0.05 * place])
    if frame >= cases.CUT:
        eye = eye + np.array([-6.0, 0.4, 0.2])
    target = eye + np.array([0.05 * place, 0.05, 4.0])
    return Camera.look_at(eye, target, width=cases.WIDTH, height=cases.HEIGHT, fov_y_deg=60.0)


def observe(camera: Camera, frame: int) -> Arrays:
    """A patterned wall, a board before it that half of the samples miss, holes, and noise; in float16."""
    rng = np.random.default_rng(1000 + frame)
    y, x = np.mgrid[: camera.height, : camera.width] + 0.5
    rays = np.stack([(x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy, np.ones_like(x)], axis=-1)
    rays = rays @ camera.world_from_camera[:3, :3].T
    near = (BOARD - camera.position[2]) / rays[..., 2]
    on_board = camera.position + near[..., None] * rays
    board = (np.abs(on_board[..., :2]) < 0.6).all(axis=-1) & (rng.random(x.shape) < 0.5)
    depth = np.where(board, near, (WALL - camera.position[2]) / rays[..., 2])
    place = camera.position + depth[..., None] * rays
    waves = place @ np.array([[3.0, 5.0, 1.0], [2.0, -4.0, 6.0], [0.0, 1.0, 2.0]])
    color = np.maximum(0.5 + 0.4 * np.sin(waves + board[..., None]) + 0.3 * rng.standard_normal(waves.shape), 0)
    hit = rng.random(x.shape) >= 0.04
    hit[2:6, 3:8] = False  # a hole that no neighbour fills
    view = 1.5 * rng.standard_normal((*x.shape, 4))
    return {
        "color": np.where(hit[..., None], color, 0).astype(np.float16),
        "depth": np.where(hit, depth, 0).astype(np.float16),
        "alpha": hit.astype(np.float16),
        "neural_view": np.where(hit[..., None], view, 0).astype(np.float16),
    }


if __name__ == "__main__":
    main()
