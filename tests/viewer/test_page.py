"""The page in a real browser, used by mouse, keyboard and touch."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from aiohttp import web
from client import pixels, psnr, run
from PIL import Image
from playwright.sync_api import Browser, Page
from watch import listen, wait_for_frame

import hushsplat
from hushsplat.methods import METHODS
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import to_bytes
from hushsplat.types.settings import declared
from hushsplat.viewer import protocol
from hushsplat.viewer.launch import Viewer
from hushsplat.viewer.protocol import TUNABLE, pinhole

SHARP = "!frame.moving && frame.still_frames >= 1"
# The canvas as it is, without what floats above it.
CANVAS = "() => document.getElementById('picture').toDataURL('image/png').split(',')[1]"


def picture(page: Page) -> np.ndarray:
    return pixels(base64.b64decode(page.evaluate(CANVAS)))


def camera_of(page: Page) -> Camera:
    """The page's camera, as the package has cameras."""
    camera = page.evaluate("() => ({ matrix: hushsplat.camera.matrix, fov: hushsplat.camera.fov })")
    size = page.evaluate("() => [hushsplat.stage.canvas.width, hushsplat.stage.canvas.height]")
    return pinhole(np.array(camera["matrix"]), float(camera["fov"]), *size)


def choose(page: Page, *methods: str) -> None:
    page.evaluate("(m) => hushsplat.panel.setSides(m.map((method) => ({ method, show: 'picture' })))", list(methods))


def shown_methods(*methods: str) -> str:
    names = ",".join(methods)
    return f"frame.sides.map((side) => side.method).join() === '{names}' && {SHARP}"


def drag(page: Page, x: float, y: float) -> None:
    page.mouse.move(180, 140)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(180 + x * step / 5, 140 + y * step / 5)
    page.mouse.up()


def pose(page: Page) -> np.ndarray:
    return np.array(page.evaluate("() => hushsplat.camera.matrix"))


def test_page_shows_the_scene_and_its_name(page: Page, scene: Gaussians) -> None:
    assert page.title() == "room · hushsplat"
    assert page.inner_text("#scene-size") == "10,000 surfels"
    wait_for_frame(page, SHARP)
    assert picture(page).std() > 20  # a picture, not a colour
    assert re.search(r"360×240", page.inner_text("#stats"))


def test_picture_is_the_engines_frame_for_the_same_camera(page: Page, scene: Gaussians) -> None:
    choose(page, "reference")
    wait_for_frame(page, shown_methods("reference"))
    expected = to_bytes(hushsplat.render(scene, camera_of(page), "reference").color)
    assert psnr(picture(page), expected) > 35  # what JPEG leaves
    drag(page, 60, 10)
    wait_for_frame(page, f"{shown_methods('reference')} && frame.sequence === hushsplat.sequence()")
    assert psnr(picture(page), expected) < 25
    assert psnr(picture(page), to_bytes(hushsplat.render(scene, camera_of(page), "reference").color)) > 35


def test_drag_orbits_about_the_pivot(page: Page) -> None:
    before, seen = pose(page), picture(page)
    pivot, distance = page.evaluate("() => [hushsplat.camera.pivot, hushsplat.camera.distance]")
    drag(page, 80, 20)
    wait_for_frame(page, "frame.sequence === hushsplat.sequence()")
    assert np.linalg.norm(pose(page)[:3, 3] - before[:3, 3]) > 0.1
    assert np.allclose(page.evaluate("() => hushsplat.camera.pivot"), pivot)
    assert 0.5 * distance <= page.evaluate("() => hushsplat.camera.distance") <= 1.0001 * distance  # before a wall
    assert psnr(picture(page), seen) < 25


THREE_FRAMES = """() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)));
})"""


def test_flying_with_keys_moves_ahead_and_stops(page: Page) -> None:
    page.keyboard.press("f")
    before = pose(page)
    page.keyboard.down("w")
    page.wait_for_timeout(250)
    page.keyboard.up("w")
    page.evaluate(THREE_FRAMES)  # on a busy machine they take their time
    after = pose(page)
    step = after[:3, 3] - before[:3, 3]
    assert step @ before[:3, 2] > 0.99 * np.linalg.norm(step) > 0
    page.evaluate(THREE_FRAMES)
    page.wait_for_timeout(100)
    assert (pose(page) == after).all()


