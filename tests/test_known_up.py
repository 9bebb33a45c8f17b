"""Scenes beside the cameras that took their pictures: which way was up is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hushsplat.cli.main import main
from hushsplat.cli.view import View
from hushsplat.evaluation.motions import viewpoint_in
from hushsplat.io.captures.camera_list import cameras_beside, save_inria_cameras
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.content import ContentKind, content_kind
from hushsplat.io.scenes.scene import save
from hushsplat.scenes import scene_argument
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View as Photograph
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.up import find_up

MODEL = "point_cloud/iteration_7000/point_cloud.ply"


def cloud(seed: int = 0) -> Gaussians:
    """Ellipsoids about the origin that say nothing about up: the guess is -y."""
    rng = np.random.default_rng(seed)
    return Gaussians(
        means=rng.normal(size=(400, 3)).astype(np.float32),
        scales=np.full((400, 3), 0.05, np.float32),
        rotations=np.tile(np.float32([1, 0, 0, 0]), (400, 1)),
        opacities=np.full(400, 0.9, np.float32),
        sh=np.zeros((400, 1, 3), np.float32),
    )


def floor(tilted_deg: float) -> Gaussians:
    """A floor with a heap on it, z up, then tilted about x."""
    rng = np.random.default_rng(1)
    means = np.concatenate([rng.uniform(-3, 3, (6000, 3)) * [1, 1, 0], rng.normal((0, 0, 0.6), 0.2, (1500, 3))])
    turn = np.radians(tilted_deg)
    rotation = np.array([[1, 0, 0], [0, np.cos(turn), -np.sin(turn)], [0, np.sin(turn), np.cos(turn)]])
    return Gaussians(
        means=(means @ rotation.T).astype(np.float32),
        scales=np.tile(np.float32([0.1, 0.1, 0.002]), (len(means), 1)),
        rotations=np.tile(np.float32([np.cos(turn / 2), np.sin(turn / 2), 0, 0]), (len(means), 1)),
        opacities=np.full(len(means), 0.9, np.float32),
        sh=np.zeros((len(means), 1, 3), np.float32),
    )


def photographs(up: np.ndarray, radius: float = 4.0, count: int = 24) -> list[Photograph]:
    """A walk about the origin, looking down a little."""
    side = np.cross(up, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    forward = np.cross(up, side)
    views = []
    for index, angle in enumerate(np.linspace(0, 2 * np.pi, count, endpoint=False)):
        eye = radius * (np.cos(angle) * side + np.sin(angle) * forward + 0.4 * up)
        camera = Camera.look_at(eye, np.zeros(3), up, width=64, height=48)
        views.append(Photograph(f"{index:03}.jpg", Path(f"{index:03}.jpg"), camera, None))
    return views


@pytest.mark.parametrize("scene", [MODEL, "scene.ply"])
def test_up_is_that_of_the_cameras_where_the_scene_says_nothing(tmp_path: Path, scene: str) -> None:
    (tmp_path / scene).parent.mkdir(parents=True, exist_ok=True)
    save(cloud(), tmp_path / scene)
    assert scene_argument(str(tmp_path / scene)).known_up is None
    up = np.array([0.6, 0.0, 0.8])
    save_inria_cameras(photographs(up), tmp_path / "cameras.json")
    named = scene_argument(str(tmp_path if scene == MODEL else tmp_path / scene))
    assert named.known_up == pytest.approx(up, abs=0.02)
    assert named.up_by == "by cameras.json"
    assert content_kind(tmp_path) == ContentKind.SCENE
    assert viewpoint_in(named).up == pytest.approx(named.known_up)


def test_exact_normal_of_the_ground_goes_before_cameras_that_say_much_the_same(tmp_path: Path) -> None:
    save(floor(12.0), tmp_path / "scene.ply")
    ground = find_up(floor(12.0))
    off = np.array([np.sin(np.radians(5)), 0, np.cos(np.radians(5))])  # of nearly z
    save_inria_cameras(photographs(off @ np.eye(3) * 0.9 + 0.1 * ground), tmp_path / "cameras.json")
    assert scene_argument(str(tmp_path / "scene.ply")).known_up == pytest.approx(ground)
    save_inria_cameras(photographs(-ground), tmp_path / "cameras.json")  # who hung from the ceiling knows better
    assert scene_argument(str(tmp_path / "scene.ply")).known_up == pytest.approx(-ground, abs=0.02)


@pytest.mark.parametrize("content", ["[", "[]", "{}", '[{"img_name": "a"}]', "\x00", '{"cameras": 1}'])
def test_what_is_no_list_of_cameras_is_left_alone(tmp_path: Path, content: str) -> None:
    save(cloud(), tmp_path / "scene.ply")
    (tmp_path / "cameras.json").write_text(content)
    assert cameras_beside(tmp_path / "scene.ply") == []
    assert scene_argument(str(tmp_path / "scene.ply")).known_up is None


def test_cameras_of_something_else_are_not_asked(tmp_path: Path) -> None:
    save(cloud(), tmp_path / "scene.ply")
    save_inria_cameras(photographs(np.array([1.0, 0, 0]), radius=200.0), tmp_path / "cameras.json")
    assert scene_argument(str(tmp_path / "scene.ply")).known_up is None
    deep = tmp_path / "a" / "b" / "scene.ply"  # not where 3DGS writes scenes
    deep.parent.mkdir(parents=True)
    save(cloud(), deep)
    save_inria_cameras(photographs(np.array([1.0, 0, 0])), tmp_path / "cameras.json")
    assert cameras_beside(deep) == []


def test_cameras_written_as_3dgs_does_are_read_again(tmp_path: Path) -> None:
    views = photographs(np.array([0.0, 0, 1]))
    save_inria_cameras(views, tmp_path / "cameras.json")
    again = load_capture(tmp_path, require_photographs=False).views
    assert [view.name for view in again] == [view.name for view in views]
    for view, other in zip(views, again, strict=True):
        assert other.camera.world_from_camera == pytest.approx(view.camera.world_from_camera)
        one, two = ((camera.width, camera.height, camera.fx, camera.fy) for camera in (view.camera, other.camera))
        assert one == pytest.approx(two)


def test_commands_say_who_knows_which_way_is_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scene = tmp_path / "scene.ply"
    save(cloud(), scene)
    save_inria_cameras(photographs(np.array([0.0, 0, 1])), tmp_path / "cameras.json")
    assert main(["info", str(scene), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["up_by"] == "by cameras.json" and found["up"].endswith(("z", "1.000"))
    for named in (scene, tmp_path):
        assert main(["info", str(named)]) == 0
        assert "(by cameras.json)" in capsys.readouterr().out
    words = ["render", str(scene), "-o", str(tmp_path / "a.png"), "--width", "32", "--height", "20"]
    assert main(words) == 0
    assert "(by cameras.json)" in capsys.readouterr().out
    assert main([*words, "--up=x", "--force"]) == 0
    assert "cameras.json" not in capsys.readouterr().out


def test_viewer_with_a_capture_has_the_up_of_its_cameras(tmp_path: Path) -> None:
    scene, capture = tmp_path / "scene.ply", tmp_path / "capture"
    save(cloud(), scene)
    capture.mkdir()
    up = np.array([0.0, 0.6, -0.8])
    save_inria_cameras(photographs(up), capture / "cameras.json")
    named = scene_argument(str(scene))
    for asked, expected in ((None, up), ((1.0, 0.0, 0.0), (1, 0, 0))):
        command = View(str(scene), capture=capture, up=asked)
        assert command._upward(named, command._cameras(named)) == pytest.approx(expected, abs=0.02)
    assert View(str(scene))._upward(named, ()) is None
