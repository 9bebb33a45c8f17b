"""Tracks on the page: record, play, scrub, trim, edit, save, load, and render to a video."""

from __future__ import annotations

import base64
import io
import json
import re
import time
from pathlib import Path

import av
import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from watch import listen, wait_for_frame

import hushsplat
from hushsplat.io.scenes.scene import load as load_scene
from hushsplat.io.scenes.scene import save
from hushsplat.io.scenes.sog_levels import write_streamed_sog
from hushsplat.io.tracks import read_track, track_json, write_track
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.paths import dolly
from hushsplat.types.track import Track
from hushsplat.viewer.launch import Viewer
from hushsplat.viewer.service import ViewerOptions

DRAG = """async ([x, y]) => {
  for (let step = 0; step < 12; step += 1) {
    hushsplat.camera.orbit(x / 12, y / 12);
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}"""
AT = "(times) => times.map((time) => hushsplat.timeline.track.at(time).eye)"
# Follows the camera while the track plays: where the playhead was, and where the camera.
PLAYED = """async () => {
  const { timeline, camera } = hushsplat, poses = [];
  camera.addEventListener("change", () => poses.push([timeline.time, camera.matrix]));
  timeline.play();
  while (timeline.playing) await new Promise((resolve) => requestAnimationFrame(resolve));
  return poses;
}"""


def saved(page: Page, path: Path) -> Track:
    with page.expect_download() as download:
        page.locator("#track-save").click()
    assert download.value.suggested_filename == "track.json"
    download.value.save_as(path)
    return read_track(path)


def load(page: Page, path: Path) -> None:
    page.set_input_files("#file", path)
    page.wait_for_function("() => !hushsplat.timeline.track.empty")


def test_recorded_track_plays_back_the_same_poses(page: Page, tmp_path: Path) -> None:
    page.keyboard.press("b")
    page.evaluate(DRAG, [0.5, 0.1])
    page.wait_for_timeout(300)  # a rest is part of it
    page.evaluate(DRAG, [-0.3, 0.0])
    page.keyboard.press("b")
    track = saved(page, tmp_path / "walk.json")
    assert len(track) > 20
    assert 0.3 < track.duration_s < 20  # real times
    assert np.diff(track.times_s).max() > 0.25  # the rest
    played = page.evaluate(PLAYED)
    assert len(played) > 5
    times, order = np.unique(np.array([time for time, _ in played], dtype=np.float64), return_index=True)
    poses = np.array([matrix for _, matrix in played])[order]
    expected = track.interpolate(np.clip(times, 0, track.times_s[-1])).world_from_camera
    assert np.allclose(poses, expected, atol=1e-6)
    # At the recorded times it is the recorded pose itself.
    exact = page.evaluate(
        "() => hushsplat.timeline.track.keys.map(({ time }) => hushsplat.timeline.track.at(time).eye)"
    )
    assert np.allclose(exact, track.world_from_camera[:, :3, 3], atol=1e-9)


