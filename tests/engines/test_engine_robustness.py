"""Whatever finite numbers come in: no crash, no NaN or infinity out, ids in range."""

from dataclasses import replace

import numpy as np
import pytest
from drawing import decode, observe, render_exact, render_reference, sample_visibility, uploaded
from random_scenes import crowd, odd_camera, turned_pose

from hushsplat.spec import sampling
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions

BACKGROUND = (0.1, 0.2, 0.3)
KINDS = pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])


def assert_sound(gaussians: Gaussians, camera: Camera, near: float = 0.2):
    """All that every picture must be; the reference and the exact picture and a visibility sample of each sampler."""
    options = RenderOptions(background=BACKGROUND, near=near)
    scene = uploaded(gaussians)
    pictures = render_reference(scene, camera, options), render_exact(scene, camera, options)
    samples = [sample_visibility(scene, camera, samples=2, sampler=s, options=options) for s in sampling.SAMPLERS]
    for picture in pictures:
        assert picture.color.shape == (camera.height, camera.width, 3)
        for array in (picture.color, picture.alpha, picture.depth, picture.variance):
            assert array is None or (np.isfinite(array).all() and array.min() >= 0)
        assert picture.alpha.max() <= 1
    for sample in samples:
        assert sample.primitive_id.shape == sample.depth.shape == (2, camera.height, camera.width)
        assert sample.primitive_id.min() >= -1 and sample.primitive_id.max() < len(gaussians)
        hit = sample.primitive_id >= 0
        assert np.isfinite(sample.depth).all() and (sample.depth[~hit] == 0).all() and (sample.depth[hit] > 0).all()
        assert np.isfinite(decode(sample, scene, camera, options).color).all()
    return *pictures, *samples


def assert_empty(gaussians: Gaussians, camera: Camera, near: float = 0.2):
    reference, exact, *samples = assert_sound(gaussians, camera, near)
    for picture in (reference, exact):
        np.testing.assert_array_equal(picture.color, np.broadcast_to(np.float32(BACKGROUND), picture.color.shape))
        assert picture.alpha.max() == picture.depth.max() == 0
    assert exact.variance.max() < 1e-7
    assert all(sample.primitive_id.max() == -1 for sample in samples)


def everything(columns: int, camera: Camera, count: int = 60) -> Gaussians:
    return crowd(np.random.default_rng(columns), camera, columns, count=count)


@KINDS
@pytest.mark.parametrize(
    ("width", "height"),
    [(1, 1), (1, 200), (200, 1), (7, 9), (8, 8), (63, 65), (64, 64), (65, 63), (128, 16), (129, 17)],
)
def test_any_size(columns, width, height):
    """A small picture is the corner of a larger one: its edges and its tiles change nothing."""
    rng = np.random.default_rng(width)
    large = Camera(210, 205, 150.0, 160.0, 30.0, 20.0, turned_pose(rng))
    small = replace(large, width=width, height=height)
    gaussians = everything(columns, large)
    for draw in (render_reference, render_exact, observe):
        expected, found = draw(gaussians, large), draw(gaussians, small)
        np.testing.assert_array_equal(found.color, expected.color[:height, :width])
        np.testing.assert_array_equal(found.depth, expected.depth[:height, :width])
    assert_sound(gaussians, small)


@KINDS
def test_an_empty_scene(columns):
    camera = odd_camera(np.random.default_rng(0))
    assert_empty(everything(columns, camera).take(np.arange(0)), camera)
    assert_empty(everything(columns, camera).take(np.arange(0)), replace(camera, width=1, height=1))


@KINDS
def test_a_scene_behind_the_camera(columns):
    camera = odd_camera(np.random.default_rng(0))
    gaussians = everything(columns, camera)
    depth = (gaussians.means - camera.position) @ camera.world_from_camera[:3, 2]
    assert_empty(gaussians.take(np.flatnonzero(depth < 0.19)), camera)
    assert_empty(gaussians, camera, near=1e4)


@KINDS
def test_a_scene_beside_the_picture(columns):
    camera = odd_camera(np.random.default_rng(0))
    gaussians = everything(columns, camera)
    small = replace(gaussians, scales=gaussians.scales * np.float32(1e-3))
    assert_empty(small, replace(camera, cx=camera.cx + 3000))


@KINDS
def test_opacities_too_small_to_see(columns):
    camera = odd_camera(np.random.default_rng(0))
    gaussians = everything(columns, camera)
    for opacity in (0.0, 1e-30, 0.0039):
        assert_empty(replace(gaussians, opacities=np.full(len(gaussians), opacity, dtype=np.float32)), camera)


