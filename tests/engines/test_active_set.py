"""The active set against its twin, and what must hold over time: who matters joins, stays, and leaves."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import twin_active_set as twin
from random_scenes import crowd, odd_camera

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.active_set import ActiveState
from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.evaluation.motions import named_track
from hushsplat.scenes import scene_argument
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import QUALITY, ActiveSetSettings
from hushsplat.spec.state import ACTIVE_SET
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0, sh_colors
from hushsplat.types.image import Image
from hushsplat.types.options import Noise, RenderOptions
from hushsplat.types.rotations import quaternion_from_matrix

KINDS = pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])
BACKGROUND = (0.2, 0.5, 0.9)
WHOLE = ActiveSetSettings(prune=1e-6, stop=1e-4, ellipse_error=0.0)  # leaves out nothing that `reference` shows
NEVER = 1_000_000  # frames: searched once, then only where nothing is known
MEAN_ERROR, ERROR, ODD_PIXELS = 1e-4, 5e-4, 2e-3  # alpha has a relative error of 1e-4; see test_engine_blended.py


ENGINE = CpuEngine()
uploaded = lru_cache(maxsize=4)(ENGINE.upload)


def draw_active_set(
    gaussians: Gaussians, camera: Camera, previous=None, *, seed=0, settings=None, options=None
) -> tuple[Image, _engine.ActiveSet]:
    """One frame of a scene, and the native set."""
    configured = ConfiguredDenoiser("active-set", ACTIVE_SET, settings or ActiveSetSettings())
    state = None if previous is None else ActiveState("active-set", camera, previous)
    scene, noise = uploaded(gaussians), Noise(seed=seed)
    image, after = ENGINE.draw_active_set(configured, scene, camera, noise, state, options or RenderOptions())
    return image, after.native


def reference(gaussians: Gaussians, camera: Camera, options: RenderOptions | None = None) -> Image:
    return ENGINE.render(ENGINE.upload(gaussians), camera, "reference", options or RenderOptions())


def scene_and_camera(
    columns: int, seed: int = 0, coefficients: int = 4, count: int = 260, **size
) -> tuple[Gaussians, Camera]:
    rng = np.random.default_rng([columns, seed])
    camera = odd_camera(rng, **size)
    return crowd(rng, camera, columns, count, coefficients), camera


def members(gaussians: Gaussians, state) -> np.ndarray:
    found = np.zeros(len(gaussians), dtype=bool)
    state.is_member(ENGINE.upload(gaussians).native, found)
    return found


def moved(camera: Camera, right: float = 0.0, forward: float = 0.0, turn_deg: float = 0.0) -> Camera:
    pose, angle = camera.world_from_camera.copy(), np.radians(turn_deg)
    pose[:3, 3] += pose[:3, :3] @ (right, 0, forward)
    yaw = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    pose[:3, :3] = pose[:3, :3] @ yaw
    return replace(camera, world_from_camera=pose)


def assert_same_picture(found, expected, mean=MEAN_ERROR, error=ERROR, odd=ODD_PIXELS, depth=2e-3):
    for name in ("color", "alpha"):
        difference = np.abs(getattr(found, name) - getattr(expected, name))
        assert difference.mean() < mean, name
        assert (difference > error).mean() < odd, name
    hit = expected.alpha > 0.1
    difference = np.abs(found.depth - expected.depth)[hit] / expected.depth[hit]
    assert (difference > depth).mean() < odd


def assert_pruned_picture(found, expected):
    """What lies behind the light of the last frame may be missing: each Gaussian by up to 1/255."""
    assert_same_picture(found, expected, mean=6e-4, error=2e-2, odd=5e-3, depth=3e-2)


@KINDS
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("discovery", ["everything", "tiles"])
def test_a_whole_first_frame_is_the_reference(columns, degree, discovery):
    gaussians, camera = scene_and_camera(columns, coefficients=(degree + 1) ** 2)
    options = RenderOptions(background=BACKGROUND)
    found, _ = draw_active_set(gaussians, camera, settings=replace(WHOLE, discovery=discovery), options=options)
    assert_same_picture(found, twin.blend(gaussians, camera, np.ones(len(gaussians), bool), BACKGROUND))


@KINDS
@pytest.mark.parametrize("instruction_set", _engine.instruction_sets())
def test_members_are_blended_as_the_twin_does(columns, instruction_set):
    """By the stream some members are missing: what is shown is the blend of those that are there."""
    in_use = _engine.instruction_set()
    _engine.choose_instruction_set(instruction_set)
    try:
        gaussians, camera = scene_and_camera(columns, seed=1)
        settings = replace(WHOLE, discovery="stream", first_samples=1)
        found, state = draw_active_set(gaussians, camera, settings=settings)
    finally:
        _engine.choose_instruction_set(in_use)
    there = members(gaussians, state)
    assert 20 < there.sum() < 0.8 * len(gaussians)
    assert_same_picture(found, twin.blend(gaussians, camera, there))


@KINDS
@pytest.mark.parametrize("near", [0.05, 2.0])
def test_the_near_plane_cuts_as_in_the_reference(columns, near):
    gaussians, camera = scene_and_camera(columns, seed=2)
    found, _ = draw_active_set(gaussians, camera, settings=WHOLE, options=RenderOptions(near=near))
    assert_same_picture(found, twin.blend(gaussians, camera, np.ones(len(gaussians), bool), near=near))


@KINDS
def test_one_ellipse_is_off_by_no_more_than_allowed(columns):
    gaussians, camera = scene_and_camera(columns, seed=3)
    for index in range(0, len(gaussians), 2):
        alone = gaussians.take(np.array([index]))
        exact, _ = draw_active_set(alone, camera, settings=WHOLE)
        for allowed in (1 / 16, 1 / 64):
            found, _ = draw_active_set(alone, camera, settings=replace(WHOLE, ellipse_error=allowed))
            off = np.abs(found.alpha - exact.alpha)
            assert np.where(np.minimum(found.alpha, exact.alpha) == 0, 0, off).max() < 1.1 * allowed
            assert off.max() < 1.1 * allowed + 1 / 255 + 1e-4  # the footprint ends at 1/255


@KINDS
@pytest.mark.parametrize("discovery", list(("everything", "tiles", "stream")))
def test_who_matters_stays_on_a_still_camera(columns, discovery):
    """Nobody is looked for after the first frame, so that whoever leaves by mistake stays away."""
    gaussians, camera = scene_and_camera(columns, seed=4, width=130, height=70)
    settings = ActiveSetSettings(prune=1 / 64, stop=1e-3, ellipse_error=0.0, discovery=discovery, period=NEVER)
    state, before = None, np.ones(len(gaussians), dtype=bool)
    for frame in range(5):
        _, state = draw_active_set(gaussians, camera, state, settings=settings)
        there = members(gaussians, state)
        weights = twin.cell_weights(gaussians, camera, there)
        full = twin.cell_weights(gaussians, camera, before if frame else there)
        must = (full.max(axis=(1, 2)) >= settings.prune) & (before if frame else there)
        assert there[must].all()
        assert weights.max(axis=(1, 2))[there].min() > 0
        before = there
    assert 20 < there.sum() < len(gaussians)


@KINDS
def test_who_does_not_matter_leaves(columns):
    gaussians, camera = scene_and_camera(columns, seed=5, count=4000)
    wall = Gaussians(
        means=(camera.position + 0.3 * camera.world_from_camera[:3, 2]).astype(np.float32)[None],
        scales=np.full((1, columns), 3.0, dtype=np.float32) if columns == 2 else np.float32([[3.0, 3.0, 0.001]]),
        rotations=_facing(camera),
        opacities=np.ones(1, dtype=np.float32),
        sh=np.zeros((1, gaussians.sh.shape[1], 3), dtype=np.float32),
    )
    both = Gaussians(*(np.concatenate([getattr(s, n) for s in (wall, gaussians)]) for n in _FIELDS))
    state = None
    for _ in range(3):
        _, state = draw_active_set(both, camera, state, settings=ActiveSetSettings(period=1))
    depth = (gaussians.means - camera.position) @ camera.world_from_camera[:3, 2]
    hidden = np.concatenate([[False], depth > 0.5])
    there = members(both, state)
    assert there[0]
    # Each cell notices after every fourth member that its light is used up: up to three behind the wall may stay.
    assert hidden.sum() > 2000 and there[hidden].mean() < 0.35


_FIELDS = ("means", "scales", "rotations", "opacities", "sh")


def _facing(camera: Camera) -> np.ndarray:
    return quaternion_from_matrix(camera.world_from_camera[:3, :3])[None].astype(np.float32)


@KINDS
@pytest.mark.parametrize(("discovery", "period"), [("stream", 1), ("stream", 3), ("tiles", 4), ("everything", 1)])
def test_a_still_camera_comes_to_the_reference(columns, discovery, period):
    gaussians, camera = scene_and_camera(columns, seed=6, width=140, height=70)
    expected = reference(gaussians, camera)
    settings = replace(WHOLE, discovery=discovery, period=period, first_samples=1)
    state, errors = None, []
    for seed in range(60):
        picture, state = draw_active_set(gaussians, camera, state, seed=seed, settings=settings)
        errors.append(np.abs(picture.color - expected.color).mean())
    assert errors[-1] < 1e-4  # relative error of alpha
    if discovery == "stream":
        assert errors[0] > 5 * errors[-1]


@KINDS
def test_who_is_often_seen_is_admitted(columns):
    """Every Gaussian that weighs something over a few pixels is a member after a few frames of the stream."""
    gaussians, camera = scene_and_camera(columns, seed=7)
    state = None
    for seed in range(20):
        settings = replace(WHOLE, discovery="stream", period=1)
        _, state = draw_active_set(gaussians, camera, state, seed=seed, settings=settings)
    weights = twin.cell_weights(gaussians, camera, np.ones(len(gaussians), dtype=bool))
    seen = (weights > 0.15).sum(axis=(1, 2)) >= 2
    assert seen.sum() >= 10
    assert members(gaussians, state)[seen].all()


@KINDS
@pytest.mark.parametrize("discovery", list(("everything", "tiles", "stream")))
def test_the_same_bits_with_any_number_of_threads(columns, discovery):
    gaussians, camera = scene_and_camera(columns, seed=8, width=210, height=150)
    settings = replace(QUALITY["balanced"], discovery=discovery, period=2)

    def stream(threads: int):
        state, pictures = None, []
        again = gaussians.take(np.arange(len(gaussians)))
        for frame in range(4):
            view = moved(camera, right=0.02 * frame, turn_deg=0.5 * frame)
            picture, state = draw_active_set(
                again, view, state, seed=frame, settings=settings, options=RenderOptions(threads=threads)
            )
            pictures.append((picture, members(again, state), (state.members, state.entries, state.pairs)))
        return pictures

    alone = stream(1)
    for threads in (0, 2, 5):
        for (one, who, counts), (other, others, other_counts) in zip(alone, stream(threads), strict=True):
            for name in ("color", "alpha", "depth"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            np.testing.assert_array_equal(who, others)
            assert counts == other_counts


@KINDS
def test_a_state_is_not_changed_by_the_frame_after_it(columns):
    gaussians, camera = scene_and_camera(columns, seed=9)
    _, state = draw_active_set(gaussians, camera, settings=ActiveSetSettings(discovery="stream"))
    before = members(gaussians, state)
    first, _ = draw_active_set(gaussians, moved(camera, right=0.1), state)
    second, _ = draw_active_set(gaussians, moved(camera, right=0.1), state)
    np.testing.assert_array_equal(first.color, second.color)
    np.testing.assert_array_equal(before, members(gaussians, state))


@KINDS
@pytest.mark.parametrize("discovery", ["everything", "tiles"])
@pytest.mark.parametrize(
    "change",
    [
        {"turn_deg": 2.0},
        {"turn_deg": 15.0},
        {"turn_deg": 120.0},
        {"right": 0.05},
        {"right": 1.0},
        {"forward": 0.1},
        {"forward": -2.0},
    ],
    ids=str,
)
def test_a_moved_camera_sees_what_the_reference_does(columns, discovery, change):
    """Turns, steps and cuts: what was hidden and is not any more must be there at once."""
    gaussians, camera = scene_and_camera(columns, seed=10, width=160, height=100)
    settings, state = replace(WHOLE, discovery=discovery, period=1), None
    for _ in range(2):
        _, state = draw_active_set(gaussians, camera, state, settings=settings)
    view = moved(camera, **change)
    found, _ = draw_active_set(gaussians, view, state, settings=settings)
    assert_pruned_picture(found, ENGINE.render(ENGINE.upload(gaussians), view, "reference", RenderOptions()))


@KINDS
@pytest.mark.parametrize("zoom", [0.5, 1.03, 4.0])
def test_zoom_and_resize(columns, zoom):
    gaussians, camera = scene_and_camera(columns, seed=11, width=120, height=90)
    settings = replace(WHOLE, period=1)
    _, state = draw_active_set(gaussians, camera, settings=settings)
    zoomed = replace(camera, fx=camera.fx * zoom, fy=camera.fy * zoom)
    found, state = draw_active_set(gaussians, zoomed, state, settings=settings)
    assert_pruned_picture(found, ENGINE.render(ENGINE.upload(gaussians), zoomed, "reference", RenderOptions()))
    small = zoomed.resized(67, 41)
    found, state = draw_active_set(gaussians, small, state, settings=settings)
    assert_pruned_picture(found, ENGINE.render(ENGINE.upload(gaussians), small, "reference", RenderOptions()))


@pytest.mark.parametrize("discovery", list(("everything", "tiles", "stream")))
@pytest.mark.parametrize("size", [(1, 1), (3, 33), (64, 5), (65, 97)])
def test_small_pictures_and_nothing_to_see(discovery, size):
    gaussians, camera = scene_and_camera(3, seed=12, width=size[0], height=size[1])
    settings, options = replace(WHOLE, discovery=discovery), RenderOptions(background=BACKGROUND)
    state = None
    for scene in (gaussians.take(np.arange(0)), gaussians):
        for view in (camera, moved(camera, turn_deg=180), replace(camera, world_from_camera=_far_away())):
            picture, state = draw_active_set(scene, view, state, settings=settings, options=options)
            assert np.isfinite(picture.color).all() and np.isfinite(picture.depth).all()
    assert state.members == 0
    np.testing.assert_array_equal(picture.color, np.broadcast_to(np.float32(BACKGROUND), picture.color.shape))
    assert (picture.alpha == 0).all() and (picture.depth == 0).all()


def _far_away() -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = (0, 0, 1e5)
    return pose


@KINDS
def test_a_state_of_another_scene_starts_anew(columns):
    gaussians, camera = scene_and_camera(columns, seed=13)
    _, other = draw_active_set(gaussians.take(np.arange(100)), camera, settings=WHOLE)
    found, state = draw_active_set(gaussians, camera, other, settings=WHOLE)
    assert state.frame == 1
    assert_same_picture(found, reference(gaussians, camera))


@KINDS
def test_thin_and_long_ones_far_away(columns):
    """Thinner than a pixel and many pixels long, in every direction: the low-pass decides beside the axis only."""
    rng, count = np.random.default_rng(columns), 60
    camera = Camera(150, 110, 300.0, 300.0, 75.0, 55.0, np.eye(4))
    turns, tilt = rng.uniform(0, np.pi, count), 0.05 * rng.normal(size=(2, count))
    arrays = (
        rng.uniform((-2, -1.5, 8), (2, 1.5, 10), (count, 3)),
        np.tile([[0.3, 0.003, 0.003]], (count, 1))[:, :columns],
        np.where(  # half of them show their backs
            rng.random((count, 1)) < 0.5,
            np.stack([np.cos(turns), *tilt, np.sin(turns)], axis=1),
            np.stack([tilt[0], np.cos(turns), np.sin(turns), tilt[1]], axis=1),
        ),
        rng.uniform(0.5, 1, count),
        rng.normal(size=(count, 1, 3)),
    )
    arrays[2][:] /= np.linalg.norm(arrays[2], axis=1, keepdims=True)
    gaussians = Gaussians(*(array.astype(np.float32) for array in arrays))
    for allowed in (0.0, 1 / 64):
        found, state = draw_active_set(gaussians, camera, settings=replace(WHOLE, ellipse_error=allowed))
        assert_same_picture(
            found,
            reference(gaussians, camera),
            mean=5e-4,
            error=2 / 64,
            depth=1e-2,
        )
    assert state.rays < count / 2


def test_equal_depths_keep_the_order_of_the_scene():
    """Half-transparent surfels side by side in one plane, which the engine keeps in another order than the file."""
    rng, count = np.random.default_rng(0), 400
    camera = Camera(40, 36, 40.0, 40.0, 20.0, 18.0, np.eye(4))
    arrays = (
        np.stack([rng.uniform(-1, 1, count), rng.uniform(-1, 1, count), np.full(count, 2.0)], axis=1),
        rng.uniform(0.1, 0.4, (count, 2)),
        np.tile([1.0, 0, 0, 0], (count, 1)),
        rng.uniform(0.1, 0.9, count),
        rng.normal(size=(count, 1, 3)),
    )
    gaussians = Gaussians(*(array.astype(np.float32) for array in arrays))
    found, _ = draw_active_set(gaussians, camera, settings=WHOLE)
    np.testing.assert_allclose(found.color, reference(gaussians, camera).color, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prune": 0.0}, "prune must be a number from"),
        ({"stop": 1.0}, "stop must be a number from"),
        ({"reach_px": -1.0}, "reach_px must be a number from 0 to 64"),
        ({"ellipse_error": 2.0}, "ellipse_error must be a number from 0 to 1"),
        ({"first_samples": 9}, "first_samples must be a whole number from 1 to 4"),
        ({"parallax_px": 0.0}, "parallax_px must be a number from"),
        ({"period": 0}, "period must be a whole number from 1"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(DenoiseError, match=message):
        replace(ActiveSetSettings(), **change)


def test_state_is_small():
    gaussians, camera = scene_and_camera(3, seed=15, width=640, height=320)
    _, state = draw_active_set(gaussians, camera)
    assert state.bytes <= 24 * camera.width * camera.height + 2 * len(gaussians)


PIXEL = RenderOptions(order="pixel")


@KINDS
@pytest.mark.parametrize("discovery", ["everything", "tiles"])
def test_a_whole_first_frame_in_the_order_of_each_pixel_is_exact(columns, discovery):
    gaussians, camera = scene_and_camera(columns, seed=20)
    options = replace(PIXEL, background=BACKGROUND, near=0.5)
    found, _ = draw_active_set(gaussians, camera, settings=replace(WHOLE, discovery=discovery), options=options)
    everybody = np.ones(len(gaussians), bool)
    assert_same_picture(found, twin.blend(gaussians, camera, everybody, BACKGROUND, 0.5, "pixel"))
    by_center = twin.blend(gaussians, camera, everybody, BACKGROUND, 0.5)
    assert np.abs(found.color - by_center.color).mean() > 10 * MEAN_ERROR


@KINDS
@pytest.mark.parametrize("instruction_set", _engine.instruction_sets())
def test_who_matters_in_a_pixel_stays(columns, instruction_set):
    """Members that have the weight `prune` in some pixel, no others; and what they show is the blend of them alone."""
    in_use = _engine.instruction_set()
    _engine.choose_instruction_set(instruction_set)
    try:
        gaussians, camera = scene_and_camera(columns, seed=21, width=130, height=70)
        settings = ActiveSetSettings(prune=1 / 24, stop=1e-4, ellipse_error=0.0, period=NEVER)
        before, state = np.ones(len(gaussians), dtype=bool), None
        for _ in range(3):
            found, state = draw_active_set(gaussians, camera, state, settings=settings, options=PIXEL)
            assert_same_picture(found, twin.blend(gaussians, camera, before, order="pixel"))
            weights = twin.pixel_weights(gaussians, camera, before)
            there = members(gaussians, state)
            assert there[before & (weights > 1.01 * settings.prune)].all()
            assert not there[weights < 0.99 * settings.prune].any()
            before = there
    finally:
        _engine.choose_instruction_set(in_use)
    assert 20 < there.sum() < 0.9 * len(gaussians)


@KINDS
@pytest.mark.parametrize(
    "change", [{"turn_deg": 2.0}, {"turn_deg": 120.0}, {"right": 0.05}, {"forward": -2.0}], ids=str
)
def test_a_moved_camera_sees_what_exact_does(columns, change):
    gaussians, camera = scene_and_camera(columns, seed=22, width=160, height=100)
    settings, state = replace(WHOLE, period=1), None
    for _ in range(2):
        _, state = draw_active_set(gaussians, camera, state, settings=settings, options=PIXEL)
    view = moved(camera, **change)
    found, _ = draw_active_set(gaussians, view, state, settings=settings, options=PIXEL)
    assert_pruned_picture(found, ENGINE.render(ENGINE.upload(gaussians), view, "exact", RenderOptions()))


@KINDS
def test_the_same_bits_with_any_number_of_threads_in_the_order_of_each_pixel(columns):
    gaussians, camera = scene_and_camera(columns, seed=23, width=210, height=150)
    streams = []
    for threads in (1, 5):
        state, pictures = None, []
        for frame in range(3):
            view = moved(camera, right=0.02 * frame, turn_deg=0.5 * frame)
            picture, state = draw_active_set(gaussians, view, state, options=replace(PIXEL, threads=threads))
            pictures += [picture.color, picture.alpha, picture.depth, members(gaussians, state)]
        streams.append(pictures)
    for one, other in zip(*streams, strict=True):
        np.testing.assert_array_equal(one, other)


def _wall_and_posts() -> tuple[Gaussians, Camera]:
    """An opaque wall, one near thing in the picture, and one at the same depth to the right of it."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.linspace(-9, 9, 91), np.linspace(-6, 6, 61)))
    means = np.concatenate([np.stack([x, y, np.full_like(x, 10.0)], axis=1), [[-0.2, 0.0, 1.0], [0.66, 0.0, 1.0]]])
    count = len(means)
    colors = np.random.default_rng(0).uniform(-1, 1, (count, 1, 3))
    colors[-1] = 1.5
    scales = np.full((count, 3), 0.12)
    scales[-2:] = 0.04
    arrays = (means, scales, np.tile([1.0, 0, 0, 0], (count, 1)), np.full(count, 0.98), colors)
    gaussians = Gaussians(*(array.astype(np.float32) for array in arrays))
    return gaussians, Camera(160, 96, 160.0, 160.0, 80.0, 48.0, np.eye(4))


