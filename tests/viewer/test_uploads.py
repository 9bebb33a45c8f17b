"""Uploads and downloads: dropped scenes, tracks, videos and screenshots."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import av
import numpy as np
import pytest
from client import Page, page, pixels, psnr, run
from PIL import Image

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.io.scenes.scene import save
from hushsplat.io.tracks import track_from_json, track_json
from hushsplat.types.errors import ViewError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import to_bytes
from hushsplat.types.options import RenderOptions
from hushsplat.types.paths import orbit
from hushsplat.types.track import Track
from hushsplat.viewer.dropped import KEPT_S
from hushsplat.viewer.launch import Viewer
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import RenderService, ViewerOptions
from hushsplat.viewer.uploads import MAX_CAMERAS
from hushsplat.viewer.videos import VideoRequest

SMALL = hushsplat.home_camera(96, 64)


@pytest.fixture(scope="module")
def cloud() -> Gaussians:
    rng = np.random.default_rng(0)
    return Gaussians(
        means=rng.normal(0, 0.5, (300, 3)).astype(np.float32),
        scales=rng.uniform(0.05, 0.2, (300, 3)).astype(np.float32),
        rotations=np.tile(np.float32([1, 0, 0, 0]), (300, 1)),
        opacities=np.full(300, 0.8, dtype=np.float32),
        sh=rng.normal(0, 0.5, (300, 1, 3)).astype(np.float32),
    )


@pytest.fixture(scope="module")
def limited_viewer(scene: Gaussians) -> Any:
    """A viewer that takes one dropped file of at most 64 kB at a time."""
    with hushsplat.view(scene, port=0, options=ViewerOptions(max_upload_bytes=1 << 16, max_files=1)) as running:
        yield running


def folder_of(viewer: Viewer) -> Path:
    return Path(viewer._service._folder.name)


@pytest.mark.parametrize("suffix", [".ply", ".splat", ".spz", ".sog"])
def test_dropped_scene_is_shown_only_to_its_client(
    limited_viewer: Viewer, cloud: Gaussians, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"cloud{suffix}"
    save(cloud, path)

    async def visit() -> None:
        async with page(limited_viewer.url) as one, page(limited_viewer.url) as two:
            await one.draw("reference")
            assert await one.post("scene", path.read_bytes(), name=f"../../my cloud{suffix}") == (200, {})
            assert 0 <= (await one.next("progress"))[0]["share"] < 1
            scene, _ = await one.next("scene")
            assert (scene["name"], scene["gaussians"], scene["own"]) == (f"../../my cloud{suffix}", 300, False)
            camera = hushsplat.Camera.look_at([0, 0, -4], [0, 0, 0], width=80, height=60)
            await one.look(camera)
            _, parts = await one.sharp_frame()
            expected = hushsplat.render(hushsplat.load(path), camera, "reference").color
            assert psnr(pixels(parts[0]), to_bytes(expected)) > 33
            assert two.scene["gaussians"] == 10_000
            status, answer = await two.post("scene", path.read_bytes(), name="second.ply")
            assert (status, "1 dropped scenes are open" in answer["error"]) == (400, True)
            await one.send("close-file")
            assert (await one.next("scene"))[0]["own"]

    run(visit())
    assert list(folder_of(limited_viewer).iterdir()) == []


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("big.ply", b"ply\n" + bytes(70_000), "70004 bytes are more than the 65536"),
        ("cat.jpg", b"\xff\xd8\xff\xe0 a cat", "cat.jpg: is no scene; drop a .ply"),
        ("short.splat", bytes(33), "short.splat: is no scene"),
        ("empty.splat", b"", "empty.splat: is no scene"),
        ("torn.ply", b"ply\nformat binary_little_endian 1.0\nelement vertex 5\n", "torn.ply"),
        ("bomb.spz", b"\x1f\x8b\x08" + bytes(40), "bomb.spz"),
        ("/etc/passwd", b"root", "/etc/passwd: is no scene"),
    ],
)
def test_invalid_scene_files_are_refused(limited_viewer: Viewer, name: str, body: bytes, said: str) -> None:
    async def visit() -> tuple[int, dict[str, Any]]:
        async with page(limited_viewer.url) as one:
            status, answer = await one.post("scene", body, name=name)
            await one.look(SMALL)
            await one.sharp_frame()  # the old scene is still there
            return status, answer

    status, answer = run(visit())
    assert status == 400
    assert said in answer["error"] and str(folder_of(limited_viewer)) not in answer["error"]
    assert list(folder_of(limited_viewer).iterdir()) == []


def test_upload_limit_holds_without_content_length(limited_viewer: Viewer) -> None:
    async def endless() -> Any:
        yield b"ply\n"
        for _ in range(40):
            yield bytes(4096)

    async def visit() -> tuple[int, str]:
        async with page(limited_viewer.url) as one:
            query = {"session": one.session, "name": "endless.ply"}
            async with one.web.post(one.url + "scene", params=query, data=endless()) as answer:
                return answer.status, (await answer.json())["error"]

    status, error = run(visit())
    assert (status, "has more than the 65536 bytes" in error) == (400, True)


def test_uploads_need_a_session_and_own_origin(viewer: Viewer, scene: Gaussians) -> None:
    async def post(url: str, path: str, **options: Any) -> tuple[int, str]:
        async with aiohttp.ClientSession() as web, web.post(url + path, data=b"x", **options) as answer:
            return answer.status, await answer.text()

    for path in ("scene", "track", "video"):
        status, text = run(post(viewer.url, path, params={"session": "guess"}))
        assert (status, "no such session" in text) == (400, True)
        assert run(post(viewer.url, path, headers={"Origin": "http://evil.example"}))[0] == 403
    with hushsplat.view(scene, port=0, options=ViewerOptions(max_upload_bytes=0)) as closed:

        async def visit() -> str:
            async with page(closed.url) as one:
                return (await one.post("scene", b"ply\n", name="a.ply"))[1]["error"]

        assert "takes no files" in run(visit())


def ring(frames: int = 5) -> Track:
    return orbit(np.zeros(3), 3.0, seconds=frames / 10, fps=10.0, width=64, height=48)


def test_dropped_tracks_are_read_by_the_packages_reader(viewer: Viewer) -> None:
    text = "".join(track_json(ring()))
    keyed = {**json.loads(text), "keys": json.loads(text)["frames"][::2]}

    async def visit() -> None:
        async with page(viewer.url) as one:
            status, answer = await one.post("track", text.encode(), name="ring.json")
            assert status == 200
            assert (track_from_json("answer", answer).world_from_camera == ring().world_from_camera).all()
            _, answer = await one.post("track", json.dumps(keyed).encode(), name="keys.json")
            assert answer["keys"] == keyed["keys"]
            for body, said in (
                (b"{", "ring.json: is not JSON"),
                (b"[]", "ring.json: cameras is a list of 0, expected a list of objects"),
                (b"3", "ring.json: holds 3, expected a JSON object"),
                (b"{}", "ring.json: is no track; a track is our JSON, the cameras of a capture"),
                (b'{"format": "usd"}', "ring.json: format is 'usd', expected 'hushsplat-track'"),
                (b'{"version": 2, "means": {}, "sh0": {}}', "ring.json: is the description of a SOG scene"),
                (json.dumps({**keyed, "keys": 3}).encode(), "ring.json: keys: frames is 3, expected a list"),
            ):
                status, answer = await one.post("track", body, name="ring.json")
                assert (status, said in answer["error"]) == (400, True), answer
            status, answer = await one.post("track", b"a,b\n", name="walk.csv")
            assert (status, answer["error"].startswith("walk.csv")) == (400, True)

    run(visit())


def test_dropped_cameras_of_a_capture_are_a_track(viewer: Viewer) -> None:
    poses = [ring(9).camera(index).world_from_camera for index in range(9)]
    lens = {"width": 64, "height": 48, "fx": 60.0, "fy": 60.0}
    inria = [
        {"img_name": f"{i}", **lens, "position": pose[:3, 3].tolist(), "rotation": pose[:3, :3].tolist()}
        for i, pose in enumerate(poses)
    ]
    opengl = [(pose * [1, -1, -1, 1]).tolist() for pose in poses]
    nerf = {
        "w": 64,
        "h": 48,
        "fl_x": 60.0,
        "frames": [{"file_path": f"images/{i}.png", "transform_matrix": pose} for i, pose in enumerate(opengl)],
    }

    async def visit() -> None:
        async with page(viewer.url) as one:
            for name, content in (("cameras.json", inria), ("transforms.json", nerf)):
                status, answer = await one.post("track", json.dumps(content).encode(), name=name)
                assert status == 200, answer
                track = track_from_json("answer", answer)
                assert len(track) == len(poses)  # half a second for each photograph, two poses a second
                for index in (0, len(poses) - 1):
                    np.testing.assert_allclose(track.camera(index).world_from_camera, poses[index], atol=1e-6)
            outside = [{**inria[0], "img_name": "../a.png"}]
            status, answer = await one.post("track", json.dumps(outside).encode(), name="cameras.json")
            assert (status, "leads out of the folder" in answer["error"]) == (400, True)
            status, answer = await one.post("track", json.dumps([{}] * (MAX_CAMERAS + 1)).encode(), name="a.json")
            assert (status, "at most" in answer["error"]) == (400, True)

    run(visit())


async def start_video(one: Page, track: Track, /, **changes: Any) -> tuple[int, dict[str, Any]]:
    content = {"track": json.loads("".join(track_json(track))), "fps": 10, "width": 64, "height": 48, **changes}
    return await one.post("video", json.dumps(content).encode())


async def video_state(one: Page, *wanted: str) -> dict[str, Any]:
    while True:
        message, _ = await one.next("video")
        if message["state"] in wanted:
            return message


def test_video_shows_the_track(viewer: Viewer, scene: Gaussians) -> None:
    track = hushsplat.walk_track(0.6, 10, 64, 48)

    async def visit() -> bytes:
        async with page(viewer.url) as one:
            await one.draw("reference")
            status, answer = await start_video(one, track)
            assert (status, answer["frames"]) == (200, 6)
            message = await video_state(one, "ready")
            assert (message["frame"], message["frames"]) == (6, 6)
            async with one.web.get(f"{one.url}video/{message['id']}") as file:
                assert file.status == 200 and "attachment" in file.headers["Content-Disposition"]
                video = await file.read()
            assert message["bytes"] == len(video)
            assert len(list(folder_of(viewer).iterdir())) == 1
            return video

    with av.open(io.BytesIO(run(visit()))) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) == 6
    expected = to_bytes(hushsplat.render(scene, track.camera(3), "reference").color)
    assert psnr(frames[3], expected) > 25  # what H.264 leaves of a small picture
    wait_until_empty(viewer)


def test_video_of_two_methods_is_split(viewer: Viewer, scene: Gaussians) -> None:
    track = hushsplat.walk_track(0.2, 10, 64, 48)

    async def visit() -> bytes:
        async with page(viewer.url) as one:
            await one.draw("reference", "raw")
            await start_video(one, track, divider=0.5)
            message = await video_state(one, "ready")
            async with one.web.get(f"{one.url}video/{message['id']}") as file:
                return await file.read()

    with av.open(io.BytesIO(run(visit()))) as container:
        frame = next(container.decode(video=0)).to_ndarray(format="rgb24")
    expected = to_bytes(hushsplat.render(scene, track.camera(0), "reference").color)
    assert psnr(frame[:, :30], expected[:, :30]) > 24 > psnr(frame[:, 36:], expected[:, 36:])


def test_cancelled_video_leaves_no_file(viewer: Viewer) -> None:
    async def visit() -> None:
        async with page(viewer.url) as one:
            await start_video(one, hushsplat.walk_track(200, 10, 64, 48))
            await video_state(one, "drawing")
            status, answer = await start_video(one, ring())
            assert (status, "a video is being made already" in answer["error"]) == (400, True)
            await one.send("cancel-video")
            message = await video_state(one, "cancelled", "ready")
            assert message["state"] == "cancelled"
            async with one.web.get(f"{one.url}video/{message['id']}") as file:
                assert file.status == 404
            assert list(folder_of(viewer).iterdir()) == []
            await start_video(one, ring())  # and then another one
            await video_state(one, "ready")

    run(visit())
    wait_until_empty(viewer)


def test_of_two_videos_at_once_one_is_made(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, begun = VideoRequest.parse, threading.Event()

    def slow(*arguments: Any) -> VideoRequest:
        begun.set()
        time.sleep(0.3)
        return parse(*arguments)

    async def visit() -> None:
        async with page(viewer.url) as one:
            monkeypatch.setattr(VideoRequest, "parse", slow)
            first = asyncio.create_task(start_video(one, hushsplat.walk_track(200, 10, 64, 48)))
            while not begun.is_set():
                await asyncio.sleep(0.01)
            status, refused = await start_video(one, ring())  # while the first one is not yet there
            assert (status, refused["error"]) == (400, "a video is being made already; cancel it first.")
            status, made = await first
            assert status == 200
            assert (await video_state(one, "drawing"))["id"] == made["id"]
            await one.send("cancel-video")
            assert (await video_state(one, "cancelled"))["id"] == made["id"]

    run(visit())
    wait_until_empty(viewer)


def test_disconnect_cancels_the_video(viewer: Viewer) -> None:
    async def visit() -> None:
        async with page(viewer.url) as one:
            await start_video(one, hushsplat.walk_track(200, 10, 64, 48))
            await video_state(one, "drawing")

    run(visit())
    wait_until_empty(viewer)


def wait_until_empty(viewer: Viewer) -> None:
    for _ in range(200):
        if viewer.clients == 0 and not list(folder_of(viewer).iterdir()):
            return
        run(asyncio.sleep(0.05))
    pytest.fail(f"{viewer.clients} clients and {list(folder_of(viewer).iterdir())} are left")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"track": 3}, "track is 3, expected an object"),
        ({"track": {}}, "the track: format is missing"),
        ({"fps": 1000}, "fps is 1000, expected 1 to 120"),
        ({"fps": float("nan")}, "expected a finite number"),
        ({"width": 10**6, "height": 10**6}, "more than 4096 a side"),
        ({"divider": 2}, "divider is 2, expected 0 to 1"),
    ],
)
def test_invalid_video_requests_are_refused(viewer: Viewer, changes: dict[str, Any], said: str) -> None:
    async def visit() -> tuple[int, dict[str, Any]]:
        async with page(viewer.url) as one:
            return await start_video(one, ring(), **changes)

    status, answer = run(visit())
    assert status == 400
    assert said in answer["error"]


def test_video_length_is_limited(viewer: Viewer) -> None:
    slow = orbit(np.zeros(3), 3.0, seconds=2.0, fps=1.0)
    times = np.array([0.0, 1e6])

    async def visit() -> str:
        async with page(viewer.url) as one:
            long = Track(slow.width, slow.height, slow.fx, slow.fy, slow.cx, slow.cy, times, slow.world_from_camera)
            return (await start_video(one, long))[1]["error"]

    assert "more than 20000 frames" in run(visit())


def test_screenshot_has_both_sides_and_its_camera(viewer: Viewer, scene: Gaussians) -> None:
    async def visit() -> bytes:
        async with page(viewer.url) as one:
            await one.draw("reference", "exact")
            await one.look(SMALL)
            await one.sharp_frame()
            await one.send("shot", request=5, divider=0.25)
            message, parts = await one.next("shot")
            assert message["request"] == 5
            return parts[0]

    image = Image.open(io.BytesIO(run(visit())))
    track = track_from_json("inside", json.loads(image.text["hushsplat-track"]))
    assert np.array_equal(track.camera(0).world_from_camera, SMALL.world_from_camera)
    assert (track.width, track.height) == image.size == (96, 64)
    seen = np.asarray(image)
    for columns, method in ((slice(0, 24), "reference"), (slice(25, None), "exact")):
        expected = to_bytes(hushsplat.render(scene, SMALL, method).color)
        assert (seen[:, columns] == expected[:, columns]).mean() > 0.99  # without loss; fov in degrees rounds a little


def test_home_camera_is_level_for_any_up(viewer: Viewer) -> None:
    async def visit() -> dict[str, Any]:
        async with page(viewer.url) as one:
            await one.send("home", up=[0, 0, 2])
            return (await one.next("home"))[0]["place"]

    place = run(visit())
    pose = np.array(place["world_from_camera"])
    assert abs(pose[:3, 0] @ [0, 0, 1]) < 1e-9  # level
    assert -pose[:3, 1] @ [0, 0, 1] > 0.5 and place["distance"] > 0


def test_page_that_loads_again_has_its_dropped_scene_before_the_old_connection_has_gone(
    limited_viewer: Viewer, cloud: Gaussians, tmp_path: Path
) -> None:
    save(cloud, tmp_path / "cloud.ply")

    async def visit() -> None:
        async with page(limited_viewer.url) as old:
            assert await old.post("scene", (tmp_path / "cloud.ply").read_bytes(), name="cloud.ply") == (200, {})
            key = (await old.next("scene"))[0]["file"]
            again = f"{limited_viewer.url}{'&' if '?' in limited_viewer.url else '?'}file={key}"
            async with page(again) as new:
                assert (new.scene["name"], new.scene["file"]) == ("cloud.ply", key)
                await old.socket.close()
                async with page(limited_viewer.url) as other:
                    status, answer = await other.post("scene", b"ply", name="second.ply")
                    assert (status, "1 dropped scenes are open" in answer["error"]) == (400, True)
                await new.send("close-file")
                assert (await new.next("scene"))[0]["own"] is True
            async with page(again) as late:
                assert late.scene["own"] is True

    run(visit())


def test_dropped_scenes_are_kept_for_a_while_and_make_room(scene: Gaussians, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SceneEntry.of(
        scene.take(np.arange(200)), "own", engine(), RenderOptions(), [("Home", hushsplat.home_camera(96, 64))]
    )
    other = replace(entry, name="dropped")
    service = RenderService(entry, ViewerOptions(max_files=1))
    try:
        dropped = service.dropped
        service.memory.pin(other, 1000, "dropped")
        key = dropped.add(other)
        assert dropped.join("another") is None and dropped.join(key) is other and len(dropped) == 1
        dropped.leave(key, keep=True)
        with pytest.raises(ViewError, match="1 dropped scenes are open"), dropped.arriving("next.ply"):
            pass  # one page still shows it
        dropped.leave(key, keep=True)
        assert dropped.join(key) is other
        dropped.leave(key, keep=True)
        now = time.monotonic()
        monkeypatch.setattr("hushsplat.viewer.dropped.time.monotonic", lambda: now + KEPT_S + 1)
        assert dropped.join(key) is None and len(dropped) == 0 and service.memory.held == 0
        service.memory.pin(other, 1000, "dropped")
        dropped.leave(dropped.add(other), keep=True)
        with dropped.arriving("next.ply"):  # makes room
            assert len(dropped) == 1 and service.memory.held == 0
        service.memory.pin(other, 1000, "dropped")
        dropped.leave(dropped.add(other), keep=False)
        assert len(dropped) == 0 and service.memory.held == 0
    finally:
        service.close()