@KINDS
def test_gaussians_larger_than_the_screen(columns):
    camera = odd_camera(np.random.default_rng(0))
    gaussians = everything(columns, camera)
    huge = replace(
        gaussians, scales=gaussians.scales * np.float32(1e4), opacities=gaussians.opacities * np.float32(0.2)
    )
    reference, exact, *_ = assert_sound(huge, camera)
    assert min(reference.alpha.mean(), exact.alpha.mean()) > 0.5


MAGNITUDES = (1e-38, 1e-30, 1e-15, 1e-7, 1e-3, 1.0, 1e3, 1e7, 1e15, 1e19, 1e25, 1e30, 3e38)


@KINDS
def test_absurd_but_finite_values(columns):
    """Scales and places from the smallest to the largest floats, in any combination, in front of any camera."""
    for seed in range(120):
        rng = np.random.default_rng([columns, seed])
        count = int(rng.choice([1, 4, 40]))
        camera = Camera(
            width=int(rng.choice([1, 7, 70])),
            height=int(rng.choice([1, 9, 66])),
            fx=rng.uniform(5, 300),
            fy=rng.uniform(5, 300),
            cx=rng.uniform(-10, 100),
            cy=rng.uniform(-10, 60),
            world_from_camera=np.eye(4) if seed % 2 else turned_pose(rng),
        )
        means = rng.choice(MAGNITUDES, (count, 3)) * rng.choice([-1, 0, 1], (count, 3))
        means[:, 2] = np.abs(means[:, 2])
        means = np.clip(means @ camera.world_from_camera[:3, :3].T, -3.4e38, 3.4e38)
        rotations = rng.normal(size=(count, 4)) if seed % 3 else np.tile([1.0, 0, 0, 0], (count, 1))
        arrays = (
            means,
            rng.choice(MAGNITUDES, (count, columns)),
            rotations / np.linalg.norm(rotations, axis=1, keepdims=True),
            rng.choice([0, 0.003, 0.5, 1], count),
            rng.normal(size=(count, 4, 3)) * rng.choice([1, 1e10]),
        )
        gaussians = Gaussians(*(array.astype(np.float32) for array in arrays))
        assert_sound(gaussians, camera, near=float(rng.choice([1e-30, 1e-3, 0.2, 5, 1e30])))


@KINDS
def test_an_absurd_neighbour_hides_nobody(columns):
    """A Gaussian that is far too large to draw, or too far away, shares a chunk with ordinary ones."""
    camera = odd_camera(np.random.default_rng(0))
    gaussians = everything(columns, camera)
    expected = render_exact(gaussians, camera)
    for name, value in (("means", 3e38), ("means", -3e38), ("scales", 1e-38)):
        absurd = gaussians.take(np.append(np.arange(len(gaussians)), 0))
        changed = {each: getattr(absurd, each).copy() for each in (name, "opacities")}
        changed[name][-1] = value
        changed["opacities"][-1] = 0.004  # hardly anything, wherever it is
        absurd = replace(absurd, **changed)
        np.testing.assert_allclose(render_exact(absurd, camera).color, expected.color, atol=0.02)


@KINDS
@pytest.mark.parametrize(
    ("fx", "fy", "cx", "cy"),
    [(1e-6, 1e-6, 5, 5), (1e6, 1e6, 5, 5), (1e30, 1e-9, 3, 3), (10, 10, -1e7, 5), (10, 10, 3e9, 5), (30, 5, 40, -3)],
)
def test_any_pinhole(columns, fx, fy, cx, cy):
    camera = Camera(20, 13, float(fx), float(fy), float(cx), float(cy), turned_pose(np.random.default_rng(0)))
    assert_sound(everything(columns, camera), camera)


@KINDS
@pytest.mark.parametrize("near", [1e-45, 1e-38, 1e-3, 10.0, 1e38])
def test_any_near_plane(columns, near):
    camera = odd_camera(np.random.default_rng(0))
    assert_sound(everything(columns, camera), camera, near=near)


@KINDS
def test_a_camera_far_away_from_everything(columns):
    camera = odd_camera(np.random.default_rng(0))
    pose = camera.world_from_camera.copy()
    for distance in (1e5, 1e30):
        pose[:3, 3] = distance
        assert_sound(everything(columns, camera), replace(camera, world_from_camera=pose))