def test_track_curve_of_the_page_is_the_packages(page: Page, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    track = hushsplat.walk_track(8, 1.0)
    times = np.sort(rng.uniform(0, 10, len(track)))
    keyed = Track(track.width, track.height, track.fx, track.fy, track.cx, track.cy, times, track.world_from_camera)
    write_track(keyed, tmp_path / "keys.json")
    load(page, tmp_path / "keys.json")
    at = np.sort(rng.uniform(times[0], times[-1], 50))
    eyes = page.evaluate(AT, (at - times[0]).tolist())
    assert np.allclose(eyes, keyed.interpolate(at).world_from_camera[:, :3, 3], atol=1e-9)


def test_key_poses_make_an_editable_track(page: Page, tmp_path: Path) -> None:
    page.keyboard.press("k")
    for _ in range(2):
        page.evaluate(DRAG, [0.4, 0.0])
        page.keyboard.press("k")
    keys = page.evaluate("() => hushsplat.timeline.track.keys.map(({ time }) => time)")
    assert keys == [0, 2, 4]
    page.locator("#key-before").click()  # the one in the middle
    page.evaluate(DRAG, [0.0, 0.3])
    page.locator("#key-set").click()
    eye = page.evaluate("() => hushsplat.camera.eye")
    track = saved(page, tmp_path / "keys.json")
    assert len(track) == 121  # thirty frames a second, so that every reader flies the same curve
    assert np.allclose(track.world_from_camera[60, :3, 3], eye)
    turns = np.linalg.norm(np.diff(track.world_from_camera[:, :3, 2], axis=0), axis=1)
    assert np.abs(np.diff(turns)).max() < 0.2 * turns.max()  # no jerk at the keys
    page.keyboard.press("Delete")
    assert page.evaluate("() => hushsplat.timeline.track.keys.length") == 2
    page.locator("#track-clear").click()
    load(page, tmp_path / "keys.json")
    assert page.evaluate("() => hushsplat.timeline.track.keys.length") == 3  # the keys come back as keys


def test_track_keys_move_on_the_rail(page: Page) -> None:
    page.keyboard.press("k")
    page.evaluate(DRAG, [0.4, 0.0])
    page.keyboard.press("k")
    rail, key = page.locator("#rail").bounding_box(), page.locator("#keys i").nth(1).bounding_box()
    assert rail is not None and key is not None
    page.mouse.move(key["x"] + key["width"] / 2, key["y"] + key["height"] / 2)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] / 2, key["y"] + 4, steps=4)
    page.mouse.up()
    assert 0.6 < page.evaluate("() => hushsplat.timeline.track.end") < 1.6


def test_track_scrub_and_trim(page: Page, tmp_path: Path) -> None:
    straight = dolly([0, -1.5, -4], [1, -1.5, -4], [0.5, -1, 0], seconds=2.0, fps=30.0)
    write_track(straight, tmp_path / "dolly.json")
    load(page, tmp_path / "dolly.json")
    rail = page.locator("#rail").bounding_box()
    assert rail is not None
    page.mouse.click(rail["x"] + rail["width"] / 2, rail["y"] + 20)
    time, eye = page.evaluate("() => [hushsplat.timeline.time, hushsplat.camera.eye]")
    assert abs(time - straight.duration_s / 2) < 0.05
    assert np.allclose(eye, straight.interpolate(np.array([time])).world_from_camera[0, :3, 3], atol=1e-6)
    wait_for_frame(page, "frame.sequence === hushsplat.sequence()")
    handle = page.locator("#handle-a").bounding_box()
    assert handle is not None
    page.mouse.move(handle["x"] + 8, handle["y"] + 10)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] / 4, handle["y"] + 10, steps=3)
    page.mouse.up()
    page.locator("#trim").click()
    start, end, first = page.evaluate(
        "() => { const { track } = hushsplat.timeline; return [track.start, track.end, track.at(0).eye]; }"
    )
    assert start == 0 and abs(end - 0.75 * straight.duration_s) < 0.05
    at = np.array([straight.duration_s - end])
    assert np.allclose(first, straight.interpolate(at).world_from_camera[0, :3, 3], atol=1e-6)


def test_simplified_track_stays_close_to_the_recording(page: Page, tmp_path: Path) -> None:
    walk = hushsplat.walk_track(6, 30)
    write_track(walk, tmp_path / "walk.json")
    load(page, tmp_path / "walk.json")
    distance = page.evaluate("() => hushsplat.camera.distance")
    page.locator("#simplify").click()
    few = page.evaluate("() => hushsplat.timeline.track.keys.length")
    assert 4 <= few < 60
    eyes = np.array(page.evaluate(AT, walk.times_s.tolist()))
    fov = page.evaluate("() => hushsplat.timeline.track.fov")
    focal = 120 / np.tan(np.radians(fov) / 2)
    off = np.linalg.norm(eyes - walk.world_from_camera[:, :3, 3], axis=1) / distance * focal
    assert np.percentile(off, 90) < 12  # px; sideways at most 8, along the axis it shows less