def test_shift_is_faster_also_after_the_key_that_moves(page: Page) -> None:
    page.keyboard.down("w")
    page.keyboard.down("Shift")
    assert page.evaluate("() => hushsplat.controls.fast")
    page.keyboard.up("Shift")
    assert not page.evaluate("() => hushsplat.controls.fast")
    page.keyboard.up("w")


def test_keyboard_goes_through_the_settings_in_few_steps_and_back(page: Page) -> None:
    def focused() -> str:
        return page.evaluate("() => document.activeElement.id")

    page.focus("#settings")
    page.keyboard.press("Enter")
    page.wait_for_selector("#thumbnails button")
    page.focus("#place-next")
    page.keyboard.press("Tab")  # not through hundreds of places: they are in the menu, too
    assert page.inner_text(":focus") == "front"
    page.keyboard.press("Escape")
    assert focused() == "settings" and page.is_hidden("#panel")


def test_wheel_comes_nearer(page: Page) -> None:
    before = page.evaluate("() => hushsplat.camera.distance")
    page.mouse.move(200, 150)
    page.mouse.wheel(0, -200)
    page.wait_for_function(f"() => hushsplat.camera.distance < {0.95 * before}")


def test_double_click_glides_to_the_surface_and_turns_about_it(page: Page, scene: Gaussians) -> None:
    before = camera_of(page)
    page.mouse.dblclick(250, 190)
    page.wait_for_function("() => document.getElementById('pivot').classList.contains('seen')")
    pivot = np.array(page.evaluate("() => hushsplat.camera.pivot"))
    point = before.camera_from_world @ [*pivot, 1]
    assert np.allclose(before.fx * point[0] / point[2] + before.cx, 250, atol=0.5)
    assert np.allclose(before.fy * point[1] / point[2] + before.cy, 190, atol=0.5)
    depth = hushsplat.render(scene, before, "reference").depth[185:196, 245:256]
    assert 0.7 * depth.min() < point[2] < 1.3 * depth.max()
    after = camera_of(page)
    in_the_middle = after.camera_from_world @ [*pivot, 1]
    assert np.allclose(in_the_middle[:2], 0, atol=1e-3 * in_the_middle[2])
    assert np.isclose(in_the_middle[2], 0.6 * np.linalg.norm(pivot - before.position), rtol=1e-3)


def test_flying_is_faster_where_there_is_more_room_and_by_the_wheel(page: Page) -> None:
    page.keyboard.press("f")
    wait_for_frame(page, "frame.depth > 0")
    radius = page.evaluate("() => hushsplat.camera.radius")
    pace = "(depth) => { hushsplat.camera.depth = depth; return hushsplat.controls.pace; }"
    near, farther, far = (page.evaluate(pace, share * radius) for share in (0.1, 0.2, 1e9))
    assert np.isclose(farther, 2 * near) and np.isclose(far, radius)
    page.mouse.move(200, 150)
    page.mouse.wheel(0, -250)
    page.wait_for_function("() => hushsplat.controls.speed === 1")
    page.mouse.wheel(0, -250)
    page.wait_for_function("() => document.getElementById('notes').textContent === 'speed ×4.0'")  # the last one only


def test_still_camera_is_refined_and_then_nothing_is_drawn(page: Page) -> None:
    page.set_viewport_size({"width": 200, "height": 140})
    assert wait_for_frame(page, "frame.still_frames === frame.still_limit")["still_limit"] == 4
    choose(page, "mean")
    frame = wait_for_frame(page, "frame.still_frames === frame.still_limit && frame.still_limit === 128")
    page.wait_for_timeout(400)
    assert page.evaluate("() => hushsplat.stage.header.frame") == frame["frame"]
    page.wait_for_function("() => document.getElementById('stat-fps').textContent === 'resting'")
    noisy = wait_for_noise(page, 1)
    calm = wait_for_noise(page, 60)
    assert calm < 0.6 * noisy


