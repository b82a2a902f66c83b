"""When calls begin and how long they last: closed and open systems, drawn up front from the seed.

    staggered, synchronised   closed: all within one frame budget, nobody leaves
    constant                  open: call i arrives at i / rate
    poisson                   open: gaps are exponential with mean 1 / rate, the first one included

Every process is exact: no gap is cut or shifted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.config import ArrivalKind, RunConfig, SessionLengthKind
from harness.core.seeding import named_rng

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def session_starts(run: RunConfig) -> Floats:
    """Instant of each offered session's first frame, ascending, (num_sessions,)."""
    workload, index = run.workload, np.arange(run.workload.num_sessions)
    if workload.arrivals is ArrivalKind.synchronised:
        return np.zeros(len(index))
    if workload.arrivals is ArrivalKind.staggered:
        return index * run.model.frame_budget_s / workload.num_sessions
    assert workload.arrival_rate_per_s is not None, "an open system has a rate"
    if workload.arrivals is ArrivalKind.constant:
        return index / workload.arrival_rate_per_s
    gaps = named_rng(run.seed, "arrivals").exponential(1 / workload.arrival_rate_per_s, len(index))
    return np.cumsum(gaps)


def session_frames(run: RunConfig, starts: Floats) -> Ints:
    """Frames of each session: its length in whole frames, as far as the run's duration allows.

    A closed session releases as many as fit the duration, wherever it starts. 0: the call would
    arrive after the run. Example: B = 2 s, duration 10 s, start 7 s, endless -> 2, at 7 and 9 s.
    """
    if not run.workload.arrivals.is_open:
        return np.full(len(starts), run.num_frames)
    budget_s = run.model.frame_budget_s
    left_s = np.maximum(0.0, run.workload.duration_s - starts)
    until_the_end = np.ceil(left_s / budget_s - 1e-9)
    wanted = np.maximum(1, np.ceil(_lengths_s(run, len(starts)) / budget_s))
    return np.asarray(np.minimum(until_the_end, wanted), dtype=np.int64)


def _lengths_s(run: RunConfig, count: int) -> Floats:
    workload, rng = run.workload, named_rng(run.seed, "session_lengths")
    if workload.session_lengths is SessionLengthKind.endless:
        return np.full(count, np.inf)
    if workload.session_lengths is SessionLengthKind.exponential:
        assert workload.mean_session_s is not None, "checked by WorkloadConfig"
        return rng.exponential(workload.mean_session_s, count)
    lengths: Floats = rng.choice(np.array(workload.session_data_s, dtype=np.float64), count)
    return lengths
