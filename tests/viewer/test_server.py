"""The server over its WebSocket: frames, refinement, turns, limits, and what it refuses."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from dataclasses import replace
from importlib import import_module
from typing import Any

import aiohttp
import numpy as np
import pytest
from client import page, pixels, psnr, run

import hushsplat
from hushsplat.methods import METHODS
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.views import SHOWN
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import to_bytes
from hushsplat.types.settings import declared
from hushsplat.viewer.launch import Viewer, service_of
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.session import Session
from hushsplat.viewer.videos import VideoRequest

SMALL = hushsplat.home_camera(96, 64)
OTHER = hushsplat.walk_track(width=80, height=60).camera(30)


def rendered(scene: Gaussians, camera: Camera, method: str = "reference") -> np.ndarray:
    return to_bytes(hushsplat.render(scene, camera, method).color)


def test_scene_message_describes_the_scene(viewer: Viewer) -> None:
    async def visit() -> dict[str, Any]:
        async with page(viewer.url) as one:
            return one.scene

    scene = run(visit())
    assert (scene["name"], scene["gaussians"], scene["kind"]) == ("room", 10_000, "surfels")
    assert scene["up"] == [0, -1, 0]
    assert [place["name"] for place in scene["places"]] == ["Home", "Walk"]
    assert 2 < scene["places"][0]["distance"] < 8  # within the room, not in the garden behind its window


def test_frames_have_the_canvas_size_and_the_engines_picture(viewer: Viewer, scene: Gaussians) -> None:
    async def visit() -> tuple[dict[str, Any], list[bytes]]:
        async with page(viewer.url) as one:
            await one.draw("reference", "exact")
            await one.look(SMALL, sequence=7)
            return await one.sharp_frame()

    frame, parts = run(visit())
    assert (frame["width"], frame["height"], frame["scale"], frame["sequence"]) == (96, 64, 1, 7)
    assert list(frame["passes_ms"]) == ["reference", "exact", "encode"]
    for part, method in zip(parts, ("reference", "exact"), strict=True):
        assert psnr(pixels(part), rendered(scene, SMALL, method)) > 35


def test_a_scene_with_a_payload_can_be_drawn_by_temporal(scene: Gaussians) -> None:
    payload = np.random.default_rng(0).normal(0, 1, (len(scene), 10)).astype(np.float32)

    async def visit(url: str) -> dict[str, Any]:
        async with page(url) as one:
            assert one.scene["payload"]
            await one.draw("temporal")
            await one.look(SMALL)
            return (await one.sharp_frame())[0]

    with hushsplat.view(replace(scene, payload=payload), port=0) as running:
        frame = run(visit(running.url))
    assert frame["sides"] == [{"method": "temporal", "show": "picture"}]
    assert list(frame["passes_ms"]) == ["sample", "decode", "temporal", "encode"]


def test_a_page_begins_with_hush_and_temporal_without_payload_is_drawn_zero_shot(viewer: Viewer) -> None:
    async def visit() -> tuple[dict[str, Any], dict[str, Any]]:
        async with page(viewer.url) as one:
            await one.draw("temporal")
            await one.look(SMALL)
            return one.hello, (await one.sharp_frame())[0]

    hello, frame = run(visit())
    assert hello["draw"]["sides"] == [{"method": "hush", "show": "picture"}]
    assert frame["sides"] == [{"method": "temporal-zero-shot", "show": "picture"}]
    assert list(frame["passes_ms"]) == ["sample", "decode", "temporal-zero-shot", "encode"]


def test_hello_offers_all_methods_views_and_declared_settings(viewer: Viewer) -> None:
    async def visit() -> dict[str, Any]:
        async with page(viewer.url) as one:
            return one.hello

    hello = run(visit())
    assert {method["name"] for method in hello["methods"]} == set(METHODS)
    assert {method["name"]: method["fallback"] for method in hello["methods"]}["temporal"] == "temporal-zero-shot"
    assert [view["name"] for view in hello["views"]] == list(SHOWN)
    with_slider = [name for name, each in declared(DenoiserSettings).items() if each.slider is not None]
    assert hello["draw"]["config"] == {name: getattr(DenoiserSettings(), name) for name in with_slider}


def test_still_camera_is_refined_128_times_and_then_nothing_is_drawn(viewer: Viewer, scene: Gaussians) -> None:
    async def visit() -> tuple[bytes, bytes, list[dict[str, Any]]]:
        async with page(viewer.url) as one:
            await one.draw("mean")
            await one.look(SMALL)
            _, first = await one.sharp_frame()
            _, last = await one.sharp_frame(at_least=128)
            return first[0], last[0], await one.quiet_for(0.4)

    first, last, more = run(visit())
    assert more == []
    exact = rendered(scene, SMALL, "exact")
    assert psnr(pixels(last), exact) > psnr(pixels(first), exact) + 8


def test_at_most_two_frames_are_unacknowledged(viewer: Viewer) -> None:
    async def visit() -> list[int]:
        async with page(viewer.url) as one:
            await one.look(SMALL)
            numbers = [(await one.next("frame"))[0]["frame"] for _ in range(2)]
            assert await one.quiet_for(0.3) == []
            await one.send("ack", frame=1)
            await one.send("ack", frame=1)  # twice is once
            await one.send("ack", frame=12345)  # nobody sent this one
            numbers.append((await one.next("frame"))[0]["frame"])
            assert await one.quiet_for(0.3) == []
            return numbers

    assert run(visit()) == [1, 2, 3]


def test_moving_frames_have_a_lower_resolution_and_still_ones_the_full(viewer: Viewer) -> None:
    walk = hushsplat.walk_track(width=900, height=600)

    async def visit() -> tuple[list[float], dict[str, Any]]:
        async with page(viewer.url) as one:

            async def move() -> None:
                for step in range(300):
                    await one.look(walk.camera(step))
                    await asyncio.sleep(0.01)

            await one.draw("svgf-tuned", samples=4)
            moving = asyncio.create_task(move())
            scales = []
            while len(scales) < 8:
                frame, _ = await one.next("frame")
                await one.acknowledge(frame)
                scales.append(frame["scale"])
            moving.cancel()
            return scales, (await one.sharp_frame())[0]

    scales, sharp = run(visit())
    assert min(scales) < 1
    assert (sharp["width"], sharp["height"], sharp["scale"]) == (900, 600, 1)


def test_held_camera_counts_as_moving_until_it_is_let_go(viewer: Viewer) -> None:
    async def hold() -> None:
        async with page(viewer.url) as one:
            await one.draw("reference")
            await one.look(SMALL)
            await one.sharp_frame()
            await one.send("hold", held=True)
            await one.look(hushsplat.walk_track().camera(3).resized(96, 64), sequence=1)
            frame, _ = await one.next("frame")
            await one.acknowledge(frame)
            assert frame["moving"] and frame["scale"] < 1
            assert await one.quiet_for(0.6) == []  # nothing sharper while it is held
            await one.send("hold", held=False)
            sharp, _ = await one.sharp_frame()
            assert sharp["scale"] == 1 and sharp["sequence"] == 1

    run(hold())


@pytest.mark.parametrize(("method", "most"), [("hush", 4), ("reference", 1)])
def test_hand_that_holds_still_asks_for_no_more_frames(viewer: Viewer, method: str, most: int) -> None:
    async def hold() -> None:
        async with page(viewer.url) as one:
            await one.draw(method)
            await one.look(SMALL)
            await one.sharp_frame()
            await one.send("hold", held=True)
            await one.look(hushsplat.walk_track().camera(3).resized(96, 64), sequence=1)
            drawn = 0
            while drawn < most:
                frame, _ = await one.next("frame")
                await one.acknowledge(frame)
                drawn += frame["sequence"] == 1
                assert frame["moving"] or frame["sequence"] == 0
            assert await one.quiet_for(0.6) == []

    run(hold())


def test_picture_does_not_get_coarser_when_a_hand_touches_it(viewer: Viewer) -> None:
    async def touch() -> None:
        async with page(viewer.url) as one:
            await one.draw("mean")
            await one.look(SMALL)
            await one.sharp_frame()
            await one.send("hold", held=True)
            while late := await one.quiet_for(0.4):  # those that were under way
                assert not any(frame["moving"] for frame in late) and len(late) <= 2
                for frame in late:
                    await one.acknowledge(frame)
            await one.send("hold", held=False)
            frame, _ = await one.next("frame")
            assert not frame["moving"] and frame["still_frames"] > 1  # it goes on where it was

    run(touch())


def test_pictures_are_not_refined_beside_a_video(viewer: Viewer) -> None:
    async def visit() -> None:
        async with page(viewer.url) as one:
            await one.draw("mean")
            service_of(viewer).videos_running += 1
            try:
                await one.look(SMALL)
                frame, _ = await one.sharp_frame()
                assert frame["still_frames"] == 1
                assert await one.quiet_for(0.8) == []
            finally:
                service_of(viewer).videos_running -= 1
            frame, _ = await one.sharp_frame(at_least=5)

    run(visit())


def test_requests_that_need_too_much_memory_are_refused(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: object) -> None:
        raise MemoryError

    async def visit() -> tuple[int, dict[str, Any], dict[str, Any]]:
        async with page(viewer.url) as one:
            await one.look(SMALL)
            await one.sharp_frame()
            monkeypatch.setattr(VideoRequest, "parse", too_much)
            status, answer = await one.post("video", b"{}")
            monkeypatch.setattr(SceneEntry, "point_at", too_much)
            await one.send("probe", request=1, x=0.5, y=0.5)
            error, _ = await one.next("error")
            await one.look(SMALL, sequence=1, width=80)
            await one.sharp_frame()  # the connection is still there
            return status, answer, error

    status, answer, error = run(visit())
    assert (status, answer["error"]) == (400, "there is not enough memory for this.")
    assert error["message"] == "there is not enough memory for this."


def test_resolution_of_a_huge_canvas_is_limited(viewer: Viewer) -> None:
    async def visit() -> dict[str, Any]:
        async with page(viewer.url) as one:
            await one.draw("reference")
            await one.look(SMALL, width=8000, height=8000)
            return (await one.sharp_frame())[0]

    frame = run(visit())
    assert frame["width"] == frame["height"] == 2024


NOT_A_POSE = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
NAN_POSE = [[1, 0, 0, float("nan")], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
FAR_POSE = [[1, 0, 0, 1e12], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
LOOK = {"type": "look", "world_from_camera": np.eye(4).tolist(), "fov_y_deg": 50, "width": 64, "height": 48}
LOOK["sequence"] = 0
DRAW = {"type": "draw", "sides": [{"method": "raw"}]}
REFUSED = {
    "garbage": ("{not JSON", "not JSON"),
    "endless digits": ('{"type": ' + "9" * 5000 + "}", "not JSON"),
    "deep": ("[" * 30_000, "not JSON"),
    "too long": ('{"type": "' + "x" * 70_000 + '"}', "the limit is 65536"),
    "a list": ("[1]", "expected an object"),
    "no type": ("{}", "type is missing, expected one of look, draw"),
    "held by no flag": ('{"type": "hold", "held": 1}', "held is 1, expected true or false"),
    "unknown type": ('{"type": "open", "path": "/etc/passwd"}', "type is 'open'"),
    "NaN camera": (LOOK | {"world_from_camera": NAN_POSE}, "not a finite number"),
    "scaled camera": (LOOK | {"world_from_camera": NOT_A_POSE}, "without scale or mirroring"),
    "far camera": (LOOK | {"world_from_camera": FAR_POSE}, "farther than 1e+09"),
    "no camera": (LOOK | {"world_from_camera": None}, "expected a 4×4 matrix"),
    "no fov": (LOOK | {"fov_y_deg": 0}, "expected 1 to 170 degrees"),
    "huge canvas": (LOOK | {"width": 10**6, "height": 10**6}, "1000000×1000000 px are more than 8192"),
    "no canvas": (LOOK | {"width": 0}, "expected a whole number of pixels"),
    "half a pixel": (LOOK | {"width": 3.5}, "expected a whole number of pixels"),
    "negative sequence": (LOOK | {"sequence": -1}, "expected a whole number >= 0"),
    "no sides": (DRAW | {"sides": []}, "expected a list of objects"),
    "three sides": (DRAW | {"sides": [{"method": "raw"}] * 3}, "expected one or two"),
    "unknown method": (DRAW | {"sides": [{"method": "magic"}]}, "method is 'magic', expected one of"),
    "unknown view": (DRAW | {"sides": [{"method": "raw", "show": "soul"}]}, "show is 'soul'"),
    "view of raw": (DRAW | {"sides": [{"method": "raw", "show": "gate"}]}, "raw has no view 'gate'"),
    "many samples": (DRAW | {"samples": 1000}, "samples is 1000"),
    "gamma": (DRAW | {"gamma": 0}, "gamma is 0"),
    "unknown setting": (DRAW | {"config": {"far_depth": 1}}, "expected an object of accumulated_cap_frames"),
    "wrong setting": (DRAW | {"config": {"stabilise_weight": 7}}, "must be a number from 0 to 1"),
    "adapt": (DRAW | {"adapt": 1}, "expected true or false"),
    "probe outside": ({"type": "probe", "request": 1, "x": 2, "y": 0}, "x is 2, expected 0 to 1"),
    "no direction": ({"type": "home", "up": [0, 0, 0]}, "expected a direction"),
    "up of two": ({"type": "home", "up": [0, 1]}, "expected three numbers"),
}


def test_invalid_messages_are_refused_and_the_connection_stays(viewer: Viewer) -> None:
    async def visit() -> None:
        async with page(viewer.url) as one:
            for name, (sent, expected) in REFUSED.items():
                await one.socket.send_str(sent if isinstance(sent, str) else json.dumps(sent))
                message, _ = await one.next("error")
                assert expected in message["message"], name
                assert "\n" not in message["message"], name
            await one.send("probe", request=1, x=0.5, y=0.5)
            assert "send a 'look' first" in (await one.next("error"))[0]["message"]
            await one.send("shot", request=1, divider=0.5)
            assert "there is no picture yet" in (await one.next("error"))[0]["message"]
            await one.socket.send_bytes(b"\x00\x01")
            assert "takes JSON" in (await one.next("error"))[0]["message"]
            await one.look(SMALL)
            await one.sharp_frame()

    run(visit())


def test_rate_limit_refuses_messages_and_the_connection_stays(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    server = import_module("hushsplat.viewer.server")
    monkeypatch.setattr(server, "MESSAGES_PER_S", 10.0)  # a busy machine does not come up to the real rate
    monkeypatch.setattr(server, "MESSAGES_AT_ONCE", 20.0)

    async def visit() -> None:
        async with page(viewer.url) as one:
            for _ in range(200):
                await one.send("ack", frame=0)
            assert "more than 10 messages a second" in (await one.next("error"))[0]["message"]
            await asyncio.sleep(0.5)
            await one.look(SMALL)
            await one.sharp_frame()

    run(visit())


def test_two_clients_have_their_own_camera_and_state(viewer: Viewer, scene: Gaussians) -> None:
    async def visit() -> None:
        async with page(viewer.url) as one, page(viewer.url) as two:
            assert one.session != two.session
            await one.draw("mean")
            await two.draw("mean")
            await one.look(SMALL)
            await two.look(OTHER)
            for client, camera in ((one, SMALL), (two, OTHER)):
                _, parts = await client.sharp_frame(at_least=100)
                assert psnr(pixels(parts[0]), rendered(scene, camera, "exact")) > 24

    run(visit())


def test_unacknowledged_client_does_not_slow_others(viewer: Viewer) -> None:
    async def visit() -> None:
        async with page(viewer.url) as slow, page(viewer.url) as fast:
            await slow.draw("mean")
            await fast.draw("mean")
            await slow.look(SMALL)
            await fast.look(OTHER)
            await fast.sharp_frame(at_least=30)  # while nobody reads what `slow` is sent

    run(visit())


def test_new_camera_cancels_a_slow_exact_picture(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("hushsplat.viewer.frame_renderer"), "BAND_PX", 1)  # slow on any machine

    async def visit() -> list[int]:
        async with page(viewer.url) as one:
            await one.draw("exact")
            await one.look(hushsplat.home_camera(1600, 1200), sequence=1)
            await asyncio.sleep(0.05)
            await one.look(SMALL, sequence=2)
            frame, _ = await one.next("frame")
            return [frame["sequence"]]

    assert run(visit()) == [2]


def test_disconnect_frees_the_session(viewer: Viewer) -> None:
    async def visit() -> None:
        async with page(viewer.url) as one:
            await one.look(SMALL)
            await one.sharp_frame()

    gone = weakref.WeakSet[Session]()
    made = Session.__init__

    def remember(self: Session, *arguments: Any) -> None:
        made(self, *arguments)
        gone.add(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "__init__", remember)
        run(visit())
    for _ in range(100):
        gc.collect()
        if viewer.clients == 0 and not gone:
            return
        run(asyncio.sleep(0.05))
    pytest.fail(f"{viewer.clients} clients and {len(gone)} sessions are left")


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Origin": "http://evil.example"}, "its own page only"),
        ({"Origin": "null"}, "its own page only"),
        ({"Host": "evil.example:80"}, "localhost only"),
    ],
)
@pytest.mark.parametrize("path", ["", "ws", "video/x"])
def test_foreign_origin_and_host_are_refused(viewer: Viewer, path: str, headers: dict[str, str], said: str) -> None:
    status, text = run(fetch(viewer.url + path, headers))
    assert status == 403
    assert said in text


def test_own_origin_is_accepted(viewer: Viewer) -> None:
    status, text = run(fetch(viewer.url, {"Origin": viewer.url.rstrip("/")}))
    assert status == 200 and "hushsplat" in text


def test_token_is_required_beyond_loopback(scene: Gaussians) -> None:
    with hushsplat.view(scene, host="0.0.0.0", port=0) as running:
        link = f"http://127.0.0.1:{running.port}/?{running.url.partition('?')[2]}"
        assert "token=" in link
        assert run(fetch(link))[0] == 200
        for wrong in (link.partition("?")[0], link + "x", link.partition("?")[0] + "ws"):
            status, text = run(fetch(wrong))
            assert (status, "token" in text) == (403, True)

        async def visit() -> str:
            async with page(link) as one:
                return one.scene["name"]

        assert run(visit()) == "scene"
    assert running.clients == 0


async def fetch(url: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    async with aiohttp.ClientSession() as web, web.get(url, headers=headers) as answer:
        return answer.status, await answer.text()


def test_path_traversal_is_refused(viewer: Viewer) -> None:
    for path in ("static/../server.py", "static/%2e%2e/server.py", "static//etc/passwd", "video/..%2f..%2fx"):
        status, text = run(fetch(viewer.url + path))
        assert status in (403, 404), path
        assert "import" not in text


def test_max_clients_refuses_another_client(scene: Gaussians) -> None:
    from hushsplat.viewer.service import ViewerOptions

    async def visit(url: str) -> None:
        async with page(url), aiohttp.ClientSession() as web, web.ws_connect(url + "ws") as socket:
            message = json.loads((await socket.receive()).data)
            assert (message["type"], "too many pages" in message["message"]) == ("full", True)
            assert (await socket.receive()).type == aiohttp.WSMsgType.CLOSE

    with hushsplat.view(scene, port=0, options=ViewerOptions(max_clients=1)) as running:
        run(visit(running.url))


def test_view_returns_a_running_viewer_with_its_url(scene: Gaussians) -> None:
    with hushsplat.view(scene, port=0) as running:
        assert repr(running) == f"<hushsplat viewer at {running.url}>"
        assert running.url in running._repr_html_()
        assert run(fetch(running.url))[0] == 200
        with pytest.raises(HushsplatError, match=f"port {running.port}: .*another --host or --port"):
            hushsplat.view(scene, port=running.port)
    with pytest.raises(aiohttp.ClientError):
        run(fetch(running.url))
    with pytest.raises(HushsplatError, match="port 70000 does not exist"):
        hushsplat.view(scene, port=70_000)
    with pytest.raises(HushsplatError, match="no such file"):
        hushsplat.view("nowhere.ply")


def test_view_takes_the_name_of_a_scene() -> None:
    async def visit(url: str) -> dict[str, Any]:
        async with page(url) as one:
            return one.scene

    with hushsplat.view("synth:2k", port=0) as running:
        scene = run(visit(running.url))
    assert (scene["name"], scene["gaussians"]) == ("synth:2k", 2_000)


def test_viewer_closes_before_it_has_served_anything(scene: Gaussians) -> None:
    running = hushsplat.view(scene, port=0)
    assert running.clients == 0
    running.close()
    running.close()  # twice is once
    running.wait()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "magic"}, "method must be one of .*, got 'magic'"),
        ({"max_clients": 0}, "max_clients must be at least 1, got 0"),
        ({"max_upload_bytes": -1}, "max_upload_bytes must be at least 0, got -1"),
    ],
)
def test_viewer_options_are_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HushsplatError, match=said):
        hushsplat.ViewerOptions(**options)


def test_scene_gets_levels_of_detail_while_its_client_rests(scene: Gaussians, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("hushsplat.viewer.refine"), "LEVELS_GAUSSIANS", 1000)

    async def watch(url: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        async with page(url) as one:
            await one.draw("reference")
            await one.look(SMALL)
            await one.sharp_frame()
            refined, _ = await one.next("refined")
            after, _ = await one.sharp_frame()
            await one.send("hold", held=True)
            await one.look(OTHER.resized(96, 64))
            moving, _ = await one.next("frame")
            return refined, after, moving

    with hushsplat.view(scene, cameras=[SMALL], port=0) as viewer:
        refined, after, moving = run(watch(viewer.url))
        levels = service_of(viewer).entry.scene.levels
    assert refined["levels"] and refined["gaussians"] == len(scene)
    assert levels is not None and len(levels.gaussians) > len(scene)
    assert not after["moving"] and moving["moving"] and moving["scale"] == 0.64