def wait_for_noise(page: Page, frames: int) -> float:
    """How much neighbouring pixels differ after so many frames of `mean`."""
    choose(page, "raw")
    wait_for_frame(page, shown_methods("raw"))
    choose(page, "mean")
    wait_for_frame(page, f"{shown_methods('mean')} && frame.still_frames >= {frames}")
    return float(np.abs(np.diff(picture(page).astype(float), axis=1)).mean())


def test_method_menu_offers_all_and_changes_the_picture(page: Page) -> None:
    names = page.eval_on_selector_all("#method-a option:not(:disabled)", "options => options.map(o => o.value)")
    assert names[0] == "hush"
    assert set(names) == set(METHODS) - {"paper", "temporal"}  # which need a payload
    for name in names:
        page.select_option("#method-a", name)
        wait_for_frame(page, shown_methods(name))


def test_split_shows_two_methods_from_one_camera(page: Page, scene: Gaussians) -> None:
    page.select_option("#method-a", "reference")
    page.keyboard.press("x")
    page.select_option("#method-b", "exact")
    wait_for_frame(page, shown_methods("reference", "exact"))
    box = page.locator("#divider").bounding_box()
    assert box is not None and abs(box["x"] + box["width"] / 2 - 180) < 2
    both = [to_bytes(hushsplat.render(scene, camera_of(page), name).color) for name in ("reference", "exact")]
    page.mouse.move(180, 170)
    page.mouse.down()
    page.mouse.move(120, 170, steps=3)
    page.mouse.up()
    seen = picture(page)
    assert psnr(seen[:, :118], both[0][:, :118]) > 35
    assert psnr(seen[:, 122:], both[1][:, 122:]) > 35
    page.keyboard.press("Escape")
    page.locator("#split").click()
    wait_for_frame(page, shown_methods("reference"))
    assert page.locator("#divider").is_hidden()


def test_views_of_the_denoiser_have_a_legend(page: Page) -> None:
    page.locator("#settings").click()
    page.select_option("#show-a", "frames_s")
    wait_for_frame(page, f"frame.sides[0].show === 'frames_s' && {SHARP}")
    assert "accumulated frames" in page.inner_text("#legends")
    assert "128" in page.inner_text("#legends")


def test_sliders_are_the_declared_settings(page: Page) -> None:
    page.locator("#settings").click()
    names = page.eval_on_selector_all("#denoiser-settings input", "inputs => inputs.map((input) => input.id)")
    assert names == [f"setting-{name}" for name in TUNABLE]
    default = DenoiserSettings()
    text = page.inner_text("#denoiser-settings")
    for name in TUNABLE:
        declaration = declared(DenoiserSettings)[name]
        assert declaration.title in text
        slider = page.locator(f"#setting-{name}")
        position = float(slider.input_value())
        assert declaration.slider is not None
        assert (2**position if declaration.slider.power_of_two else position) == pytest.approx(
            getattr(default, name), rel=0.1
        )  # as near as its steps come
    assert "128 frames" in text and "0.90" in text


def test_new_slider_needs_only_its_declaration(
    browser: Browser, viewer: Viewer, console_errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "TUNABLE", (*TUNABLE, "smooth_errors"))
    monkeypatch.setattr(import_module("hushsplat.viewer.scene_info"), "TUNABLE", (*TUNABLE, "smooth_errors"))
    new = {"name": "smooth_errors", "title": "Smoothing", "help": "", "unit": "", "min": 0, "max": 8, "step": 0.5}
    generated = (Path(protocol.__file__).parent / "static" / "settings.js").read_text(encoding="utf-8")
    extended = generated.rstrip().removesuffix("];") + f", {json.dumps(new)}];"
    opened = browser.new_page(viewport={"width": 360, "height": 240}, reduced_motion="reduce")
    listen(opened, console_errors)
    opened.route("**/settings.js", lambda route: route.fulfill(body=extended, content_type="text/javascript"))
    with opened.expect_websocket() as socket:
        opened.goto(viewer.url)
    wait_for_frame(opened, SHARP)
    opened.locator("#settings").click()
    assert opened.input_value("#setting-smooth_errors") == "2"
    with socket.value.expect_event("framesent", lambda text: 'smooth_errors":6.5' in str(text)):
        opened.fill("#setting-smooth_errors", "6.5")
    shown = opened.evaluate("() => hushsplat.stage.header.frame")
    wait_for_frame(opened, f"frame.frame > {shown + 2} && {SHARP}")  # accepted, and drawn
    assert opened.locator(".note.error").count() == 0
    opened.close()
    assert console_errors == []


