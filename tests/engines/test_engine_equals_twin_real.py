"""The CPU engine equals the torch engine on the trained scene of the package, and on a real one where there is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawing import observe, render_exact, render_reference, sample_visibility, uploaded
from test_engine_equals_twin import check_stream

import hushsplat
from hushsplat.engines.torch import renderers
from hushsplat.io.captures.capture import load_capture
from hushsplat.scenes import demo_scene
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.synth import home_camera, walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import PAYLOAD_FLOATS, Gaussians
from hushsplat.types.paths import track_from_cameras

# Share of a frame's pixels: where a place lies on the border of two pixels, rounding decides whose depth it is compared
# with, and the predictor's 5×5 neighbourhood sees it; each such pixel is 0.1 % of a picture of this size.
MOST_IN_A_FRAME = 2e-3


def with_random_payload(gaussians: Gaussians) -> Gaussians:
    """A payload for kernels of many sizes and directions, where the scene has none."""
    if gaussians.payload is not None:
        return gaussians
    payload = np.random.default_rng(0).standard_normal((len(gaussians), PAYLOAD_FLOATS)).astype(np.float32)
    return replace(gaussians, payload=payload)


@pytest.fixture(scope="module")
def demo() -> Gaussians:
    """Surfels trained on photographs of our own scene."""
    return with_random_payload(demo_scene().gaussians)


@pytest.fixture(scope="module")
def walk(demo: Gaussians) -> list:
    """Noisy frames of a walk through it that stops for a while."""
    scene, track = uploaded(demo), walk_track(4, 15, 128, 86)
    places = [min(frame, 8) + max(frame - 11, 0) for frame in range(16)]
    cameras = [track.camera(place) for place in places]
    return [(observe(scene, camera, frame), camera) for frame, camera in enumerate(cameras)]


@pytest.mark.parametrize("zero_shot", [False, True])
def test_denoiser_equals_the_torch_engine_on_the_demo_scene(walk: list, zero_shot: bool) -> None:
    check_stream(walk, DenoiserSettings(zero_shot=zero_shot), MOST_IN_A_FRAME)


def near_the_axis(gaussians: Gaussians, camera: Camera, count: int) -> Gaussians:
    """So many Gaussians before the camera, those about its axis first: every fragment of them is held in memory."""
    offsets = (gaussians.means - camera.position) @ camera.world_from_camera[:3, :3]
    angle = np.hypot(offsets[:, 0], offsets[:, 1]) / np.where(offsets[:, 2] > 0.2, offsets[:, 2], 1e-9)
    return gaussians.take(np.sort(np.argsort(angle)[:count]))


def test_renderers_equal_the_torch_engine_on_the_demo_scene(demo: Gaussians) -> None:
    """A piece of the picture: the torch engine holds every fragment of every pixel."""
    home = home_camera(800, 532)
    camera = replace(home, width=48, height=32, cx=24.0, cy=16.0)
    gaussians = near_the_axis(demo, camera, 1500)
    expected = renderers.raw(gaussians, camera, samples=2)
    found = sample_visibility(gaussians, camera, samples=2)
    same = found.primitive_id == expected.primitive_id
    assert (
        same.mean() > 0.98
    )  # a centre on the border of two pixels moves its pattern, depths of trained surfels are near
    np.testing.assert_allclose(found.depth[same], expected.depth[same], rtol=1e-3)
    for drawn, known in (
        (render_reference(gaussians, camera), renderers.reference(gaussians, camera)),
        (render_exact(gaussians, camera), renderers.exact(gaussians, camera)),
    ):
        assert known.alpha.mean() > 0.5
        assert np.abs(drawn.color - known.color).mean() < 1e-4
        assert (np.abs(drawn.color - known.color) > 1e-3).mean() < 5e-3
        assert np.abs(drawn.alpha - known.alpha).max() < 0.02


@pytest.fixture(scope="module")
def flight(real_data: Path) -> list:
    """Noisy frames while the camera flies past several of the capture's places, with a random payload."""
    scene = uploaded(with_random_payload(hushsplat.load(real_data / "bonsai" / "bonsai-7k.splat")))
    views = load_capture(real_data / "bonsai" / "cameras_in_splat_frame.json", require_photographs=False).views
    places = [view.camera.resized(200, 133) for view in views[20:26]]
    track = track_from_cameras(places, seconds=64 / 30)
    cameras = [track.camera(index) for index in range(64)]
    return [(observe(scene, camera, frame), camera) for frame, camera in enumerate(cameras)]


@pytest.mark.real_data
@pytest.mark.parametrize("zero_shot", [False, True])
def test_denoiser_equals_the_torch_engine_on_bonsai(flight: list, zero_shot: bool) -> None:
    check_stream(flight, DenoiserSettings(zero_shot=zero_shot), MOST_IN_A_FRAME)
