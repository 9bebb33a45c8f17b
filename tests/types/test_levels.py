"""Levels of detail side by side: what they hold, and which of them a camera sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hushsplat
from hushsplat.engines.cpu.engine import Cancel, Cancelled, CpuEngine
from hushsplat.stream import Stream
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.levels import LEAF_GAUSSIANS, LEVELS, NEAREST_SIZES, Levels
from hushsplat.types.metrics import psnr

CAMERA = hushsplat.home_camera(192, 128)


@pytest.fixture(scope="module")
def scene() -> Gaussians:
    return hushsplat.room_and_garden(20_000)


@pytest.fixture(scope="module")
def levels(scene: Gaussians) -> Levels:
    return Levels.of(scene)


def counts(levels: Levels) -> np.ndarray:
    return np.bincount(levels.group, minlength=levels.spacing.size).reshape(levels.spacing.shape)


def test_scene_comes_first_and_levels_shrink(scene: Gaussians, levels: Levels) -> None:
    assert np.array_equal(levels.scene.means, scene.means) and np.array_equal(levels.scene.sh, scene.sh)
    assert np.shares_memory(levels.scene.means, levels.gaussians.means)
    many = counts(levels)
    assert many[:, 0].sum() == len(scene) and many[:, 0].max() <= LEAF_GAUSSIANS and len(many) == 4
    assert (many[:, 1:] < many[:, :-1]).all() and many[:, 1].sum() < 0.5 * len(scene)
    assert (np.diff(levels.spacing, axis=1) > 0).all()


def test_each_leaf_is_seen_in_one_level_coarser_with_the_distance(levels: Levels) -> None:
    forward, shown_counts = CAMERA.world_from_camera[:3, 2], []
    for back in (0.0, 20.0, 200.0, 5000.0):
        pose = CAMERA.world_from_camera.copy()
        pose[:3, 3] -= back * forward
        camera = replace(CAMERA, world_from_camera=pose)
        shown = levels.seen_by(camera, 20.0).reshape(-1, LEVELS)
        assert (shown.sum(axis=1) == 1).all()
        shown_counts.append(int(counts(levels)[shown > 0].sum()))
    assert shown_counts == sorted(shown_counts, reverse=True) and shown_counts[-1] == counts(levels)[:, -1].sum()
    near_by = CAMERA.resized(80 * CAMERA.width, 80 * CAMERA.height)  # nothing is smaller than a pixel
    assert np.array_equal(levels.seen_by(near_by, 1e-9), levels.finest)


def test_specks_close_to_each_other_are_drawn_coarser(levels: Levels) -> None:
    found = set()
    for width in (2, 4, 8, 12, 24, 48, 96, 192, 384, 1536):
        camera = CAMERA.resized(width, max(1, width * 2 // 3))
        level = levels.seen_by(camera, 1e-9).reshape(-1, LEVELS).argmax(axis=1)
        away = np.linalg.norm(levels.middle - camera.position, axis=1)
        away = np.maximum(away - levels.extent / 2, NEAREST_SIZES * levels.extent)
        sizes_px, gaps_px = camera.fy * levels.size / away[:, None], camera.fy * levels.spacing / away[:, None]
        for leaf, chosen in enumerate(level):
            specks = [size < 1 and gap < 4 for size, gap in zip(sizes_px[leaf, :-1], gaps_px[leaf, 1:], strict=True)]
            assert all(specks[:chosen]) and not any(specks[chosen : chosen + 1])
            found |= {(bool(sizes_px[leaf, chosen] < 1), int(chosen))}
    assert found >= {(True, LEVELS - 1), (False, 0), (True, 0), (False, 1)}  # small but far apart stays as it is


def test_size_is_the_median_of_the_two_largest_axes(scene: Gaussians, levels: Levels) -> None:
    of_leaf = levels.group[: len(scene)] == LEVELS  # the second leaf
    areas = np.sort(scene.scales[of_leaf[: len(scene)]].astype(np.float64), axis=1)[:, -2:].prod(axis=1)
    assert levels.size[1, 0] == pytest.approx(np.median(np.sqrt(areas)), rel=1e-3)
    assert (np.diff(levels.size, axis=1) > 0).all()


def test_coarser_specks_are_nearer_to_a_finer_picture(scene: Gaussians, levels: Levels) -> None:
    small = CAMERA.resized(24, 16)
    fine = hushsplat.render(scene, CAMERA.resized(240, 160), "reference").color
    target = fine.reshape(16, 10, 24, 10, 3).mean(axis=(1, 3))
    grouped = CpuEngine().upload_levels(levels)
    itself, coarser = (
        psnr(hushsplat.render(grouped.seen_by(small, spacing_px), small, "reference").color, target)
        for spacing_px in (0.0, 1e-9)
    )
    assert coarser > itself + 1


@pytest.mark.parametrize("method", ["raw", "reference", "exact", "hush"])
def test_finest_groups_draw_the_scene_itself(scene: Gaussians, levels: Levels, method: str) -> None:
    cpu = CpuEngine()
    grouped = cpu.upload(levels.gaussians, None, levels.group)
    assert grouped.native.groups == levels.spacing.size
    expected, found, coarse = (
        Stream(cpu, one, [method]).step(CAMERA).images[0].numpy().color
        for one in (
            cpu.upload(scene),
            grouped.showing(levels.finest),
            grouped.showing(levels.seen_by(CAMERA, 1e9)),
        )
    )
    assert np.abs(found - expected).max() < 1e-5
    assert np.abs(coarse - expected).mean() > 1e-3
    assert np.abs(coarse.mean(axis=(0, 1)) - expected.mean(axis=(0, 1))).max() < 0.08  # but of the same colours


def test_other_groups_start_the_set_anew(levels: Levels) -> None:
    cpu = CpuEngine()
    grouped = cpu.upload(levels.gaussians, None, levels.group)
    stream = Stream(cpu, grouped.showing(levels.finest), ["hush"])
    for _ in range(3):
        stream.step(CAMERA)
    assert stream.states[0].native.frame == 3
    stream.scene = grouped.showing(levels.seen_by(CAMERA, 1e9))
    moved = stream.step(CAMERA).images[0].numpy().color
    assert stream.states[0].native.frame == 1
    alone = Stream(cpu, stream.scene, ["hush"]).step(CAMERA).images[0].numpy().color
    assert np.array_equal(moved, alone)


def test_groups_must_fit(scene: Gaussians, levels: Levels) -> None:
    cpu = CpuEngine()
    grouped = cpu.upload(levels.gaussians, None, levels.group)
    with pytest.raises(ValueError, match="fewer entries than groups"):
        Stream(cpu, grouped.showing(levels.finest[:3]), ["raw"]).step(CAMERA)
    with pytest.raises(ValueError, match="fewer entries than groups"):
        Stream(cpu, cpu.upload(scene).showing(levels.finest), ["raw"]).step(CAMERA)
    negative = levels.group.copy()
    negative[5] = -1
    with pytest.raises(SceneError, match="below 0"):
        cpu.upload(levels.gaussians, None, negative)


@pytest.mark.parametrize("method", ["raw", "reference", "exact", "hush"])
@pytest.mark.parametrize("threads", [1, 2])
def test_cancelled_frame_ends_early_and_the_next_is_whole(scene: Gaussians, method: str, threads: int) -> None:
    cpu, options = CpuEngine(), hushsplat.RenderOptions(threads=threads)
    uploaded = cpu.upload(scene, options)
    stream = Stream(cpu, uploaded, [method], options=options)
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Cancelled), cancel:
        stream.step(CAMERA)
    expected = Stream(cpu, uploaded, [method], options=options).step(CAMERA).images[0].numpy().color
    assert np.array_equal(stream.step(CAMERA).images[0].numpy().color, expected)  # outside of the block


def test_levels_can_be_given_up(scene: Gaussians) -> None:
    def give_up() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Levels.of(scene, give_up)