def test_sliders_reach_the_denoiser(page: Page) -> None:
    page.locator("#settings").click()
    page.fill("#setting-accumulated_cap_frames", "0")
    page.select_option("#show-a", "frames_s")
    frame = wait_for_frame(page, "frame.legends[0] && frame.legends[0].ticks[2] === 1")
    assert frame["sides"][0]["show"] == "frames_s"
    page.fill("#samples", "2")
    page.fill("#gamma", "1")
    page.fill("#setting-stabilise_weight", "0.5")
    page.fill("#setting-denoised_cap_frames", "3.25")
    draw = page.evaluate("() => hushsplat.panel.draw")
    assert (draw["samples"], draw["config"]["stabilise_weight"]) == (4, 0.5)
    assert draw["config"]["denoised_cap_frames"] == 10  # 2^3.25, rounded
    page.locator("#defaults").click()
    assert page.evaluate("() => hushsplat.panel.draw.samples") == 1


def test_another_up_direction_levels_the_horizon(page: Page) -> None:
    page.keyboard.press("u")
    up = page.evaluate("() => hushsplat.camera.up")
    assert up == [0, 1, 0]
    assert abs(pose(page)[:3, 0] @ up) < 1e-6
    page.keyboard.press("h")
    page.wait_for_function("() => hushsplat.camera.up[1] === -1")


LINK_IS_WRITTEN = """() => {
  const eye = new URLSearchParams(location.hash.slice(1)).get("p").split(",").map(Number);
  return eye.every((value, axis) => Math.abs(value - hushsplat.camera.eye[axis]) < 1e-5);
}"""


def test_link_opens_the_same_camera_and_methods(page: Page, browser: Browser, console_errors: list[str]) -> None:
    page.keyboard.press("x")
    drag(page, -70, 15)
    before = pose(page)
    page.wait_for_function("() => location.hash.includes('m=') && location.hash.includes('d=')")
    page.wait_for_function(LINK_IS_WRITTEN)
    other = browser.new_page(viewport={"width": 360, "height": 240}, reduced_motion="reduce")
    listen(other, console_errors)
    other.goto(page.url)
    wait_for_frame(other, "frame.sides.length === 2")
    assert np.allclose(pose(other), before, atol=1e-5)
    other.close()


def test_keys_are_the_cameras_after_a_choice_by_hand(page: Page) -> None:
    page.keyboard.press("g")
    before = pose(page)
    page.locator("#fov").focus()
    page.keyboard.press("w", delay=200)  # letters mean nothing to a slider
    page.evaluate(THREE_FRAMES)
    assert np.abs(pose(page) - before).max() > 0
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.id") == "fov"
    page.locator("#background").focus()
    page.dispatch_event("#background", "pointerdown")
    page.select_option("#background", "#808080")
    assert page.evaluate("() => document.activeElement.id") == "picture"
    page.locator("#background").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.id") == "background"
    page.select_option("#background", "color")
    page.locator("#background-color").focus()
    page.keyboard.press("f")
    assert page.evaluate("() => hushsplat.controls.mode") == "fly"
    page.locator("#help").click()
    page.locator("#keys-help button").click()
    page.wait_for_function("() => document.activeElement.id === 'picture'")
    page.locator("#mode-fly").click()
    page.keyboard.press("O")  # capitals are locked
    assert page.evaluate("() => hushsplat.controls.mode") == "orbit"