# A drag of two seconds over 420 px by a hand that shakes, 60 poses a second with uneven times.
DRAGGED = """async (path) => {
  const { Camera } = await import(new URL("static/camera.js", location.href));
  const { Track } = await import(new URL("static/tracks.js", location.href));
  const paths = { straight: (t) => [420 * t, 60 * t], arc: (t) => [420 * t, 90 * Math.sin(3 * t)] };
  const camera = new Camera(), at = paths[path];
  let seed = 7, before = [0, 0];
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647 - 0.5;
  const keys = [Track.key(0, camera)];
  for (let k = 1; k <= 120; k += 1) {
    const t = k / 120, [x, y] = at(t * t * (3 - 2 * t)).map((v) => v + 2 * random());
    camera.orbit((-(x - before[0]) * 4.2) / 800, (-(y - before[1]) * 4.2) / 800);
    before = [x, y];
    keys.push(Track.key(k / 60 + 0.008 * random(), camera));
  }
  return new Track(keys, 50).simplified(camera.distance, 800).keys.length;
}"""


@pytest.mark.parametrize("path", ["straight", "arc"])
def test_a_drag_of_two_seconds_has_three_to_six_keys(page: Page, path: str) -> None:
    assert 3 <= page.evaluate(DRAGGED, path) <= 6


def test_a_drag_has_few_keys_and_changes_are_undone(page: Page) -> None:
    page.set_viewport_size({"width": 700, "height": 500})
    # A clock of its own: on a busy machine the drag would be jerky, and such a drag needs more keys.
    page.evaluate("() => { window.now = performance.now(); performance.now = () => window.now; }")
    page.keyboard.press("b")
    page.mouse.move(120, 100)
    page.mouse.down()
    for step in range(1, 61):
        page.evaluate("() => { window.now += 16; }")
        page.mouse.move(120 + 2 * step, 100 + 0.5 * step)
        page.evaluate("() => new Promise(requestAnimationFrame)")  # so that each move is an event
    page.mouse.up()
    page.keyboard.press("b")
    recorded = page.evaluate("() => hushsplat.timeline.track.keys.length")
    page.locator("#simplify").click()
    few = page.evaluate("() => hushsplat.timeline.track.keys.length")
    assert recorded > 10 and 2 <= few <= 8
    page.keyboard.press("z")
    assert page.evaluate("() => hushsplat.timeline.track.keys.length") == recorded
    page.locator("#undo").click()  # where there is no keyboard
    assert page.evaluate("() => hushsplat.timeline.track.keys.length") == 0
    assert page.locator("#undo").is_disabled()


def test_track_is_rendered_to_mp4_and_can_be_cancelled(page: Page, tmp_path: Path) -> None:
    write_track(hushsplat.walk_track(0.5, 30), tmp_path / "walk.json")
    load(page, tmp_path / "walk.json")
    page.select_option("#video-fps", "24")
    page.locator("#video").click()
    page.wait_for_selector("#video-save:not([hidden])")
    assert "12 frames" in page.inner_text("#video-progress")
    with page.expect_download() as download:
        page.locator("#video-save").click()
    with av.open(io.BytesIO(download.value.path().read_bytes())) as container:
        frames = [frame for frame in container.decode(video=0)]
    assert len(frames) == 12 and (frames[0].width, frames[0].height) == (360, 240)
    write_track(hushsplat.walk_track(60, 5), tmp_path / "long.json")
    load(page, tmp_path / "long.json")
    page.wait_for_function("() => hushsplat.timeline.track.duration > 50")
    page.locator("#video").click()
    page.wait_for_selector("#video-cancel:not([hidden])")
    page.wait_for_function("() => document.querySelector('#video-progress progress').value > 0")
    page.locator("#video-cancel").click()
    page.wait_for_selector("#video-progress", state="hidden")
    assert page.locator("#video").is_enabled()


DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
  }
}"""


def drop(page: Page, name: str, body: bytes) -> None:
    page.evaluate(DROP, [name, base64.b64encode(body).decode()])


def test_dropped_scene_opens_and_closes(page: Page, scene: Gaussians, tmp_path: Path) -> None:
    save(scene.take(np.arange(500)), tmp_path / "part.ply")
    drop(page, "part.ply", (tmp_path / "part.ply").read_bytes())
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 500")
    assert page.inner_text("#scene-name") == "part.ply"
    wait_for_frame(page, "frame.sequence === hushsplat.sequence()")
    page.locator("#close-file").click()
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 10000")


def test_dropped_scene_of_another_name_is_read_by_what_is_in_it(page: Page, scene: Gaussians, tmp_path: Path) -> None:
    save(scene.take(np.arange(300)), tmp_path / "part.spz")
    drop(page, "part.ply", (tmp_path / "part.spz").read_bytes())
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 300")
    page.locator("#close-file").click()


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("cat.jpg", b"\xff\xd8 a cat", "cat.jpg: is a picture; drop a .ply"),
        ("garden.zip", b"PK", "garden.zip: is an archive; unpack it first"),
        ("garden.xyz", b"1 2 3", "garden.xyz: is no scene; drop a .ply"),
        ("model.glb", b"glTF", "model.glb: is a mesh, not Gaussians"),
        ("cat.ply", b"\xff\xd8\xff a cat", "cat.ply: is a picture; drop a .ply"),
        ("chair.ply", b"ply\nelement vertex 3\nproperty float x\nelement face 4\nend_header\n", "chair.ply: is a mesh"),
        ("scan.ply", b"ply\nelement vertex 3\nproperty float x\nend_header\n", "scan.ply: is a point cloud"),
        ("half.splat", b"0" * 33, "half.splat: has 33 bytes, and a .splat has 32 for each Gaussian"),
        ("garden.sog", b"SOG?", "garden.sog: is no .sog, which is a zip file"),
        ("lfs.ply", b"version https://git-lfs.github.com/spec/v1", "lfs.ply: is a pointer of Git LFS"),
        ("none.spz", b"", "none.spz: is empty"),
        ("cut.spz", b"points", "cut.spz: is no .spz, which begins with gzip data"),
        ("garden.ksplat", b"0", "garden.ksplat: is a scene of another viewer's own format; export a .ply"),
        ("chair.blend", b"BLENDER", "chair.blend: is a mesh, not Gaussians"),
        ("garden.html", b"<!DOCTYPE html>", "garden.html: is a web page; drop a .ply"),
        ("walk.json", b"{}", "walk.json: is no track"),
        ("lod-meta.json", b"{}", "describes a streamed scene in many files; start the viewer with its folder"),
        ("meta.json", b"{}", "meta.json: is one file of a SOG scene; drop the whole folder."),
        ("images.bin", b"0", "images.bin: is one file of a capture; start the viewer with --capture FOLDER."),
        ("other.png", b"\x89PNG\r\n\x1a\n", "other.png: is no screenshot of hushsplat"),
    ],
)
def test_invalid_files_show_an_error(page: Page, console_errors: list[str], name: str, body: bytes, said: str) -> None:
    drop(page, name, body)
    page.wait_for_function(f"() => document.getElementById('notes').textContent.includes({json.dumps(said)})")
    assert page.locator(".note.error").count() == 1
    console_errors[:] = [text for text in console_errors if "400 (Bad Request)" not in text]  # its own


# A dropped folder as a browser gives it: paths and contents in base64.
FOLDER = """async ([name, files]) => {
  const { sceneOf } = await import(new URL("static/kinds.js", location.href));
  const entries = (under) => {
    const found = new Map();
    for (const [path, text] of Object.entries(files)) {
      if (!path.startsWith(under)) continue;
      const [first, ...rest] = path.slice(under.length).split("/"), fullPath = `/${name}/${under}${first}`;
      const createReader = () => reader(`${under}${first}/`);
      const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const file = (resolve) => resolve(new File([bytes], first));
      found.set(first, { name: first, fullPath, isDirectory: rest.length > 0, createReader, file });
    }
    return [...found.values()];
  };
  const reader = (under) => {
    const parts = [entries(under), []];
    return { readEntries: (resolve) => resolve(parts.shift()) };
  };
  try {
    const scene = await sceneOf({ name, fullPath: `/${name}`, createReader: () => reader("") });
    const bytes = new Uint8Array(await scene.arrayBuffer());
    return [scene.name, btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))];
  } catch (error) {
    return [error.message, ""];
  }
}"""


def scene_of(page: Page, name: str, files: dict[str, bytes]) -> tuple[str, bytes]:
    encoded = {path: base64.b64encode(body).decode() for path, body in files.items()}
    found, text = page.evaluate(FOLDER, [name, encoded])
    return found, base64.b64decode(text)


def test_dropped_folders_give_their_scene_or_say_what_they_are(page: Page, scene: Gaussians, tmp_path: Path) -> None:
    part = scene.take(np.arange(300))
    write_streamed_sog(part, tmp_path / "made" / "lod-meta.json")
    sog = {path.name: path.read_bytes() for path in (tmp_path / "made" / "0_0").iterdir()}
    name, body = scene_of(page, "garden", sog)
    assert name == "garden.sog"
    (tmp_path / name).write_bytes(body)
    assert len(load_scene(tmp_path / name)) == 300  # a zip file that the reader takes
    drop(page, name, body)
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 300")
    trained = {f"point_cloud/iteration_{n}/point_cloud.ply": str(n).encode() for n in (7000, 30000)}
    assert scene_of(page, "run", {**trained, "input.ply": b"points"}) == ("point_cloud.ply", b"30000")
    assert scene_of(page, "one", {"a/b/room.spz": b"spz", "read.me": b""}) == ("room.spz", b"spz")
    assert scene_of(page, "one", {f"level/{path}": body for path, body in sog.items()}) == ("level.sog", body)
    for files, said in (
        ({"lod-meta.json": b"{}", "0_0/meta.json": b"{}"}, "is a streamed scene in many files; start the viewer with"),
        ({"a.ply": b"", "b.ply": b""}, "has 2 scenes; drop one of them: "),
        ({"cat.jpg": b""}, "this folder has no scene"),
        ({"1_0/meta.json": b"{}", "0_0/meta.json": b"{}"}, "has 2 scenes; drop one of them: 0_0, 1_0."),
        ({"transforms.json": b"{}", "images/0.jpg": b""}, "is a capture (photographs with cameras); hushsplat train"),
        ({"sparse/0/cameras.bin": b""}, "is a capture"),
    ):
        assert said in scene_of(page, "folder", files)[0]


# Files dropped together: names and contents in base64.
DROP_FILES = """(files) => {
  const dataTransfer = new DataTransfer();
  for (const [name, text] of Object.entries(files)) {
    dataTransfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
  }
  document.body.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
}"""


def test_several_dropped_files_give_their_scene_or_say_what_they_are(
    page: Page, scene: Gaussians, tmp_path: Path
) -> None:
    def drop_files(files: dict[str, bytes]) -> None:
        page.evaluate(DROP_FILES, {name: base64.b64encode(body).decode() for name, body in files.items()})

    write_streamed_sog(scene.take(np.arange(300)), tmp_path / "made" / "lod-meta.json")
    drop_files({path.name: path.read_bytes() for path in sorted((tmp_path / "made" / "0_0").iterdir())})
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 300")
    save(scene.take(np.arange(200)), tmp_path / "part.ply")
    drop_files({"cat.jpg": b"", "part.ply": (tmp_path / "part.ply").read_bytes()})
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 200")
    for names, said in ((("cat.jpg", "dog.jpg"), "no scene is among them"), (("a.ply", "b.ply"), "has 2 scenes")):
        drop_files(dict.fromkeys(names, b"ply"))
        page.wait_for_function(f"() => document.querySelector('.note.error')?.textContent.includes('{said}')")
        page.evaluate("() => document.querySelector('.note.error').remove()")


def test_dropped_scene_is_there_after_loading_the_page_again(
    page: Page, viewer: Viewer, scene: Gaussians, tmp_path: Path
) -> None:
    save(scene.take(np.arange(500)), tmp_path / "part.ply")
    drop(page, "part.ply", (tmp_path / "part.ply").read_bytes())
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 500")
    viewer._service.submit(lambda: time.sleep(3.0))  # the server is busy with a message when the page goes
    page.evaluate("() => hushsplat.connection.send({ type: 'probe', request: 99, x: 0.5, y: 0.5 })")
    page.reload()
    page.wait_for_function("() => window.hushsplat?.panel.scene?.gaussians === 500")
    assert page.inner_text("#scene-name") == "part.ply"
    page.locator("#close-file").click()
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 10000")
    page.reload()
    page.wait_for_function("() => window.hushsplat?.panel.scene?.gaussians === 10000")


def test_dropped_track_plays(page: Page) -> None:
    drop(page, "walk.json", "".join(track_json(hushsplat.walk_track(0.3, 30))).encode())
    page.wait_for_function("() => hushsplat.timeline.track.keys.length === 9")
    page.keyboard.press(" ")
    page.wait_for_function(
        "() => hushsplat.timeline.time >= hushsplat.timeline.track.end && !hushsplat.timeline.playing"
    )


def test_finger_takes_the_nearest_key_and_does_not_move_it_by_touching(
    browser: Browser, viewer: Viewer, console_errors: list[str]
) -> None:
    phone = browser.new_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    listen(phone, console_errors)
    phone.goto(viewer.url)
    wait_for_frame(phone)
    phone.evaluate(
        """() => {
          hushsplat.timeline.toggle(true);
          for (let key = 0; key < 4; key++) { hushsplat.camera.orbit(0.2, 0); hushsplat.timeline.addKey(); }
          hushsplat.timeline.track.shift(2, 2.6); // less than a finger after the one before it
          hushsplat.timeline.reflect();
        }"""
    )
    times = "() => hushsplat.timeline.track.keys.map((key) => key.time)"
    before = phone.evaluate(times)
    boxes = [mark.bounding_box() for mark in phone.locator("#keys i").all()]
    handles = [phone.locator(handle).bounding_box() for handle in ("#handle-a", "#handle-b")]
    assert all(min(box["width"], box["height"]) >= 43.9 for box in boxes + handles)
    assert handles[0]["x"] >= 0 and handles[1]["x"] + handles[1]["width"] <= 390
    middles = [box["x"] + box["width"] / 2 for box in boxes]
    y = boxes[0]["y"] + 22
    touch = phone.context.new_cdp_session(phone)

    def finger(*xs: float) -> None:
        for index, x in enumerate(xs):
            kind = "touchMove" if index else "touchStart"
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    finger(middles[1] - 15)
    phone.wait_for_function("() => hushsplat.timeline.chosen === 1")
    finger(middles[2] + 15)
    phone.wait_for_function("() => hushsplat.timeline.chosen === 2")
    assert phone.evaluate(times) == before
    finger(middles[2] + 15, middles[2] + 25, middles[2] + 45)
    phone.wait_for_function(f"() => hushsplat.timeline.track.keys[2].time > {before[2] + 0.2}")
    assert phone.evaluate(times)[1] == before[1]
    phone.close()


def drop_part(page: Page, scene: Gaussians, folder: Path) -> None:
    save(scene.take(np.arange(500)), folder / "part.ply")
    drop(page, "part.ply", (folder / "part.ply").read_bytes())


def shows_part(page: Page) -> None:
    page.wait_for_function("() => hushsplat.panel.scene.gaussians === 500")


def test_page_says_that_a_dropped_scene_is_read_until_it_is_there(
    page: Page, viewer: Viewer, scene: Gaussians, tmp_path: Path
) -> None:
    viewer._service.submit(lambda: time.sleep(5.0))  # longer than other messages are shown
    drop_part(page, scene, tmp_path)
    page.wait_for_timeout(4000)
    assert re.fullmatch(r"reading part\.ply: \d+ %", page.inner_text("#notes"))
    shows_part(page)
    page.wait_for_function("() => !document.getElementById('notes').textContent")


THUMBNAILS = """async () => {
  const images = [...document.querySelectorAll("#thumbnails img")].slice(0, 2);
  await Promise.all(images.map((image) => image.decode()));
  return images.map((image) => {
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight), context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, canvas.width, canvas.height).data.reduce((sum, value) => sum + value, 0);
  });
}"""


def test_thumbnails_are_those_of_the_dropped_scene(page: Page, scene: Gaussians, tmp_path: Path) -> None:
    page.keyboard.press("g")
    before = page.evaluate(THUMBNAILS)
    drop_part(page, scene, tmp_path)
    shows_part(page)
    after = page.evaluate(THUMBNAILS)
    assert len(before) == len(after) == 2 and before[0] != after[0] and before[1] != after[1]


def test_camera_of_a_dropped_scene_that_is_not_kept_is_not_taken_for_another(page: Page) -> None:
    home = page.evaluate("() => hushsplat.panel.scene.places[0].world_from_camera.map((row) => row[3])")
    page.evaluate("() => { sessionStorage.setItem('hushsplat-file', 'gone'); hushsplat.camera.move(1, 2, 3); }")
    page.wait_for_function("() => location.hash.includes('p=')")
    page.wait_for_timeout(600)  # the link is written when the camera stands
    page.reload()
    wait_for_frame(page)
    assert np.allclose(page.evaluate("() => hushsplat.camera.eye"), home[:3])
    assert page.inner_text("#notes") == "the dropped scene is not kept any more; drop it again"
    page.evaluate("() => hushsplat.camera.move(1, 2, 3)")
    page.wait_for_timeout(600)
    page.reload()
    wait_for_frame(page)
    assert not np.allclose(page.evaluate("() => hushsplat.camera.eye"), home[:3])  # the link is its own again


def test_recording_ends_when_another_scene_is_shown(page: Page, scene: Gaussians, tmp_path: Path) -> None:
    page.keyboard.press("b")
    page.evaluate(DRAG, [0.5, 0.1])
    drop_part(page, scene, tmp_path)
    shows_part(page)
    keys = page.evaluate(
        "() => hushsplat.timeline.recording ? [] : hushsplat.timeline.track.keys.map(({ eye }) => eye)"
    )
    assert len(keys) > 3
    assert np.linalg.norm(np.diff(keys, axis=0), axis=1).max() < 1.0  # no jump to the other scene's camera


def test_track_is_there_after_loading_the_page_again(page: Page, scene: Gaussians, tmp_path: Path) -> None:
    page.keyboard.press("b")
    page.evaluate(DRAG, [0.5, 0.1])
    page.keyboard.press("b")
    keys = page.evaluate("() => hushsplat.timeline.track.keys")
    page.reload()
    wait_for_frame(page)
    assert page.evaluate("() => hushsplat.timeline.track.keys") == keys and len(keys) > 3
    assert page.locator("#timeline").is_visible()
    page.locator("#track-clear").click()
    page.reload()
    wait_for_frame(page)
    assert page.evaluate("() => hushsplat.timeline.track.empty") and page.locator("#timeline").is_hidden()


def test_a_recording_goes_on_when_the_track_is_hidden(page: Page) -> None:
    page.keyboard.press("b")
    page.keyboard.press("t")
    assert page.inner_text("#notes") == "the recording goes on; B ends it, or the red button"
    color = "() => getComputedStyle(document.getElementById('tracks')).color"
    red = page.evaluate(color)
    page.keyboard.press("b")
    assert page.evaluate("() => hushsplat.timeline.track.keys.length") >= 2
    assert page.evaluate(color) != red


def test_chosen_size_of_the_video_stays_when_the_window_changes(page: Page) -> None:
    page.keyboard.press("t")
    page.select_option("#video-size", label="1080p")
    page.set_viewport_size({"width": 340, "height": 220})
    page.wait_for_function("() => document.getElementById('video-size').options[0].value === '340x220'")
    assert page.input_value("#video-size") == "1920x1080"


def test_viewer_that_takes_no_files_says_so_before_they_are_sent(
    browser: Browser, scene: Gaussians, console_errors: list[str], tmp_path: Path
) -> None:
    options = ViewerOptions(max_upload_bytes=0)
    with hushsplat.view(scene.take(np.arange(50)), port=0, options=options) as viewer:
        opened = browser.new_page(viewport={"width": 300, "height": 200}, reduced_motion="reduce")
        listen(opened, console_errors)
        opened.goto(viewer.url)
        wait_for_frame(opened)
        drop_part(opened, scene, tmp_path)
        opened.wait_for_selector(".note.error")
        assert opened.inner_text("#notes") == "this viewer takes no files; start it with --max-upload-mb."
        opened.close()
    assert console_errors == []  # no answer 400


def test_dropped_text_is_no_file(page: Page) -> None:
    page.evaluate("""() => {
      const data = new DataTransfer();
      data.setData("text/plain", "garden.ply");
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""")
    assert page.inner_text("#notes") == "that is no file; drop a scene, a track or a screenshot."


def test_space_plays_after_a_button_was_pressed_by_hand(page: Page, tmp_path: Path) -> None:
    write_track(hushsplat.walk_track(2, 30), tmp_path / "walk.json")
    load(page, tmp_path / "walk.json")
    page.locator("#simplify").click()
    page.keyboard.press(" ")
    assert page.evaluate("() => hushsplat.timeline.playing")
    page.keyboard.press(" ")
    page.locator("#undo").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "undo"  # whoever uses the keyboard stays there
