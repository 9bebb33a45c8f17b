"""Backgrounds: colours, gradients, pictures all around; what is refused."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hushsplat.engines.base import engine
from hushsplat.io.weights import default_weights
from hushsplat.types.camera import Camera
from hushsplat.types.errors import ViewError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions
from hushsplat.viewer.backdrop import ENVIRONMENT_PX, behind, read_environment
from hushsplat.viewer.frame_renderer import FrameRenderer
from hushsplat.viewer.protocol import ENVIRONMENT, Draw, Side, parse_message
from hushsplat.viewer.scene_entry import SceneEntry

UP = np.array([0.0, -1.0, 0.0])
CAMERA = Camera.look_at([0, 0, 0], [0, 0, 5], (0, -1, 0), width=32, height=32, fov_y_deg=90.0)
TOP, BOTTOM = (0.2, 0.4, 1.0), (0.4, 0.2, 0.0)


@pytest.fixture(scope="module")
def entry(scene: Gaussians) -> SceneEntry:
    """One surfel of the room in the middle of the picture, nothing beside it."""
    one = scene.take(np.array([0]))
    white = replace(
        one,
        means=np.array([[0, 0, 5]], np.float32),
        scales=np.full((1, 2), 1.2, np.float32),
        rotations=np.array([[1, 0, 0, 0]], np.float32),
        opacities=np.ones(1, np.float32),
        sh=np.full((1, *one.sh.shape[1:]), 0, np.float32),
    )
    return SceneEntry.of(white, "one", engine(), RenderOptions(), [("Home", CAMERA)], up="-y")


def drawn(entry: SceneEntry, draw: Draw, environment: np.ndarray | None = None) -> np.ndarray:
    renderer = FrameRenderer(entry, default_weights("temporal"), RenderOptions())
    renderer.environment = environment
    *_, frame = renderer.render(CAMERA, draw, 0)
    assert frame is not None
    return frame.pictures[0]


@pytest.mark.parametrize("method", ["hush", "reference", "raw", "mean"])
def test_colour_gradient_and_picture_are_behind_the_scene(entry: SceneEntry, method: str) -> None:
    side = (Side(method),)
    plain = drawn(entry, Draw(side, background=((1.0, 0.0, 0.0),)))
    assert np.allclose(plain[0, 0], [1, 0, 0]) and np.allclose(plain[16, 16], 0.5, atol=0.03)
    gradient = drawn(entry, Draw(side, background=(TOP, BOTTOM)))
    assert np.allclose(gradient[16, 16], 0.5, atol=0.03)
    assert np.allclose(gradient[15:17, 0].mean(axis=0), np.mean([TOP, BOTTOM], axis=0), atol=0.02)  # the horizon
    above = 0.5 + 0.5 * np.sin(np.arctan2(15.5, 16))
    assert np.allclose(gradient[0, 15], above * np.array(TOP) + (1 - above) * np.array(BOTTOM), atol=0.03)
    assert gradient[0, 15, 2] > gradient[31, 15, 2]
    around = np.zeros((8, 16, 3), np.float32)
    around[:4] = TOP
    around[4:] = BOTTOM
    picture = drawn(entry, Draw(side, background=ENVIRONMENT), around)
    assert np.allclose(picture[2, 16], TOP) and np.allclose(picture[29, 16], BOTTOM)
    assert np.allclose(picture[16, 16], 0.5, atol=0.03)


def test_picture_all_around_turns_with_the_camera() -> None:
    longitudes = np.repeat((np.arange(64, dtype=np.float32) / 64)[None, :, None], 32, axis=0).repeat(3, axis=2)
    nothing = np.zeros((32, 32, 3), np.float32), np.zeros((32, 32), np.float32)
    seen = []
    for degrees in (0, 90, 180, 270):
        ahead = [np.sin(np.radians(degrees)), 0, np.cos(np.radians(degrees))]
        turned = Camera.look_at([0, 0, 0], ahead, (0, -1, 0), width=32, height=32, fov_y_deg=90.0)
        picture = behind(*nothing, turned, UP, ENVIRONMENT, longitudes)
        seen.append(float(picture[16, 16, 0]))
        assert picture[16, 20, 0] > picture[16, 12, 0] or degrees == 180  # to the right; once there is the seam
    assert np.allclose(np.diff(np.unwrap(np.array(seen) * 2 * np.pi)), np.pi / 2, atol=0.15)


def test_picture_all_around_is_read_or_refused(tmp_path: Path) -> None:
    good, square = tmp_path / "good", tmp_path / "square"
    for path, size in ((good, (40, 20)), (square, (20, 20))):
        body = io.BytesIO()
        Image.new("RGB", size, (255, 0, 0)).save(body, "PNG")
        path.write_bytes(body.getvalue())
    assert np.allclose(read_environment(good, "good.png"), [1, 0, 0])
    assert read_environment(good, "good.png").shape == (*ENVIRONMENT_PX[::-1], 3)
    with pytest.raises(ViewError, match=r"square.png: has 20×20 px; a picture all around is twice as wide as high"):
        read_environment(square, "square.png")
    (tmp_path / "none").write_bytes(b"no picture")
    with pytest.raises(ViewError, match=r"none.jpg: is no picture that can be read"):
        read_environment(tmp_path / "none", "none.jpg")


def test_large_and_damaged_pictures_all_around_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    body = io.BytesIO()
    Image.new("L", (16, 8)).save(body, "PNG")
    head = bytearray(body.getvalue())
    head[16:24] = struct.pack(">II", 16384, 8192)  # Pillow warns, and would decode it
    head[29:33] = struct.pack(">I", zlib.crc32(head[12:29]))
    (tmp_path / "large").write_bytes(head)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            ViewError, match=r"large.png: has 16384×8192 px, at most 89000000 are read; make it smaller"
        ):
            read_environment(tmp_path / "large", "large.png")


@pytest.mark.parametrize("background", [[[2, 0, 0]], [[0, 0, 0]] * 3, "sky", [[0, 0]], {}, [["a", 0, 0]]])
def test_wrong_backgrounds_are_refused(background: object) -> None:
    message = {"type": "draw", "sides": [{"method": "hush"}], "background": background}
    with pytest.raises(ViewError, match="the message 'draw' was refused"):
        parse_message(json.dumps(message))


def test_backgrounds_are_parsed() -> None:
    message = {"type": "draw", "sides": [{"method": "hush"}], "background": [list(TOP), list(BOTTOM)]}
    assert parse_message(json.dumps(message)).background == (TOP, BOTTOM)  # type: ignore[union-attr]