def test_two_pages_have_their_own_cameras(
    page: Page, browser: Browser, viewer: Viewer, console_errors: list[str], scene: Gaussians
) -> None:
    other = browser.new_page(viewport={"width": 300, "height": 200}, reduced_motion="reduce")
    listen(other, console_errors)
    other.goto(viewer.url)
    wait_for_frame(other)
    choose(page, "reference")
    choose(other, "reference")
    drag(page, 90, 0)
    wait_for_frame(page, f"{shown_methods('reference')} && frame.sequence === hushsplat.sequence()")
    wait_for_frame(other, shown_methods("reference"))  # a camera that stays draws no frame for its sequence
    for one in (page, other):
        assert psnr(picture(one), to_bytes(hushsplat.render(scene, camera_of(one), "reference").color)) > 35
    other.close()


def test_screenshot_has_the_camera_inside(page: Page) -> None:
    drag(page, 30, -10)
    wait_for_frame(page, f"frame.sequence === hushsplat.sequence() && {SHARP}")
    before = pose(page)
    with page.expect_download() as download:
        page.keyboard.press("p")
    path = download.value.path()
    image = Image.open(io.BytesIO(path.read_bytes()))
    assert download.value.suggested_filename == "room.png"
    assert image.size == (360, 240)
    drag(page, 50, 0)
    page.set_input_files("#file", {"name": "back.png", "mimeType": "image/png", "buffer": path.read_bytes()})
    page.wait_for_function(f"() => Math.abs(hushsplat.camera.eye[0] - {before[0, 3]}) < 1e-9")
    assert np.allclose(pose(page), before, atol=1e-12)


def test_dropped_screenshot_leaves_the_track_alone(page: Page) -> None:
    wait_for_frame(page, SHARP)
    with page.expect_download() as download:
        page.keyboard.press("p")
    shot = {"name": "back.png", "mimeType": "image/png", "buffer": download.value.path().read_bytes()}
    page.keyboard.press("k")
    page.evaluate("() => hushsplat.camera.orbit(0.4, 0)")
    page.keyboard.press("k")
    page.keyboard.press("Escape")
    page.set_input_files("#file", shot)
    page.wait_for_function("() => document.getElementById('notes').textContent.includes('back to where it was taken')")
    assert page.evaluate("() => hushsplat.timeline.track.keys.length") == 2
    assert page.locator("#timeline").is_hidden()


def choose_environment(page: Page, size: tuple[int, int]) -> None:
    body = io.BytesIO()
    Image.new("RGB", size, (200, 40, 40)).save(body, "PNG")
    with page.expect_file_chooser() as chooser:
        page.select_option("#background", "environment")
    chooser.value.set_files({"name": "sky.png", "mimeType": "image/png", "buffer": body.getvalue()})


def test_background_menu_says_what_is_drawn(page: Page, console_errors: list[str]) -> None:
    page.locator("#settings").click()
    page.select_option("#background", "#ffffff")
    choose_environment(page, (30, 20))
    page.wait_for_function("() => document.getElementById('notes').textContent.includes('twice as wide as high')")
    assert page.input_value("#background") == "#ffffff"
    with page.expect_file_chooser():
        page.select_option("#background", "environment")  # and no file is chosen
    assert page.input_value("#background") == "#ffffff"
    choose_environment(page, (40, 20))
    page.wait_for_function("() => document.getElementById('background').value === 'environment'")
    with page.expect_file_chooser():
        page.locator("#background-picture").click()  # another one
    page.select_option("#background", "color")
    assert page.locator("#background-picture").is_hidden()
    page.fill("#background-color", "#000000")
    assert page.evaluate("() => hushsplat.panel.draw.background") == [[0, 0, 0]]
    assert page.locator("#background-color").is_visible()
    page.select_option("#background", "sky")
    assert page.locator("#background-color").is_hidden()
    console_errors[:] = [text for text in console_errors if "400 (Bad Request)" not in text]  # of the refused one