@pytest.mark.parametrize("parallax_px", [4.0, 1e6])
def test_what_comes_in_at_the_border_faster_than_what_is_seen_there_is_found(parallax_px):
    """The wall moves by a third of a pixel in each frame, what is near by three."""
    gaussians, camera = _wall_and_posts()
    settings, state, missing = ActiveSetSettings(period=NEVER, parallax_px=parallax_px), None, []
    for frame in range(14):
        view = moved(camera, right=0.02 * frame)
        found, state = draw_active_set(gaussians, view, state, settings=settings)
        missing.append((np.abs(found.color - reference(gaussians, view).color).max(axis=-1) > 0.1).sum())
    assert missing[0] == 0
    if parallax_px < 10:
        assert max(missing) < 60
    else:
        assert missing[-1] > 250  # else this test cannot see it


def _wall_behind_a_screen() -> tuple[Gaussians, Camera]:
    """A wall of small spots, hidden in part by an opaque square at a third of its distance."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.linspace(-7, 7, 141), np.linspace(-5, 5, 101)))
    wall = np.stack([x, y, np.full_like(x, 9.0)], axis=1)
    x, y = (axis.ravel() for axis in np.meshgrid(np.linspace(-0.7, 0.7, 29), np.linspace(-0.5, 0.5, 21)))
    screen = np.stack([x, y, np.full_like(x, 3.0)], axis=1)
    means, count = np.concatenate([wall, screen]), len(wall) + len(screen)
    arrays = (
        means,
        np.where(np.arange(count) < len(wall), 0.06, 0.05)[:, None] * np.ones((1, 3)),
        np.tile([1.0, 0, 0, 0], (count, 1)),
        np.full(count, 0.98),
        np.random.default_rng(1).uniform(-1.5, 1.5, (count, 1, 3)),
    )
    return Gaussians(*(array.astype(np.float32) for array in arrays)), Camera(
        240, 160, 200.0, 200.0, 120.0, 80.0, np.eye(4)
    )


@pytest.mark.parametrize("direction", [(1, 0), (-1, 0), (0, 1), (0, -1), (0.7, -0.7)])
@pytest.mark.parametrize("step", [0.01, 0.12])
@pytest.mark.parametrize("parallax_px", [4.0, 1e6])
def test_what_comes_out_from_behind_is_found(direction, step, parallax_px):
    """The screen moves by half a pixel or by five against the wall in each frame, and uncovers it on one side."""
    gaussians, camera = _wall_behind_a_screen()
    settings, state, missing = ActiveSetSettings(period=NEVER, parallax_px=parallax_px), None, []
    for frame in range(24 if step < 0.05 else 8):
        pose = camera.world_from_camera.copy()
        pose[:2, 3] += np.array(direction) * step * frame
        view = replace(camera, world_from_camera=pose)
        found, state = draw_active_set(gaussians, view, state, settings=settings)
        missing.append(int((np.abs(found.color - reference(gaussians, view).color).max(axis=-1) > 0.1).sum()))
    if parallax_px < 10:
        assert max(missing) < 10, missing
    else:
        assert missing[-1] > 120  # else this test cannot see it


def _frozen(gaussians: Gaussians, eye: np.ndarray) -> Gaussians:
    """The same with the colours that they have from this eye, whatever they are seen from."""
    color = sh_colors(gaussians.sh, gaussians.means, eye)
    return replace(gaussians, sh=((color - 0.5) / SH_C0)[:, None].astype(np.float32))


@KINDS
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_members_keep_their_colours_within_the_angle(columns, degree):
    """Those that are new among members of long standing are coloured like them."""
    gaussians, camera = _wall_behind_a_screen()
    sh = np.random.default_rng(2).normal(0, 0.5, (len(gaussians), (degree + 1) ** 2, 3)).astype(np.float32)
    gaussians = replace(gaussians, sh=sh, scales=gaussians.scales[:, :columns])
    camera = replace(camera, fx=140.0, fy=140.0)  # all of the wall: what comes in has colours of its own
    frozen = _frozen(gaussians, camera.position)
    wide, none = (ActiveSetSettings(period=2, color_deg=angle) for angle in (45.0, 0.0))
    _, state = draw_active_set(gaussians, camera, settings=wide)
    _, other = draw_active_set(frozen, camera, settings=none)
    for step in range(1, 6):
        view = moved(camera, right=0.06 * step)
        found, state = draw_active_set(gaussians, view, state, settings=wide)
        expected, other = draw_active_set(frozen, view, other, settings=none)
        assert state.members == other.members and state.fresh > 0
        odd = (np.abs(found.color - expected.color) > 2e-5).any(axis=-1)
        assert odd.mean() < 0.005  # chunks that come out whole from behind
    difference = np.abs(found.color - reference(gaussians, view).color).mean()
    assert difference < 2e-3 if degree == 0 else difference > 2.5e-3  # else this test cannot see it


@KINDS
def test_colours_are_new_beyond_the_angle_and_never_old_without_one(columns):
    gaussians, camera = scene_and_camera(columns, seed=32, coefficients=9, count=800, width=200)
    least, none = replace(WHOLE, color_deg=1e-4), replace(WHOLE, color_deg=0.0)
    one = other = None
    for step in (0.0, 0.02, 0.05):
        view = moved(camera, right=step)
        found, one = draw_active_set(gaussians, view, one, settings=least)
        expected, other = draw_active_set(gaussians, view, other, settings=none)
        np.testing.assert_array_equal(found.color, expected.color)


def test_colours_of_another_scene_are_not_kept():
    """It has as many chunks, and its members are seen from the same place."""
    gaussians, camera = _wall_behind_a_screen()
    other = replace(gaussians, sh=-gaussians.sh)
    _, state = draw_active_set(gaussians, camera)
    found, _ = draw_active_set(other, camera, state)
    expected, _ = draw_active_set(other, camera, state, settings=ActiveSetSettings(color_deg=0.0))
    np.testing.assert_array_equal(found.color, expected.color)


def test_after_a_jump_whole_tiles_are_searched():
    """From the end of the walk back to its second second: a few tiles lie where the last frame showed something."""
    scene = scene_argument("synth:500k")
    track, state = named_track("walk", scene).resampled(30.0).resized(800, 532), None
    for frame in range(146, 150):
        _, state = draw_active_set(scene.gaussians, track.camera(frame), state)
    shown, fresh = (draw_active_set(scene.gaussians, track.camera(30), before)[0].color for before in (state, None))
    assert (np.abs(shown - fresh).max(axis=-1) > 0.1).sum() < 20
