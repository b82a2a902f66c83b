"""The permutation test: what it lets pass, what it flags, and what Holm's correction does."""

import numpy as np
import pytest

from harness.analysis.two_samples import holm, same_distribution


def test_a_shifted_distribution_is_flagged_and_an_equal_one_passes() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(0, 1, 8), rng.normal(0, 1, 40)
    assert same_distribution(one, other).p > 0.05
    assert same_distribution(one + 2.0, other).p < 0.01


def test_a_missing_mode_is_flagged_although_the_median_is_the_same() -> None:
    one = np.array([10.0] * 10)
    other = np.array([0.0] * 12 + [10.0] * 16 + [20.0] * 12)
    assert np.median(one) == np.median(other)
    assert same_distribution(one, other).p < 0.05


def test_samples_of_one_value_are_equal() -> None:
    found = same_distribution(np.full(6, 3.0), np.full(20, 3.0))
    assert (found.distance, found.p) == (0.0, 1.0)


def test_runs_are_compared_as_points_of_all_their_sessions() -> None:
    """Sums agree, sessions do not: one starves in every run of the first sample."""
    rng = np.random.default_rng(2)
    even = 20 + rng.integers(-1, 2, (12, 4)).astype(float)
    uneven = even + np.array([-15.0, 5.0, 5.0, 5.0])
    assert same_distribution(uneven.sum(axis=1), even.sum(axis=1)).p > 0.5
    assert same_distribution(uneven, even).p < 0.01


def test_too_few_runs_are_no_test() -> None:
    with pytest.raises(ValueError, match="3 and 20 runs: each sample needs 4"):
        same_distribution(np.zeros(3), np.zeros(20))


def test_holm_corrects_each_p_by_how_many_are_at_least_as_large() -> None:
    assert holm([0.01, 0.04]) == pytest.approx([0.02, 0.04])
    assert holm([0.5, 0.01, 0.02]) == pytest.approx([0.5, 0.03, 0.04])
    assert holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
