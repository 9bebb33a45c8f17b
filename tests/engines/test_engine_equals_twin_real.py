"""The engine equals its twin on a real scene, on a flight along its own cameras."""

from __future__ import annotations

from pathlib import Path

import pytest
from hushsplat.engines.cpu.denoise_names import DenoiserSettings
from hushsplat.engines.cpu.render_names import RenderOptions
from hushsplat.evaluation.denoiser_timing import with_random_payload
from test_engine_equals_twin import check_stream

import hushsplat
from hushsplat.io.captures.capture import load_capture
from hushsplat.stream import Noise, observe
from hushsplat.types.paths import track_from_cameras

pytestmark = pytest.mark.real_data

FRAMES, WIDTH, HEIGHT = 64, 200, 133
# Share of a frame's pixels: where a place lies on the border of two pixels, rounding decides whose depth it is compared
# with, and the predictor's 5×5 neighbourhood sees it; each such pixel is 0.1 % of a picture of this size.
MOST_IN_A_FRAME = 2e-3


@pytest.fixture(scope="module")
def flight(real_data: Path) -> list:
    """Noisy frames while the camera flies past several of the capture's places, with a random payload."""
    scene = with_random_payload(hushsplat.load(real_data / "bonsai" / "bonsai-7k.splat"))
    views = load_capture(real_data / "bonsai" / "cameras_in_splat_frame.json", require_photographs=False).views
    places = [view.camera.resized(WIDTH, HEIGHT) for view in views[20:26]]
    track = track_from_cameras(places, seconds=FRAMES / 30)
    cameras = [track.camera(index) for index in range(FRAMES)]
    return [(observe(scene, each, Noise(frame=k), RenderOptions()), each) for k, each in enumerate(cameras)]


@pytest.mark.parametrize("zero_shot", [False, True])
def test_engine_equals_twin_on_bonsai(flight: list, zero_shot: bool) -> None:
    check_stream(flight, DenoiserSettings(zero_shot=zero_shot), MOST_IN_A_FRAME)
