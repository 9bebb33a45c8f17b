"""Counts are shared out exactly, frames become the right quaternions, sizes keep to their surfaces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsplat.synth.shapes import quad
from hushsplat.synth.surfels import Finish, any_tangent, cross, quaternions, random_directions, settle, share_out


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40), st.integers(0, 10_000))
def test_shares_add_up_to_the_count_and_are_at_least_one(demands: list[float], extra: int) -> None:
    count = len(demands) + extra
    shares = share_out(demands, count)
    assert sum(shares) == count
    assert min(shares) >= 1


def test_shares_follow_the_demands() -> None:
    assert share_out([1.0, 2.0, 7.0], 1_003) == [101, 201, 701]


def rotated(rotations: np.ndarray, vector: list[float]) -> np.ndarray:
    """The vector turned by each quaternion: v + 2 w (q × v) + 2 q × (q × v)."""
    w, q = rotations[:, :1], rotations[:, 1:]
    once = np.cross(q, vector)
    return vector + 2 * w * once + 2 * np.cross(q, once)


def test_quaternions_turn_x_to_the_tangent_and_z_to_the_normal() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    axes = np.concatenate([np.eye(3), -np.eye(3)]).astype(np.float32)  # half turns: w is 0
    normals = np.concatenate([random_directions(rng, 500), np.repeat(axes, 6, axis=0)])
    tangents = any_tangent(normals)
    rotations = quaternions(normals, tangents)
    assert np.allclose(rotated(rotations, [1, 0, 0]), tangents, atol=1e-5)
    assert np.allclose(rotated(rotations, [0, 1, 0]), cross(normals, tangents), atol=1e-5)
    assert np.allclose(rotated(rotations, [0, 0, 1]), normals, atol=1e-5)


def test_settled_surfels_have_right_angles_and_log_normal_sizes() -> None:
    rng = np.random.Generator(np.random.PCG64(2))
    spots = quad([0, 0, 0], [2, 0, 0], [0, 0, 2]).spots(rng, 20_000)
    surfels = settle(rng, spots, np.ones((20_000, 3), np.float32), Finish(rough=0.2))
    assert np.abs(np.einsum("ni,ni->n", surfels.normals, surfels.tangents)).max() < 1e-5
    sizes = np.log(np.sqrt(surfels.scales.prod(axis=1)))
    assert sizes.std() == pytest.approx(0.28, abs=0.05)
    skew = ((sizes - sizes.mean()) ** 3).mean() / sizes.std() ** 3
    assert abs(skew) < 0.3


def test_surfels_of_a_thin_strip_stay_on_it() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    spots = quad([0, 0, 0], [1, 0, 0], [0, 0, 0.01]).spots(rng, 400)
    surfels = settle(rng, spots, np.ones((400, 3), np.float32), Finish(spin=0.0, rough=0.0))
    sticks_out = np.abs(surfels.means[:, 2] - 0.005) + 1.5 * surfels.scales[:, 1] - 0.005
    assert np.median(sticks_out) < 0.001
