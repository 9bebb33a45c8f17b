"""How far the mean of many stochastic pictures may be from what is expected of it."""

import numpy as np
from scipy.stats import norm

SIGNIFICANT = 1e-3  # a correct renderer fails this once in a thousand seeds; seeds in the tests are fixed


def smallest_p(mean, expected, variance, count: int) -> float:
    """The smallest p-value of all pixels and channels, two-sided, times their number (Bonferroni).

    `variance` is that of one sample and `count` the number of independent samples in `mean`.
    """
    error = np.abs(np.asarray(mean, dtype=np.float64) - expected)
    # The expectation is stored in float32; where nothing is random, that rounding is all the error there may be.
    sigma = np.sqrt(variance / count + (1e-6) ** 2)
    return float(np.min(2 * norm.sf(error / sigma)) * error.size)
