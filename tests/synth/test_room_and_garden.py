"""The scene keeps its promises: exact counts, the same bytes, and the statistics of a trained scene."""

import numpy as np
import pytest
from numpy import ndarray as Array

from hushsplat.synth import home_camera, room_and_garden
from hushsplat.synth.plan import DINING, DOOR, ROOM, TABLE_TOP
from hushsplat.synth.scene import all_parts
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import sh_colors


@pytest.fixture(scope="module")
def scene() -> Gaussians:
    return room_and_garden(50_000)


def arrays(scene: Gaussians) -> list[Array]:
    return [scene.means, scene.scales, scene.rotations, scene.opacities, scene.sh]


@pytest.fixture(scope="module")
def smaller() -> Gaussians:
    return room_and_garden(12_500, sh_degree=3)


def test_exactly_as_many_surfels_as_asked_for(scene: Gaussians, smaller: Gaussians) -> None:
    assert (len(scene), len(smaller), len(room_and_garden(1_000))) == (50_000, 12_500, 1_000)


def test_same_arguments_same_bytes_and_another_seed_another_scene(smaller: Gaussians) -> None:
    again = room_and_garden(12_500, sh_degree=3)
    other = room_and_garden(12_500, sh_degree=3, seed=1)
    for first, second, third in zip(arrays(smaller), arrays(again), arrays(other), strict=True):
        assert first.tobytes() == second.tobytes()
        assert first.tobytes() != third.tobytes()


def test_values_are_usable(scene: Gaussians) -> None:
    assert scene.is_surfels
    assert all(np.isfinite(values).all() for values in arrays(scene))
    assert np.abs(np.linalg.norm(scene.rotations, axis=1) - 1).max() < 1e-5
    assert scene.scales.min() > 0
    assert scene.opacities.min() > 0
    assert scene.opacities.max() <= 1


@pytest.mark.parametrize("degree", [0, 1])
def test_sh_degree(scene: Gaussians, smaller: Gaussians, degree: int) -> None:
    assert room_and_garden(1_000, sh_degree=degree).sh_degree == degree
    assert (scene.sh_degree, smaller.sh_degree) == (2, 3)


def test_lies_within_its_world(scene: Gaussians) -> None:
    assert np.abs(scene.means).max() < 110
    near = (np.abs(scene.means[:, 0]) < 6) & (scene.means[:, 2] > -5.2) & (scene.means[:, 2] < 11)
    assert near.mean() > 0.85
    # Up is -y: nothing but soil, terrace and land lies below the floor, and that not deep.
    assert (scene.means[near, 1] > 0.5).mean() < 0.01


def test_opacities_have_two_peaks(scene: Gaussians) -> None:
    assert (scene.opacities > 0.85).mean() > 0.4
    assert 0.02 < (scene.opacities < 0.2).mean() < 0.12
    assert ((scene.opacities >= 0.3) & (scene.opacities <= 0.8)).mean() > 0.15  # foliage


def test_sizes_and_shapes_spread_like_trained_ones(scene: Gaussians) -> None:
    sizes = np.log(np.sqrt(scene.scales.prod(axis=1)))
    aspects = scene.scales.max(axis=1) / scene.scales.min(axis=1)
    assert 0.4 < sizes.std() < 1.2
    assert aspects.max() < 10.5
    assert 0.2 < (aspects < 1.6).mean() < 0.8
    assert (aspects > 5).mean() > 0.05


def test_a_few_percent_float_in_the_air() -> None:
    demands = {part.name: part.demand for part in all_parts(0)}
    share = (demands["veils"] + demands["needles"]) / sum(demands.values())
    assert 0.015 < share < 0.04


def test_a_share_is_glossy_and_the_rest_nearly_matt(scene: Gaussians) -> None:
    strength = np.abs(scene.sh[:, 1:]).max(axis=(1, 2))
    assert 0.1 < (strength > 0.05).mean() < 0.5
    assert np.median(strength) < 0.05


