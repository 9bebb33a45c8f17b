import numpy as np
import pytest
from scipy.stats import chisquare, norm

from hushsplat.spec import sampling
from hushsplat.types.errors import RenderError


def draws(sampler: str, seed: int, times: range) -> np.ndarray:
    return np.stack([sampling.uniforms(sampler, seed, t) for t in times])


@pytest.fixture(scope="module")
def stratified():
    return draws("stratified", 5, range(1024))


@pytest.fixture(scope="module")
def independent():
    return draws("independent", 5, range(1024))


def test_mix32_is_lowbias32():
    def by_hand(x):
        x ^= x >> 16
        x = x * 0x7FEB352D & 0xFFFFFFFF
        x ^= x >> 15
        x = x * 0x846CA68B & 0xFFFFFFFF
        return x ^ x >> 16

    words = [0, 1, 2, 0x12345678, 0xFFFFFFFF]
    assert sampling.mix32(np.array(words, dtype=np.uint32)).tolist() == [by_hand(word) for word in words]


def test_mix32_leaves_its_argument_alone():
    words = np.arange(5, dtype=np.uint32)
    sampling.mix32(words)
    assert words.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("sampler", "period"), [("independent", 70000), ("stratified", 70000 // 256)])
def test_keys_by_hand(sampler, period):
    salt = int(sampling.mix32(np.array([(0xFFFFFFF0 + 0x9E3779B9 * period) % 2**32], dtype=np.uint32))[0])
    expected = sampling.mix32(np.array([i ^ salt for i in (0, 1, 999)], dtype=np.uint32))
    keys = sampling.primitive_keys(sampler, 0xFFFFFFF0, 70000, np.array([0, 1, 999]))
    assert keys.tolist() == expected.tolist()


def test_table_index_by_hand():
    key = 0xFFFFFFFE
    anchors = sampling.anchor_pixels(np.array([[10.9, -3.1], [1e9, -1e9]]))
    assert anchors.tolist() == [[10, -4], [1_000_000, -1_000_000]]
    for anchor in anchors:
        index = sampling.table_index(np.array([key], np.uint32), np.array([7]), np.array([2]), anchor[None])
        assert index.tolist() == [(key + 1087 * (7 - int(anchor[1])) + 2 - int(anchor[0])) % 2**32 % 4096]


def test_the_sequence_counts_samples_and_wraps():
    assert [sampling.sequence_index(3, 4, sample) for sample in range(4)] == [12, 13, 14, 15]
    assert sampling.sequence_index(2**30, 4, 1) == 1


def test_an_unknown_sampler_is_refused():
    with pytest.raises(RenderError, match="sampler must be one of independent, stratified, got 'sobol'"):
        sampling.level_table("sobol", 0, 0)
    with pytest.raises(RenderError, match="got 'sobol'"):
        sampling.key_salt("sobol", 0, 0)


@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_levels_are_logarithms_capped_where_alpha_is_nothing(sampler):
    levels = sampling.level_table(sampler, 3, 41)
    u = sampling.uniforms(sampler, 3, 41)
    assert levels.dtype == np.float32
    np.testing.assert_allclose(levels, np.minimum(-2 * np.log(u), 2 * np.log(255)), rtol=1e-6)
    assert levels.min() > 0 and levels.max() == np.float32(2 * np.log(255))


@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
@pytest.mark.parametrize("seed", [0, 2**32 - 1])
@pytest.mark.parametrize("t", [0, 2**32 - 1])
def test_levels_are_finite_at_the_ends_of_the_integers(sampler, seed, t):
    u = sampling.uniforms(sampler, seed, t)
    assert u.min() > 0 and u.max() < 1
    assert np.isfinite(sampling.level_table(sampler, seed, t)).all()


@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_seed_and_time_change_everything(sampler):
    tables = [sampling.uniforms(sampler, seed, t) for seed, t in [(0, 0), (1, 0), (0, 1), (1, 1), (0, 300)]]
    for i, first in enumerate(tables):
        for second in tables[:i]:
            assert (first == second).mean() < 0.01


def test_an_independent_table_holds_every_stratum_once(independent):
    strata = np.sort(np.floor(independent * sampling.TABLE_SIZE).astype(int), axis=1)
    assert (strata == np.arange(sampling.TABLE_SIZE)).all()


@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_an_entry_is_uniform_over_time(sampler, request):
    u = request.getfixturevalue(sampler)
    for entry in range(8):
        assert chisquare(np.bincount((u[:, entry] * 32).astype(int), minlength=32)).pvalue > 1e-4
    # Below the strata the jitter is uniform as well.
    jitter = u * sampling.TABLE_SIZE % 1
    assert chisquare(np.bincount((jitter.ravel() * 64).astype(int), minlength=64)).pvalue > 1e-4


def correlation_z(first: np.ndarray, second: np.ndarray) -> float:
    """Standard score of the correlation of uniform draws that are independent."""
    return float(((first - 0.5) * (second - 0.5)).mean() * 12 * np.sqrt(first.size))


@pytest.mark.parametrize("entries", [1, 2, 3, 7, sampling.ROW_STEP])
def test_independent_draws_are_uncorrelated(independent, entries):
    assert abs(correlation_z(independent[:-1], independent[1:])) < 4
    # Entries of a table are drawn without replacement, hence the 1/4095.
    expected = -np.sqrt(independent[:, entries:].size) / (sampling.TABLE_SIZE - 1)
    assert abs(correlation_z(independent[:, entries:], independent[:, :-entries]) - expected) < 4


def test_single_hash_of_consecutive_entries_would_be_noticed():
    """Test of the test above: the permutation that one round of mix32 gives."""
    entries = np.arange(sampling.TABLE_SIZE, dtype=np.uint32)
    salts = sampling.hash_words(1, np.arange(1024, dtype=np.uint32))
    weak = np.stack([np.argsort(sampling.mix32(entries + salt)) for salt in salts]) / sampling.TABLE_SIZE
    scores = [correlation_z(weak[:, lag:], weak[:, :-lag]) for lag in (1, 2, 3, 7)]
    assert np.abs(scores).max() > 4


@pytest.mark.parametrize("length", [2, 4, 8, 16, 32, 64, 128, 256])
def test_every_aligned_block_visits_every_stratum_once(stratified, length):
    strata = np.floor(stratified * length).astype(int).reshape(-1, length, sampling.TABLE_SIZE)
    assert (np.sort(strata, axis=1) == np.arange(length)[:, None]).all()


def test_all_nested_orders_of_four_frames_are_equally_frequent(stratified):
    strata = np.floor(stratified * 4).astype(int).reshape(-1, 4, sampling.TABLE_SIZE)
    orders, counts = np.unique(np.einsum("btk,t->bk", strata, [64, 16, 4, 1]), return_counts=True)
    assert len(orders) == 16  # 8 first pairs with one draw in each half, times 2 orders of what is left
    assert chisquare(counts).pvalue > 1e-4


def joint_halves(u: np.ndarray, length: int) -> np.ndarray:
    """Per block of frames and pair of neighbouring entries, the share of frames in which both draws are below 1/2."""
    below = (u < 0.5).reshape(-1, length, u.shape[1])
    return (below[:, :, ::2] & below[:, :, 1::2]).mean(axis=1)


def orders_are_independent(u: np.ndarray, length: int = 16) -> bool:
    """Whether pairs of stratified entries meet as independently shuffled blocks would.

    In each of the length/2 pairs of frames one draw of each entry is below 1/2; they coincide or not by a coin flip.
    """
    joint = joint_halves(u, length)
    flips = length // 2
    variance = flips * 0.25 / length**2
    mean_fits = abs(joint.mean() - 0.25) < 4 * np.sqrt(variance / joint.size)
    spread_fits = abs(joint.var() / variance - 1) < 4 * np.sqrt(2 / joint.size)
    return bool(mean_fits and spread_fits)


def test_orders_of_two_entries_are_independent(stratified):
    for length in (4, 16, 64, 256):
        assert orders_are_independent(stratified, length)


def test_a_shared_order_would_be_noticed(stratified):
    """Test of the test above: one sequence for all entries, each with its own random rotation or digital shift."""
    rng = np.random.default_rng(0)
    rotated = (stratified[:, :1] + rng.random(512)) % 1
    assert not orders_are_independent(rotated)
    shifted = (np.floor(stratified[:, :1] * 2**32).astype(np.int64) ^ rng.integers(2**32, size=512)) * 2.0**-32
    assert not orders_are_independent(shifted)


def test_two_entries_fill_the_square_evenly(stratified):
    u = stratified[:, :512]
    cells = (u[:, ::2] * 8).astype(int) * 8 + (u[:, 1::2] * 8).astype(int)
    # Strata make the marginals exact, so the statistic is below a chi-square of 63 degrees; 49 stay free.
    counts = np.bincount(cells.ravel(), minlength=64)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert 15 < statistic < 110


def test_stratified_entries_are_uncorrelated_within_blocks(stratified):
    centered = (stratified - 0.5).reshape(-1, 16, sampling.TABLE_SIZE)
    for lag in (1, 2, 7, sampling.ROW_STEP):
        products = (centered[:, :, lag:] * centered[:, :, :-lag]).mean(axis=1)
        z = products.mean() / (products.std() / np.sqrt(products.size))
        assert 2 * norm.sf(abs(z)) > 1e-4


def test_epochs_are_independent(stratified):
    first, second = stratified[:256], stratified[256:512]
    assert abs(correlation_z(first, second)) < 4
