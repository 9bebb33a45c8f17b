"""The mean of many raw frames of the twin is its exact picture, by z-test with the closed-form variance."""

from dataclasses import replace

import numpy as np
import pytest
from ztest import SIGNIFICANT, smallest_p

from hushsplat.engines.torch import renderers as twin
from hushsplat.spec import sampling
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians

VIEW = Camera(12, 8, 12.0, 12.0, 6.0, 4.0, np.eye(4))
BACKGROUND = (0.1, 0.9, 0.4)
SAMPLES = 1500


def cloud(columns: int) -> Gaussians:
    """Thin layers everywhere, in which a small error of each draw adds up; to the right denser ones that cross."""
    rng = np.random.default_rng(columns)
    thin, dense = 40, 12
    count = thin + dense
    is_thin = np.arange(count) < thin
    rotations = rng.normal(size=(count, 4))
    depth = rng.uniform(1.5, 4, count)
    x = np.where(is_thin, rng.uniform(-0.4, 0.4, count), rng.uniform(0.2, 0.5, count)) * depth
    y = rng.uniform(-0.3, 0.3, count) * depth
    sizes = np.where(is_thin, 1.0, 0.5)[:, None]
    arrays = (
        np.stack([x, y, depth], axis=1),
        rng.uniform(0.5, 1.5, (count, columns)) * sizes,
        rotations / np.linalg.norm(rotations, axis=1, keepdims=True),
        np.where(is_thin, rng.uniform(0.02, 0.12, count), rng.uniform(0.4, 0.9, count)),
        rng.normal(size=(count, 4, 3)),
    )
    return Gaussians(*(array.astype(np.float32) for array in arrays))


def independent_winners(fragments: twin.Fragments, sampler: str) -> np.ndarray:
    """Independent samples: of frames, or for `stratified`, whose frames are not independent, of seeds."""
    times = [(1, t) if sampler == "independent" else (t, 37 * t % 1000) for t in range(SAMPLES)]
    return np.stack([twin.nearest_kept(fragments, sampler, seed, t)[0] for seed, t in times])


def decoded(winners: np.ndarray, fragments: twin.Fragments) -> np.ndarray:
    """The colours of the winners."""
    return np.concatenate([fragments.color, [BACKGROUND]])[winners]  # -1 is the last colour, the background


def p_values(gaussians: Gaussians, fragments: twin.Fragments, winners: np.ndarray) -> tuple[float, float]:
    """Of the colour and of the alpha of the whole picture."""
    expected = twin.exact(gaussians, VIEW, background=BACKGROUND)
    color = decoded(winners, fragments).mean(axis=0)
    alpha_variance = expected.alpha * (1 - expected.alpha)
    return (
        smallest_p(color, expected.color, expected.variance, SAMPLES),
        smallest_p((winners >= 0).mean(axis=0), expected.alpha, alpha_variance, SAMPLES),
    )


@pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])
@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_raw_has_the_mean_and_the_variance_of_exact(columns, sampler):
    gaussians = cloud(columns)
    fragments = twin.fragments_of(gaussians, VIEW)
    winners = independent_winners(fragments, sampler)
    assert min(p_values(gaussians, fragments, winners)) > SIGNIFICANT
    expected = twin.exact(gaussians, VIEW, background=BACKGROUND)
    ratio = decoded(winners, fragments).var(axis=0) / expected.variance
    assert abs(ratio.mean() - 1) < 0.02
    assert np.abs(ratio - 1).max() < 0.3


@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_biased_draws_would_be_noticed(sampler, monkeypatch):
    unbiased = sampling.uniforms
    monkeypatch.setattr(sampling, "uniforms", lambda *arguments: unbiased(*arguments) ** 1.05)
    gaussians = cloud(2)
    fragments = twin.fragments_of(gaussians, VIEW)
    assert max(p_values(gaussians, fragments, independent_winners(fragments, sampler))) < SIGNIFICANT


def test_ordering_by_centres_would_be_noticed():
    gaussians = cloud(2)
    fragments = twin.fragments_of(gaussians, VIEW)
    by_center = np.broadcast_to(fragments.center_depth[:, None, None], fragments.depth.shape).copy()
    winners = independent_winners(replace(fragments, depth=by_center), "independent")
    p_color, p_alpha = p_values(gaussians, fragments, winners)
    assert p_color < SIGNIFICANT < p_alpha  # the order changes who is seen, not whether anything is


def test_one_draw_for_all_primitives_would_be_noticed(monkeypatch):
    def same_key(sampler, seed, t, primitive_id):
        return np.full(primitive_id.shape, sampling.key_salt(sampler, seed, t), dtype=np.uint32)

    gaussians = cloud(2)
    fragments = twin.fragments_of(gaussians, VIEW)
    monkeypatch.setattr(sampling, "primitive_keys", same_key)
    winners = independent_winners(replace(fragments, center_px=0 * fragments.center_px), "independent")
    assert max(p_values(gaussians, fragments, winners)) < SIGNIFICANT