def test_the_table_shines_against_the_light(scene: Gaussians) -> None:
    place = np.array([DINING[0], -TABLE_TOP, DINING[1]])
    rows = np.flatnonzero((np.abs(scene.means - place) < [0.35, 0.02, 0.7]).all(axis=1))
    against = sh_colors(scene.sh[rows], scene.means[rows], np.array([1.2, -1.6, -4.5], np.float32))
    along = sh_colors(scene.sh[rows], scene.means[rows], np.array([1.2, -1.6, 1.5], np.float32))
    assert len(rows) > 50
    assert against.mean() > along.mean() + 0.08


def test_sun_falls_through_the_door_only(scene: Gaussians) -> None:
    on_floor = np.abs(scene.means[:, 1]) < 0.01
    x, _, z = scene.means.T
    brightness = scene.sh[:, 0].mean(axis=1)
    by_the_door = on_floor & (np.abs(x) < DOOR.x - 0.5) & (z > -0.8) & (z < -0.1)
    in_the_back = on_floor & (z < -ROOM.z + 0.7) & (z > -ROOM.z)
    assert brightness[by_the_door].mean() > brightness[in_the_back].mean() + 0.3


def test_surfels_shrink_with_the_root_of_the_count_and_cover_the_same_area(
    scene: Gaussians, smaller: Gaussians
) -> None:
    few, many = smaller.scales.prod(axis=1), scene.scales.prod(axis=1)
    assert np.sqrt(np.median(few) / np.median(many)) == pytest.approx(2, rel=0.15)
    near = [np.abs(some.means).max(axis=1) < 11 for some in (smaller, scene)]
    assert few[near[0]].sum() / many[near[1]].sum() == pytest.approx(1, rel=0.15)


def opaqueness(scene: Gaussians, eye: Array, direction: Array) -> float:
    """1 minus what a ray lets through, by intersecting every surfel."""
    w, x, y, z = scene.rotations.T
    across = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=1)
    along = np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], axis=1)
    normals = np.cross(across, along)
    distance = np.einsum("ni,ni->n", scene.means - eye, normals) / (normals @ direction)
    offset = eye + distance[:, None] * direction - scene.means
    u = np.einsum("ni,ni->n", offset, across) / scene.scales[:, 0]
    v = np.einsum("ni,ni->n", offset, along) / scene.scales[:, 1]
    alphas = np.where(distance > 0, scene.opacities * np.exp(-0.5 * (u * u + v * v)), 0)
    return float(1 - np.exp(np.log1p(-np.minimum(alphas, 0.999)).sum()))


@pytest.mark.parametrize("which", ["scene", "smaller"])
def test_surfaces_are_closed_at_every_count(which: str, request: pytest.FixtureRequest) -> None:
    scene = request.getfixturevalue(which)
    camera = home_camera()
    rng = np.random.default_rng(3)
    local = np.stack([rng.uniform(-0.8, 0.8, 40), rng.uniform(-0.55, 0.55, 40), np.ones(40)], axis=1)
    directions = local @ camera.world_from_camera[:3, :3].T
    seen = [opaqueness(scene, camera.position, direction) for direction in directions]
    assert np.min(seen) > 0.9
    assert np.mean(seen) > 0.99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 999}, "count must lie between 1000 and 20000000 surfels, got 999."),
        ({"count": 0}, "count must lie between 1000 and 20000000 surfels, got 0."),
        ({"count": -5}, "count must lie between 1000 and 20000000 surfels, got -5."),
        ({"count": 20_000_001}, "count must lie between 1000 and 20000000 surfels, got 20000001."),
        ({"sh_degree": 4}, "sh_degree must be 0 to 3, got 4."),
        ({"sh_degree": -1}, "sh_degree must be 0 to 3, got -1."),
        ({"seed": -1}, "seed must lie between 0 and 2^63 - 1, got -1."),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(SceneError) as caught:
        room_and_garden(**arguments)
    assert str(caught.value) == message
