"""A noisy stream for the tests of denoisers: our scene at one sample per pixel along a piece of its walk."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from drawing import observe, uploaded

from hushsplat.engines.cpu.engine import CpuScene
from hushsplat.spec.weights import SHAPES, DenoiserWeights
from hushsplat.synth import room_and_garden, walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.observation import Observation


def random_weights(seed: int = 0) -> DenoiserWeights:
    """Weights of a size at which every layer matters."""
    rng = np.random.default_rng(seed)
    tensors = {name: (0.4 * rng.standard_normal(shape)).astype(np.float32) for name, shape in SHAPES.items()}
    return DenoiserWeights({**tensors, "gate.gamma": np.array(8, dtype=np.float32)})


@lru_cache
def _scene() -> CpuScene:
    scene = room_and_garden(10_000, sh_degree=0)
    rng = np.random.default_rng(1)
    payload = np.concatenate([2 * rng.standard_normal((len(scene), 9)), rng.standard_normal((len(scene), 1))], axis=1)
    return uploaded(replace(scene, payload=payload.astype(np.float32)))


@lru_cache
def noisy_walk(
    frames: int, width: int, height: int, *, still: tuple[int, ...] = ()
) -> list[tuple[Observation, Camera]]:
    """Observations with a random payload; in the frames `still` the camera does not move."""
    scene, stream = _scene(), []
    track = walk_track(width=width, height=height)
    place = 100
    for frame in range(frames):
        place += frame not in still
        camera = track.camera(place)
        stream.append((observe(scene, camera, frame), camera))
    return stream
