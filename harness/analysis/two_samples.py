"""Do two samples come from one distribution? A permutation test on the energy distance.

Chosen for what is compared here, a few runs a side, of quantities with ties and more than one mode:
relabelling the runs in every way is exact whatever their distribution, where the tables of
Kolmogorov-Smirnov and Anderson-Darling suppose continuous values; and the energy distance answers
to a shift, a spread or a missing mode alike, where a rank test answers to a shift alone. It takes a
run as a point of any dimension, so that all sessions of a run are compared at once.
Source: Szekely and Rizzo, "Energy statistics", J. Stat. Plan. Inference 143 (2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.spatial.distance import cdist

NUM_RELABELLINGS = 1999
# Relabellings looked at together: 16 MB of distances for 50 runs.
_BATCH = 800
Indices = npt.NDArray[np.int64]
# With fewer runs in a sample no relabelling is rare enough to reject anything.
LEAST_RUNS = 4


@dataclass(frozen=True, kw_only=True)
class TwoSampleTest:
    """Outcome of a test.

    distance: energy distance of the samples, in the unit of the values.
    p: share of relabellings with a distance at least as large.
    """

    distance: float
    p: float


def same_distribution(
    one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], *, seed: int = 0
) -> TwoSampleTest:
    """Test whether two samples can be told apart.

    one, other: (num_runs, num_values) or (num_runs,), without NaN.
    seed: of the relabellings, if there are too many to try all of them.
    Raises: ValueError if a sample has fewer than LEAST_RUNS runs.
    """
    one, other = (values.reshape(len(values), -1) for values in (one, other))
    if min(len(one), len(other)) < LEAST_RUNS:
        raise ValueError(f"{len(one)} and {len(other)} runs: each sample needs {LEAST_RUNS}")
    pooled = np.concatenate([one, other])
    between = cdist(pooled, pooled)

    def distance(left: Indices, right: Indices, axis: int) -> npt.NDArray[np.float64]:
        def mean(some: Indices, others: Indices) -> npt.NDArray[np.float64]:
            found = between[some[..., :, None], others[..., None, :]]
            return np.asarray(found.mean(axis=(-2, -1)))

        return 2 * mean(left, right) - mean(left, left) - mean(right, right)

    indices = np.arange(len(pooled))
    found = stats.permutation_test(
        (indices[: len(one)], indices[len(one) :]),
        distance,
        permutation_type="independent",
        alternative="greater",
        vectorized=True,
        axis=-1,
        batch=_BATCH,
        n_resamples=NUM_RELABELLINGS,
        rng=np.random.default_rng(seed),
    )
    return TwoSampleTest(distance=float(found.statistic), p=float(found.pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct for testing several quantities: the chance that any of them is rejected wrongly.

    Example: 0.01, 0.04 -> 0.02, 0.04.
    Source: Holm, "A simple sequentially rejective multiple test procedure", 1979.
    """
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in corrected]
