"""Scenes, captures and recordings of our own through every reader: what `real_data` tests do with scenes of others."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "io"))

import made_captures as made

from hushsplat.io.captures.capture import load_capture
from hushsplat.io.scenes.scene import load, save
from hushsplat.io.scenes.sog_write import morton_order
from hushsplat.scenes import DEMO_FILE, demo_scene
from hushsplat.synth import room_and_garden, view_cameras
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.up import guess_up


@pytest.fixture(scope="module")
def demo() -> Gaussians:
    """The trained scene of the package."""
    return demo_scene().gaussians


def test_demo_scene_has_no_value_that_cannot_be_drawn(demo: Gaussians) -> None:
    assert len(demo) > 10_000 and demo.is_surfels
    for name in ("means", "scales", "rotations", "opacities", "sh"):
        assert np.isfinite(getattr(demo, name)).all()
    assert (demo.scales > 0).all() and demo.opacities.min() >= 0 and demo.opacities.max() <= 1
    np.testing.assert_allclose(np.linalg.norm(demo.rotations, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("scene", ["demo", "synth"])
def test_up_of_our_own_scenes(demo: Gaussians, scene: str) -> None:
    assert guess_up(demo if scene == "demo" else room_and_garden(20_000)) == "-y"


def test_demo_scene_is_kept_by_a_ply(demo: Gaussians, tmp_path: Path) -> None:
    save(demo, tmp_path / "demo.ply")
    again = load(tmp_path / "demo.ply")
    for name in ("means", "scales", "rotations", "sh"):
        np.testing.assert_allclose(getattr(again, name), getattr(demo, name), rtol=2e-5, atol=2e-6, err_msg=name)
    np.testing.assert_allclose(again.opacities, demo.opacities, atol=2e-6)  # logits


def test_demo_scene_is_kept_by_an_spz_within_its_steps(demo: Gaussians, tmp_path: Path) -> None:
    save(demo, tmp_path / "demo.spz")
    again = load(tmp_path / "demo.spz")
    assert len(again) == len(demo)
    np.testing.assert_allclose(again.means, demo.means, atol=2.0**-12)
    np.testing.assert_allclose(again.opacities, demo.opacities, atol=0.0021)
    assert np.abs((again.rotations * demo.rotations).sum(axis=1)).min() > 1 - 1e-4
    held = (demo.scales > np.exp(-10)) & (demo.scales < np.exp(5.9))
    np.testing.assert_allclose(np.log(again.scales[:, :2][held]), np.log(demo.scales[held]), atol=0.033)


def test_demo_scene_is_kept_by_a_sog_within_its_codebooks(demo: Gaussians, tmp_path: Path) -> None:
    """It came from one: written again it loses next to nothing more."""
    assert len(load(DEMO_FILE)) == len(demo)
    save(demo, tmp_path / "demo.sog")
    again, ordered = load(tmp_path / "demo.sog"), demo.take(morton_order(demo.means))
    np.testing.assert_allclose(again.means, ordered.means, atol=4e-4)
    assert np.sqrt(((again.sh - ordered.sh) ** 2).mean()) < 0.05 * ordered.sh.std()
    assert np.abs((again.rotations * ordered.rotations).sum(axis=1)).min() > 1 - 1e-3


def test_a_capture_of_our_own_cameras_is_read_back(tmp_path: Path) -> None:
    """COLMAP of the places that the demo scene was photographed from."""
    poses = np.stack([camera.world_from_camera for camera in view_cameras(9)])
    folder = made.write_colmap(tmp_path / "colmap", made.colmap_bytes(model="PINHOLE", world_from_camera=poses))
    views = load_capture(folder).views
    assert [view.name for view in views] == made.names(9)
    for view, pose in zip(views, poses, strict=True):
        np.testing.assert_allclose(view.camera.world_from_camera, pose, atol=1e-6)
        assert (view.camera.width, view.camera.height) == (made.WIDTH, made.HEIGHT)