def test_help_lists_the_keys_and_everything_has_a_name(page: Page) -> None:
    page.keyboard.press("?")
    said = page.inner_text("#keys-help")
    assert all(word in said for word in ("turn about the pivot", "one finger", "two fingers", "pinch", "double tap"))
    assert all(name in page.inner_text("#keys-help") for name in METHODS)
    page.keyboard.press("Escape")
    page.wait_for_selector("#keys-help", state="hidden")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input:not([type=file])")].filter((e) =>
        !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.id)"""
    )
    assert nameless == []


STICKING_OUT = """() => [...document.querySelectorAll("button, select, input, strong, #rail")].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width && (box.left < 0 || box.right > innerWidth);
}).map((element) => element.id || element.textContent)"""


TOO_SMALL = """() => [...document.querySelectorAll(
  "button, select, summary, input, a, [role=button], [role=slider]"
)].filter((element) => {
  const box = element.getBoundingClientRect();
  return element.checkVisibility({ visibilityProperty: true }) && box.width && Math.min(box.width, box.height) < 43.9;
}).map((element) => element.id || element.textContent)"""


def test_two_fingers_pan_and_pinch(browser: Browser, viewer: Viewer, console_errors: list[str]) -> None:
    phone = browser.new_page(
        viewport={"width": 300, "height": 500},
        has_touch=True,
        is_mobile=True,
        device_scale_factor=2,
        reduced_motion="reduce",
    )
    listen(phone, console_errors)
    phone.goto(viewer.url)
    frame = wait_for_frame(phone, SHARP)
    assert (frame["width"], frame["height"]) == (450, 750)  # pixels of a phone are small
    before = phone.evaluate("() => hushsplat.camera.distance")
    touch = phone.context.new_cdp_session(phone)

    def fingers(kind: str, *places: tuple[int, int]) -> None:
        points = [{"x": x, "y": y, "id": index} for index, (x, y) in enumerate(places)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", (120, 250), (180, 250))
    fingers("touchMove", (100, 250), (200, 250))
    fingers("touchMove", (90, 250), (210, 250))
    fingers("touchEnd")
    phone.wait_for_function(f"() => hushsplat.camera.distance < {0.7 * before}")
    eye = pose(phone)
    fingers("touchStart", (150, 250))
    fingers("touchMove", (200, 250))
    fingers("touchEnd")
    phone.wait_for_function(f"() => Math.abs(hushsplat.camera.matrix[0][0] - {eye[0, 0]}) > 0.01")
    assert phone.evaluate(TOO_SMALL) == []
    phone.evaluate("() => { hushsplat.panel.toggleSplit(); hushsplat.timeline.toggle(true); }")
    wait_for_frame(phone, "frame.sides.length === 2")
    note = "() => hushsplat.controls.dispatchEvent(new Event('speed'))"  # messages cover no menus
    phone.evaluate(note)
    menus, message = (phone.locator(name).bounding_box() for name in ("#choices", ".note"))
    assert menus and message and menus["y"] + menus["height"] <= message["y"]
    assert phone.evaluate(STICKING_OUT) == [] and phone.evaluate(TOO_SMALL) == []
    phone.evaluate("() => { hushsplat.timeline.toggle(false); document.getElementById('settings').click(); }")
    assert phone.evaluate(STICKING_OUT) == [] and phone.evaluate(TOO_SMALL) == []
    phone.set_viewport_size({"width": 1024, "height": 700})  # a tablet
    phone.evaluate("() => hushsplat.timeline.toggle(true)")
    assert phone.evaluate(STICKING_OUT) == [] and phone.evaluate(TOO_SMALL) == []
    phone.close()
    assert console_errors == []


def test_double_tap_picks_one_point(browser: Browser, viewer: Viewer, console_errors: list[str]) -> None:
    phone = browser.new_page(viewport={"width": 300, "height": 500}, has_touch=True, is_mobile=True)
    listen(phone, console_errors)
    phone.goto(viewer.url)
    wait_for_frame(phone, SHARP)
    phone.evaluate(
        "() => { hushsplat.picks = 0; hushsplat.controls.addEventListener('pick', () => hushsplat.picks++); }"
    )
    for _ in range(2):
        phone.touchscreen.tap(150, 300)
    phone.wait_for_function("() => hushsplat.picks > 0")
    phone.wait_for_timeout(500)  # Chromium makes a double click of it, too
    assert phone.evaluate("() => hushsplat.picks") == 1
    phone.close()
    assert console_errors == []


def test_a_hand_that_is_taken_away_by_the_browser_is_off_the_camera(page: Page) -> None:
    page.evaluate("() => hushsplat.controls.addEventListener('hold', ({ detail }) => { hushsplat.held = detail; })")
    page.evaluate("() => addEventListener('pointerdown', ({ pointerId }) => { hushsplat.pointer = pointerId; })")
    page.mouse.move(180, 140)
    page.mouse.down()
    page.mouse.move(182, 140)  # now the canvas has the pointer
    page.wait_for_function("() => hushsplat.held === true")
    page.evaluate("() => hushsplat.stage.canvas.releasePointerCapture(hushsplat.pointer)")
    page.mouse.move(181, 140)
    page.wait_for_function("() => hushsplat.held === false")
    page.mouse.up()


@pytest.mark.parametrize("size", [(568, 320), (839, 412)])
def test_phone_on_its_side_has_room_for_the_picture(
    browser: Browser, viewer: Viewer, console_errors: list[str], size: tuple[int, int]
) -> None:
    width, height = size
    phone = browser.new_page(viewport={"width": width, "height": height}, has_touch=True, is_mobile=True)
    listen(phone, console_errors)
    phone.goto(viewer.url)
    wait_for_frame(phone)
    phone.evaluate("() => { hushsplat.panel.toggleSplit(); hushsplat.timeline.toggle(true); }")
    wait_for_frame(phone, "frame.sides.length === 2")
    assert phone.evaluate("() => document.getElementById('timeline').offsetHeight") < 0.4 * height
    in_a_row = set(
        phone.evaluate("() => [...document.querySelectorAll('.controls *')].map((e) => e.id || e.textContent)")
    )
    assert set(phone.evaluate(STICKING_OUT)) <= in_a_row  # which scrolls
    assert phone.evaluate(TOO_SMALL) == []
    phone.locator("#video").scroll_into_view_if_needed()
    assert "video" not in phone.evaluate(STICKING_OUT)
    phone.locator("#settings").click()
    assert phone.locator("#timeline").is_hidden()  # there is room for one of them
    boxes = [phone.locator(name).bounding_box() for name in ("#choices", "#tools")]
    assert boxes[0] and boxes[1] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] + 1
    phone.close()
    assert console_errors == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_notebook_on_this_machine_shows_the_viewer_in_a_frame(
    browser: Browser, scene: Gaussians, tmp_path: Path, host: str
) -> None:
    with (
        hushsplat.view(scene, name="room", port=0) as running,
        ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as notebook,
    ):
        (tmp_path / "index.html").write_text(running._repr_html_())
        threading.Thread(target=notebook.serve_forever, daemon=True).start()
        opened = browser.new_page()
        opened.goto(f"http://{host}:{notebook.server_address[1]}/")
        frame = opened.wait_for_selector("iframe").content_frame()
        frame.wait_for_function("() => window.hushsplat?.stage.header")
        opened.close()
        notebook.shutdown()


async def proxied(request: web.Request) -> web.StreamResponse:
    """What jupyter-server-proxy does: /user/me/proxy/PORT/PATH is PATH of that port, WebSockets included."""
    port, path = request.match_info["port"], request.match_info["path"]
    url = f"http://127.0.0.1:{port}/{path}?{request.query_string}"
    passed_on = {"Origin": request.headers["Origin"]} if "Origin" in request.headers else {}
    async with aiohttp.ClientSession() as client:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            async with client.get(url, headers=passed_on) as answer:
                kept = {name: answer.headers[name] for name in ("Content-Type", "Content-Security-Policy")}
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)
        page = web.WebSocketResponse(max_msg_size=0)
        await page.prepare(request)
        async with client.ws_connect(url, headers=passed_on, max_msg_size=0) as viewer:

            async def back() -> None:
                async for message in viewer:
                    await (page.send_str if message.type == aiohttp.WSMsgType.TEXT else page.send_bytes)(message.data)

            task = asyncio.ensure_future(back())
            async for message in page:
                await viewer.send_str(message.data)
            task.cancel()
        return page


def test_a_notebook_behind_a_proxy_shows_the_viewer_in_a_frame(
    browser: Browser, scene: Gaussians, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/me/")
    with hushsplat.view(scene, name="room", port=0) as running:
        html = running._repr_html_()
        assert f'src="/user/me/proxy/{running.port}/?token=' in html and "127.0.0.1" not in html
        app, loop, ready = web.Application(), asyncio.new_event_loop(), threading.Event()
        app.router.add_get("/", lambda _: web.Response(text=html, content_type="text/html"))  # type: ignore[arg-type]
        app.router.add_get("/user/me/proxy/{port}/{path:.*}", proxied)
        runner, ports = web.AppRunner(app), []

        async def serve() -> None:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            ports.append(runner.addresses[0][1])
            ready.set()

        def serving() -> None:
            loop.run_until_complete(serve())
            loop.run_forever()

        threading.Thread(target=serving, daemon=True).start()
        ready.wait()
        opened = browser.new_page()
        opened.goto(f"http://localhost:{ports[0]}/")
        frame = opened.wait_for_selector("iframe").content_frame()
        frame.wait_for_function("() => window.hushsplat?.stage.header")
        opened.close()
        loop.call_soon_threadsafe(loop.stop)

        async def foreign(token: str) -> int:
            address = running.url.partition("?")[0]
            headers = {"Origin": "https://hub.example"}
            async with (
                aiohttp.ClientSession() as client,
                client.get(address, params={"token": token}, headers=headers) as answer,
            ):
                return answer.status

        assert run(foreign(running.url.partition("token=")[2])) == 200
        assert run(foreign("wrong")) == 403


def test_picture_all_around_is_there_after_a_restart(
    browser: Browser, scene: Gaussians, console_errors: list[str], tmp_path: Path
) -> None:
    Image.new("RGB", (64, 32), (255, 0, 0)).save(tmp_path / "red.png")
    cut = scene.take(np.arange(50))
    first = hushsplat.view(cut, name="room", port=0)
    opened = browser.new_page(viewport={"width": 300, "height": 200}, reduced_motion="reduce")
    opened.goto(first.url)
    wait_for_frame(opened)
    opened.keyboard.press("g")
    with opened.expect_file_chooser() as chooser:
        opened.select_option("#background", "environment")
    chooser.value.set_files(tmp_path / "red.png")
    opened.wait_for_function("() => hushsplat.panel.draw.background === 'environment'")
    is_red = """() => {
      const { canvas } = hushsplat.stage, [red, green] = canvas.getContext("2d").getImageData(2, 2, 1, 1).data;
      return red > 200 && green < 50;
    }"""
    opened.wait_for_function(is_red)
    first.close()
    opened.wait_for_selector("#offline:not([hidden])")
    opened.evaluate("() => hushsplat.stage.canvas.getContext('2d').clearRect(0, 0, 300, 200)")
    with hushsplat.view(cut, name="room", port=first.port):
        opened.wait_for_selector("#offline", state="hidden")
        opened.wait_for_function(is_red)
        opened.close()


def test_page_reconnects_after_a_restart(browser: Browser, scene: Gaussians, console_errors: list[str]) -> None:
    first = hushsplat.view(scene, name="room", port=0)
    opened = browser.new_page(viewport={"width": 300, "height": 200}, reduced_motion="reduce")
    listen(opened, console_errors)
    opened.goto(first.url)
    wait_for_frame(opened)
    drag(opened, 40, 0)
    before = pose(opened)
    first.close()
    opened.wait_for_selector("#offline:not([hidden])")
    opened.evaluate("() => { hushsplat.stage.old = hushsplat.stage.header; }")
    with hushsplat.view(scene, name="room", port=first.port):
        opened.wait_for_selector("#offline", state="hidden")
        wait_for_frame(opened, "frame !== hushsplat.stage.old")
        assert (pose(opened) == before).all()  # the camera stays
        opened.close()
    expected = ("WebSocket", "ERR_CONNECTION_REFUSED")  # the browser reports each try, and an icon that it fetches late
    console_errors[:] = [text for text in console_errors if not any(part in text for part in expected)]
    assert console_errors == []
