"""Places on the page: thumbnails, photographs of a capture, rooms, and walls that an orbit does not pass."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from client import page as connected
from client import pixels, psnr, run
from playwright.sync_api import Browser, Page
from watch import listen, wait_for_frame

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.io.images import save_image
from hushsplat.scenes import NamedScene
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.errors import ViewError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import to_bytes
from hushsplat.types.options import RenderOptions
from hushsplat.viewer.launch import Viewer, show
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import ViewerOptions

CAMERAS = [hushsplat.home_camera(240, 160), hushsplat.walk_track(width=240, height=160).camera(30)]
CANVAS = "() => document.getElementById('picture').toDataURL('image/png').split(',')[1]"


@pytest.fixture(scope="module")
def captured(scene: Gaussians, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """A viewer with two photographs, which are negatives, so that they can be told from the picture."""
    folder, views = tmp_path_factory.mktemp("capture"), []
    for number, camera in enumerate(CAMERAS):
        image = hushsplat.render(scene, camera, "reference")
        save_image(1 - image.color, folder / f"{number}.png")
        views.append(View(f"{number}.png", folder / f"{number}.png", camera))
    named = NamedScene("room", scene, is_own=True)
    with show(named, views, "-y", "127.0.0.1", 0, ViewerOptions(method="reference"), engine()) as viewer:
        yield viewer


@pytest.fixture
def captured_page(browser: Browser, captured: Viewer, console_errors: list[str]) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 360, "height": 240}, reduced_motion="reduce")
    listen(opened, console_errors)
    opened.goto(captured.url)
    wait_for_frame(opened, "!frame.moving && frame.still_frames >= 1")
    yield opened
    opened.close()
    assert console_errors == []


def test_small_scene_is_not_cut_by_the_near_plane(scene: Gaussians) -> None:
    shrink = np.float32(0.002)
    small = replace(scene, means=scene.means * shrink, scales=scene.scales * shrink)
    with hushsplat.view(small, port=0) as viewer:
        camera = viewer._service.entry.places[0].camera.resized(96, 64)

        async def visit() -> bytes:
            async with connected(viewer.url) as one:
                await one.draw("reference")
                await one.look(camera)
                return (await one.sharp_frame())[1][0]

        seen = pixels(run(visit()))
    large = replace(camera, world_from_camera=camera.world_from_camera.copy())
    large.world_from_camera[:3, 3] /= shrink
    assert psnr(seen, to_bytes(hushsplat.render(scene, large, "reference").color)) > 25


def test_photograph_lies_beside_the_picture_where_it_was_taken(captured_page: Page, scene: Gaussians) -> None:
    page = captured_page
    page.keyboard.press("j")
    page.wait_for_function("() => hushsplat.stage.photograph?.index === 0")
    seen = pixels(base64.b64decode(page.evaluate(CANVAS)))
    expected = to_bytes(hushsplat.render(scene, CAMERAS[0].resized(360, 240), "reference").color)
    assert psnr(seen[:, :178], expected[:, :178]) > 30
    assert psnr(seen[:, 184:], 255 - expected[:, 184:]) > 22  # enlarged from 240 px
    assert page.locator("#divider").is_visible()
    page.keyboard.press("]")
    page.wait_for_function("() => hushsplat.stage.photograph?.index === 1")
    page.evaluate("() => hushsplat.camera.look(0.1, 0)")
    assert page.evaluate("() => hushsplat.stage.photograph") is None
    assert page.locator("#divider").is_hidden()


def test_photograph_has_its_name_and_gives_way_to_a_method(captured_page: Page) -> None:
    page = captured_page
    label = "() => getComputedStyle(document.getElementById('stage'), '::after').content"
    page.keyboard.press("j")
    page.wait_for_function("() => hushsplat.stage.photograph?.index === 0")
    assert page.evaluate(label) == '"photograph 0.png"'
    page.keyboard.press("x")
    wait_for_frame(page, "frame.sides.length === 2")
    assert page.evaluate("() => hushsplat.stage.photograph") is None
    assert not page.is_checked("#photograph") and page.locator("#divider").is_visible()
    assert page.evaluate(label) == "none"
    page.keyboard.press("j")
    page.wait_for_function("() => hushsplat.stage.photograph?.index === 0")
    page.evaluate("() => hushsplat.camera.look(0.1, 0)")
    page.wait_for_function("() => document.getElementById('notes').textContent.includes('[ and ] go there')")


def test_places_have_thumbnails(captured_page: Page, captured: Viewer, scene: Gaussians) -> None:
    captured_page.keyboard.press("g")
    captured_page.wait_for_function(
        "() => document.querySelectorAll('#thumbnails img').length === 2 && "
        "[...document.querySelectorAll('#thumbnails img')].every((image) => image.naturalWidth === 144)"
    )
    captured_page.locator("#thumbnails button").nth(1).click()
    captured_page.wait_for_function(
        f"() => Math.abs(hushsplat.camera.eye[0] - {CAMERAS[1].position[0]}) < 1e-6 && "
        "document.getElementById('place').value === '1'"
    )

    async def fetch(path: str) -> tuple[int, bytes]:
        async with connected(captured.url) as one:
            query = {"session": one.session}
            async with one.web.get(captured.url.partition("?")[0] + path, params=query) as answer:
                return answer.status, await answer.read()

    status, body = run(fetch("photograph/1"))
    assert status == 200 and pixels(body).shape == (160, 240, 3)
    for path, said in (("photograph/2", b"no photograph of place 2"), ("place/9", b"no place 9")):
        status, body = run(fetch(path))
        assert status == 400 and said in body


def test_thumbnail_of_a_found_place_is_its_picture(scene: Gaussians) -> None:
    entry = SceneEntry.of(scene, "room", engine(), RenderOptions(), [("Home", CAMERAS[0])], up="-y")
    body = entry.thumbnail(0, RenderOptions())
    small = hushsplat.render(scene, CAMERAS[0].resized(144, 96), "reference")
    assert psnr(pixels(body), to_bytes(small.color)) > 25
    assert entry.thumbnail(0, RenderOptions()) is body


def test_error_of_a_photograph_does_not_say_where_it_lies(scene: Gaussians, tmp_path: Path) -> None:
    views = [View("a.png", tmp_path / "a.png", CAMERAS[0])]
    entry = SceneEntry.of(scene, "room", engine(), RenderOptions(), views, up="-y")
    with pytest.raises(ViewError, match=r"^a\.png: the photograph of view 'a\.png' is missing\.$"):
        entry.photograph(0, 100)


def test_surroundings_are_the_depths_of_all_sides(scene: Gaussians) -> None:
    entry = SceneEntry.of(scene, "room", engine(), RenderOptions(), [("Home", CAMERAS[0])], up="-y")
    point = CAMERAS[0].position
    far = entry.surroundings(point, 0.05, RenderOptions())
    rng = np.random.default_rng(1)
    off = []
    for _ in range(40):
        direction = rng.normal(size=3)
        axis = int(np.argmax(np.abs(direction)))
        face, size = 2 * axis + (direction[axis] < 0), abs(direction[axis])
        column, row = (int((direction[(axis + k) % 3] / size + 1) / 2 * far.shape[1]) for k in (1, 2))
        camera = Camera.look_at(point, point + direction, (0.1, -1, 0.2), width=5, height=5, fov_y_deg=4.0)
        seen = entry.point_at(camera, 0.5, 0.5, RenderOptions(near=0.05))
        if seen is not None:
            off.append(abs(np.log(far[face, row, column] / np.linalg.norm(np.array(seen) - point))))
    assert (
        len(off) > 30 and np.median(off) < 0.1 and np.mean(np.array(off) < 0.5) > 0.8
    )  # edges of things fall between cells


def test_room_begins_in_look_around_and_orbits_stay_before_its_walls(captured_page: Page) -> None:
    page = captured_page
    assert page.evaluate("() => [hushsplat.panel.scene.inside, hushsplat.controls.mode]") == [True, "fly"]
    page.keyboard.press("o")
    page.evaluate("() => hushsplat.camera.orbit(0.01, 0)")
    page.wait_for_function("() => hushsplat.camera.walls?.known")
    distances = page.evaluate(
        "() => Array.from({ length: 70 }, () => { hushsplat.camera.orbit(0.1, 0); return hushsplat.camera.distance; })"
    )
    nearest = int(np.argmin(distances))
    assert distances[nearest] < 0.8 * max(distances)
    assert np.isclose(max(distances[nearest:]), max(distances), rtol=0.06)  # behind the wall it goes back


def test_object_begins_in_orbit(scene: Gaussians) -> None:
    middle = scene.means.mean(axis=0)
    near = np.argsort(np.linalg.norm(scene.means - middle, axis=1))[:400]
    entry = SceneEntry.of(scene.take(near), "thing", engine(), RenderOptions(), up="-y")
    assert not entry.is_inside(RenderOptions())


def distances_past(page: Page, cells: int, drag: float) -> np.ndarray:
    """Distances of an orbit at 2 about what fills so many upright rows of cells at 0.8."""
    return np.array(
        page.evaluate(
            """async ([cells, drag]) => {
              const { Walls } = await import("./static/walls.js"), { Camera } = await import("./static/camera.js");
              const size = 24, far = new Array(6 * size * size).fill(0);
              far.fill(0.8, 12 * size, (12 + cells) * size); // rows about +x, upright
              const camera = new Camera();
              camera.place({ eye: [0, 0, -2], rotation: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], pivot: [0, 0, 0] });
              camera.walls = new Walls({ point: [0, 0, 0], near: 0.5, size, far });
              const turned = () => { camera.orbit(drag, 0); return camera.distance; };
              return Array.from({ length: Math.round(6.3 / drag) }, turned);
            }""",
            [cells, drag],
        )
    )


@pytest.mark.parametrize("drag", [0.01, 0.1])
def test_orbit_comes_nearer_to_furniture_little_by_little(page: Page, drag: float) -> None:
    distances = distances_past(page, cells=9, drag=drag)
    assert np.isclose(distances.max(), 2.0) and np.isclose(distances.min(), 0.72, atol=0.01)
    assert np.isclose(distances[-1], 2.0)
    assert np.abs(np.diff(np.log(distances))).max() < 2.1 * drag  # no jumps
    assert (distances < 1.9).mean() < 0.4  # and only near it


def test_orbit_passes_through_narrow_things(page: Page) -> None:
    assert np.allclose(distances_past(page, cells=2, drag=0.05), 2.0)


def test_orbit_does_not_jump_when_walls_become_known_late(page: Page) -> None:
    distances = page.evaluate(
        """async () => {
          const { Walls } = await import("./static/walls.js"), { Camera } = await import("./static/camera.js");
          const camera = new Camera();
          camera.place({ eye: [0, 0, -2], rotation: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], pivot: [0, 0, 0] });
          camera.orbit(0.001, 0);
          camera.walls = new Walls({ point: [0, 0, 0], near: 0.5, size: 24, far: new Array(6 * 24 * 24).fill(1) });
          return Array.from({ length: 20 }, () => { camera.orbit(0.001, 0); return camera.distance; });
        }"""
    )
    assert distances[0] > 1.8 and np.isclose(distances[-1], 0.9, atol=0.01)
