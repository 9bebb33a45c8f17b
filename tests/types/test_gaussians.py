"""A scene in memory: read-only arrays of checked shapes, selections of it, and its summary."""

from dataclasses import replace

import jaxtyping
import numpy as np
import pytest

from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians, with_min_opacity, with_sh_degree
from hushsplat.types.summary import HISTOGRAM_BINS, summarize


def scene(count: int = 100, coefficients: int = 9) -> Gaussians:
    rng = np.random.default_rng(3)
    return Gaussians(
        means=rng.uniform(-1, 1, (count, 3)).astype(np.float32),
        scales=rng.uniform(0.1, 0.2, (count, 3)).astype(np.float32),
        rotations=np.tile(np.float32([1, 0, 0, 0]), (count, 1)),
        opacities=np.linspace(0, 1, count, dtype=np.float32),
        sh=rng.normal(size=(count, coefficients, 3)).astype(np.float32),
        payload=rng.normal(size=(count, 10)).astype(np.float32),
    )


def test_arrays_are_read_only_and_replaced_as_a_whole() -> None:
    own = np.zeros((100, 3), np.float32)
    whole = replace(scene(), means=own)
    with pytest.raises(ValueError, match="read-only"):
        whole.means[0, 0] = 1.0
    own[0] = 2.0  # the caller's array stays writable, and is shared
    assert whole.means[0, 0] == 2.0
    moved = replace(whole, means=whole.means + np.float32(0.5))
    assert moved.means[0, 0] == 2.5 and whole.means[0, 0] == 2.0


@pytest.mark.parametrize(
    ("field", "array", "message"),
    [
        ("means", np.zeros((100, 3)), r"means must be float32 of shape \(100, 3\), got float64"),
        ("opacities", np.zeros(99, np.float32), r"opacities must be float32 of shape \(100,\), got float32 \(99,\)"),
        ("scales", np.ones((100, 4), np.float32), r"scales must have 2 columns \(surfels\) or 3 \(ellipsoids\), got 4"),
        ("sh", np.zeros((100, 5, 3), np.float32), r"sh must have 1, 4, 9 or 16 coefficients \(degree 0 to 3\), got 5"),
        ("payload", np.zeros((100, 9), np.float32), r"payload must be float32 of shape \(100, 10\)"),
    ],
)
def test_wrong_types_and_shapes_are_refused_by_name(
    field: str, array: np.ndarray, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scene()
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # tests check annotations too, users do not
    with pytest.raises(SceneError, match=message):
        replace(whole, **{field: array})


def test_min_opacity_keeps_what_is_opaque_enough() -> None:
    whole = scene()
    kept = with_min_opacity(whole, 0.5)
    assert len(kept) == 50
    assert kept.opacities.min() >= 0.5
    assert kept.payload is not None
    assert with_min_opacity(whole, 0.0) is whole


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan")])
def test_min_opacity_outside_of_0_to_1_is_refused(least: float) -> None:
    with pytest.raises(SceneError, match=r"the least opacity must lie in 0\.\.1"):
        with_min_opacity(scene(), least)


def test_sh_degree_cuts_bands_and_never_adds_them() -> None:
    whole = scene()
    np.testing.assert_array_equal(with_sh_degree(whole, 1).sh, whole.sh[:, :4])
    assert with_sh_degree(whole, 3) is whole


@pytest.mark.parametrize("degree", [-1, 4])
def test_sh_degree_outside_of_0_to_3_is_refused(degree: int) -> None:
    with pytest.raises(SceneError, match=r"degree of the spherical harmonics must lie in 0\.\.3"):
        with_sh_degree(scene(), degree)


def test_summary_says_what_is_there() -> None:
    summary = summarize(scene())
    assert (summary.gaussians, summary.kind, summary.sh_degree, summary.has_payload) == (100, "ellipsoids", 2, True)
    assert summary.bytes_in_memory == 100 * 4 * (3 + 3 + 4 + 1 + 27 + 10)
    assert summary.opacities is not None and summary.sizes is not None
    assert summary.opacities.percentiles[50] == pytest.approx(0.5, abs=0.01)
    assert len(summary.sizes.counts) == HISTOGRAM_BINS
    assert sum(summary.sizes.counts) == sum(summary.opacities.counts) == 100
    assert summary.bounds is not None and -1 <= summary.bounds[0][0] < summary.bounds[1][0] <= 1


def test_summary_of_nothing() -> None:
    summary = summarize(scene(0))
    assert summary.gaussians == 0
    assert summary.bounds is summary.sizes is summary.opacities is None
