"""The frames of one client: history kept or dropped, noise, settings, and turns of other clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from client import run

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.io.weights import default_weights
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import Noise, RenderOptions
from hushsplat.viewer.frame_renderer import FrameRenderer, RenderedFrame
from hushsplat.viewer.protocol import Draw, Look, Side
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import RenderService, ViewerOptions
from hushsplat.viewer.session import Session

LARGE, SMALL = hushsplat.home_camera(96, 64), hushsplat.home_camera(72, 48)
HUSH, MEAN, RAW = Side("temporal-zero-shot"), Side("mean"), Side("raw")


@pytest.fixture(scope="module")
def entry(scene: Gaussians) -> SceneEntry:
    return SceneEntry.of(scene, "room", engine(), RenderOptions())


@pytest.fixture
def renderer(entry: SceneEntry) -> FrameRenderer:
    return FrameRenderer(entry, default_weights("temporal"), RenderOptions())


def frame(renderer: FrameRenderer, draw: Draw, number: int = 0, camera: Camera = LARGE) -> RenderedFrame:
    *turns, rendered = renderer.render(camera, draw, number)
    assert rendered is not None and not any(turns)
    return rendered


def frames(renderer: FrameRenderer, draw: Draw, count: int) -> RenderedFrame:
    return [frame(renderer, draw, number) for number in range(count)][-1]


def states(renderer: FrameRenderer) -> list[Any]:
    return renderer._stream.states


def test_resize_keeps_a_short_history(renderer: FrameRenderer) -> None:
    frames(renderer, Draw((HUSH,)), 12)
    assert states(renderer)[0].accumulated_frames.max() == 12
    frame(renderer, Draw((HUSH,)), 12, SMALL)
    (state,) = states(renderer)
    assert state.values.shape[:2] == (48, 72)
    assert state.accumulated_frames.max() == 4  # three that count after the resize, and the new one
    assert np.median(state.accumulated_frames) > 3


def test_resize_restarts_baselines(renderer: FrameRenderer) -> None:
    frames(renderer, Draw((MEAN,)), 5)
    resized = frame(renderer, Draw((MEAN, RAW)), 5, SMALL)
    assert np.array_equal(*resized.pictures)


def test_new_scene_starts_without_history(entry: SceneEntry) -> None:
    bright = replace(entry.gaussians, sh=entry.gaussians.sh + 0.5)
    other = SceneEntry.of(bright, "bright", entry.engine, RenderOptions())
    service = RenderService(entry, ViewerOptions())
    try:
        session = Session(service, Unconnected())
        session.draw = Draw((Side("temporal-zero-shot"),))
        frames(session._renderer, session.draw, 5)
        session.show_file(other)
        found = frame(session._renderer, session.draw, 5)
        expected = frame(service.new_renderer(other), session.draw, 5)
        assert np.array_equal(found.pictures[0], expected.pictures[0])
        assert states(session._renderer)[0].accumulated_frames.max() == 1
    finally:
        service.close()


class Unconnected:
    async def send_json(self, message: dict[str, Any]) -> None:
        raise AssertionError(message)

    async def send_bytes(self, message: bytes) -> None:
        raise AssertionError(len(message))


def test_methods_that_stay_keep_their_states(renderer: FrameRenderer) -> None:
    frames(renderer, Draw((HUSH,)), 6)
    longer = DenoiserSettings(accumulated_cap_frames=100.0)
    frame(renderer, Draw((MEAN, HUSH), samples=2, settings=longer, gamma=3.0), 6)
    mean, temporal = states(renderer)
    assert (mean.frames, temporal.accumulated_frames.max()) == (1, 7)
    frame(renderer, Draw((RAW,)), 7)
    frame(renderer, Draw((RAW, HUSH)), 8)
    assert states(renderer)[1].accumulated_frames.max() == 1  # it was gone in between


def test_both_sides_have_the_same_noise(renderer: FrameRenderer, scene: Gaussians) -> None:
    rendered = frame(renderer, Draw((RAW, MEAN), samples=3), 7)
    assert np.array_equal(*rendered.pictures)
    assert np.array_equal(rendered.pictures[0], hushsplat.render(scene, LARGE, "raw", noise=Noise(3, frame=7)).color)


def test_one_method_on_both_sides_is_denoised_once(renderer: FrameRenderer) -> None:
    rendered = frames(renderer, Draw((HUSH, Side("temporal-zero-shot", "gate"))), 3)
    assert list(rendered.passes_ms) == ["sample", "decode", "temporal-zero-shot"]
    (state,) = states(renderer)
    assert state.accumulated_frames.max() == 3
    assert rendered.scales[0] is None
    assert rendered.scales[1] is not None and rendered.scales[1].title == "share of denoised"


def test_hush_without_payload_is_drawn_zero_shot(renderer: FrameRenderer, entry: SceneEntry) -> None:
    asked = frames(renderer, Draw((Side("temporal"),)), 3)
    assert asked.sides == (HUSH,)
    other = FrameRenderer(entry, default_weights("temporal"), RenderOptions())
    assert np.array_equal(asked.pictures[0], frames(other, Draw((HUSH,)), 3).pictures[0])


@pytest.mark.parametrize(
    "draw", [Draw((HUSH,), settings=DenoiserSettings(accumulated_cap_frames=2.0)), Draw((HUSH,), gamma=50.0)]
)
def test_settings_and_gamma_change_the_picture(renderer: FrameRenderer, entry: SceneEntry, draw: Draw) -> None:
    default = FrameRenderer(entry, default_weights("temporal"), RenderOptions())
    changed = np.abs(frames(renderer, draw, 6).pictures[0] - frames(default, Draw((HUSH,)), 6).pictures[0])
    assert changed.max() > 0.01


def test_exact_takes_turns_between_bands(renderer: FrameRenderer, scene: Gaussians) -> None:
    tall = hushsplat.home_camera(120, 200)
    *turns, rendered = renderer.render(tall, Draw((Side("exact"),)), 0)
    assert turns == [None] * 4
    assert rendered is not None
    whole = hushsplat.render(scene, tall, "exact").color
    assert (np.abs(rendered.pictures[0] - whole).max(axis=2) > 1e-3).mean() < 1e-3


def test_denoised_frames_take_no_turns(renderer: FrameRenderer) -> None:
    assert len(list(renderer.render(LARGE, Draw((HUSH, MEAN)), 0))) == 1


@pytest.mark.parametrize("moving", [False, True])
def test_new_camera_cancels_a_still_frame_and_no_moving_one(entry: SceneEntry, moving: bool) -> None:
    service = RenderService(entry, ViewerOptions())
    try:
        session = Session(service, Unconnected())
        session._look = Look(LARGE, 0)
        session._held = moving
        whole = session._renderer.render

        def render(*arguments: Any, **more: Any) -> Iterator[RenderedFrame | None]:
            session._restart()  # as a camera does that comes while the frame is drawn
            *_, drawn = whole(*arguments, **more)  # in one piece: only the engine can end it early
            yield drawn

        session._renderer.render = render  # type: ignore[method-assign]
        drawn = run(session._next_frame())
        assert (drawn is not None) == moving
        session._renderer.render = whole  # type: ignore[method-assign]
        assert run(session._next_frame()) is not None
    finally:
        service.close()


def test_moving_frames_are_drawn_in_levels_and_still_ones_are_not(entry: SceneEntry) -> None:
    levelled = entry.with_levels(RenderOptions())
    assert len(levelled.gaussians) == len(entry.gaussians)
    renderer = FrameRenderer(levelled, default_weights("temporal"), RenderOptions())
    draw = Draw((Side("reference"),))
    (still,) = (one for one in renderer.render(LARGE, draw, 0) if one is not None)
    expected = frame(FrameRenderer(entry, default_weights("temporal"), RenderOptions()), draw)
    assert np.abs(still.pictures[0] - expected.pictures[0]).max() < 1e-5
    assert still.depth == pytest.approx(expected.depth, rel=1e-4) and 1 < still.depth < 10
    (moving,) = (one for one in renderer.render(LARGE, draw, 1, spacing_px=1e6) if one is not None)
    assert np.abs(moving.pictures[0] - expected.pictures[0]).mean() > 1e-3
    shown = renderer._stream.scene.shown
    *_, again = renderer.render(moved(LARGE, 0.001 * entry.radius), draw, 2, spacing_px=1e6)
    assert again is not None and renderer._stream.scene.shown is shown  # the same levels for a small step
    *_, far = renderer.render(moved(LARGE, 0.1 * entry.radius), draw, 3, spacing_px=1e6)
    assert far is not None and renderer._stream.scene.shown is not shown


def moved(camera: Camera, by: float) -> Camera:
    pose = camera.world_from_camera.copy()
    pose[0, 3] += by
    return replace(camera, world_from_camera=pose)
