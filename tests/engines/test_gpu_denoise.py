"""The gpu engine's denoisers over a longer stream, as the torch engine defines them."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from made_stream import camera_at, observe
from noisy_walk import noisy_walk, random_weights

from hushsplat.engines.base import engine
from hushsplat.methods import configure
from hushsplat.spec.passes import VIEWS
from hushsplat.stream import Stream
from hushsplat.synth import home_camera, room_and_garden, walk_track
from hushsplat.types.errors import DenoiseError
from hushsplat.types.options import Noise, RenderOptions

MOST = 1e-4
STILL = (*range(20, 28), *range(45, 50))


@pytest.mark.parametrize("method", ["paper", "paper-zero-shot", "temporal", "temporal-zero-shot"])
def test_a_moving_stream_with_stops_is_as_the_torch_engine_has_it(exact_gpu, method: str) -> None:
    """Picture, views and state of every frame; `paper` and `temporal` read a payload. Measured: 2e-5, of the gate."""
    denoiser, torch = configure(method, weights=random_weights()), engine("torch")
    state = expected = None
    errors: dict[str, list[float]] = defaultdict(list)
    for observation, camera in noisy_walk(64, 40, 27, still=STILL):
        image, state = exact_gpu.denoise(denoiser, observation, camera, state, RenderOptions(), with_views=True)
        wanted, expected = torch.denoise(denoiser, observation, camera, expected, RenderOptions(), with_views=True)
        found, made = image.numpy(), wanted.numpy()
        pairs = {"picture": (found.color, made.color), "state": (state.numpy().values, expected.numpy().values)}
        pairs |= {name: (found.views[name], made.views[name]) for name in VIEWS}
        for name, (one, other) in pairs.items():
            errors[name].append(np.max(np.abs(one - other) / np.maximum(np.abs(other), 1)))
    assert {name: each for name, each in errors.items() if max(each) >= MOST} == {}


def test_every_view_is_given_and_has_the_size_of_the_picture(exact_gpu) -> None:
    denoiser = configure("temporal-zero-shot")
    camera = camera_at(0)
    image, _ = exact_gpu.denoise(denoiser, observe(camera, 0), camera, None, RenderOptions(), with_views=True)
    views = image.numpy().views
    assert set(views) == set(VIEWS)
    for name, view in VIEWS.items():
        assert views[name].shape == (camera.height, camera.width, view.floats), name


def test_a_stream_on_the_gpu_is_that_of_the_cpu_engine(exact_gpu) -> None:
    """Sample, decode and denoise stay on the device; pictures are read back at the end."""
    scene = room_and_garden(10_000, sh_degree=0)
    scene = replace(scene, payload=np.random.default_rng(0).normal(size=(len(scene), 10)).astype(np.float32))
    methods = [configure("temporal", weights=random_weights()), "taa", "raw", "reference"]
    track, images = walk_track(width=60, height=40), []
    for drawn_on in (engine("cpu"), exact_gpu):
        stream = Stream(drawn_on, drawn_on.upload(scene), methods, noise=Noise(seed=4))
        for place in (0, 3, 6, 6, 9):
            frame = stream.step(track.camera(place))
        images.append([image.numpy().color for image in frame.images])
    for name, expected, found in zip(("temporal", "taa", "raw", "reference"), *images, strict=True):
        error = np.abs(found - expected).max(axis=-1)
        assert (error > 1e-2).mean() < 5e-3, name  # a winner that differs and what is averaged with it
        assert np.median(error) < 1e-4, name


def test_another_picture_size_keeps_a_short_history(exact_gpu) -> None:
    scene = room_and_garden(5_000, sh_degree=0)
    stream = Stream(exact_gpu, exact_gpu.upload(scene), ["temporal-zero-shot", "taa"])
    for _ in range(6):
        stream.step(home_camera(48, 32))
    stream.step(home_camera(33, 20))
    learned, taa = (state.numpy() for state in stream.states)
    assert learned.values.shape == (20, 33, 16) and 3 < learned.accumulated_frames.max() <= 4
    assert taa.history_frames.max() == 1


def test_what_cannot_be_denoised_is_refused_in_one_line(exact_gpu) -> None:
    camera, options = camera_at(0), RenderOptions()
    observation = observe(camera, 0)
    with pytest.raises(DenoiseError, match="the observation has no neural_view: its scene has no payload"):
        exact_gpu.denoise(configure("temporal"), observation, camera, None, options)
    with pytest.raises(DenoiseError, match=r"the observation has 48×40 px, its camera 20×10; pass the camera"):
        exact_gpu.denoise(configure("taa"), observation, camera_at(0, 20, 10), None, options)
    with pytest.raises(DenoiseError, match=r"taa has no views behind its picture\."):
        exact_gpu.denoise(configure("taa"), observation, camera, None, options, with_views=True)
    _, state = exact_gpu.denoise(configure("taa"), observation, camera, None, options)
    with pytest.raises(DenoiseError, match="a state of 'taa' was given to 'mean'"):
        exact_gpu.denoise(configure("mean"), observation, camera, state, options)
