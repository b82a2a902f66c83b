"""How fast calls fill a KV pool and when it is full, by arithmetic: the paper's Eq. 1 before a run.

    t_sat = room / (N r)        r = (c + m - 1) / B

room is the pool less what is never used of it: of each session's last block half is empty on
average, and a pool with fewer free blocks than one more frame needs counts as full. c prompt
tokens, m the mean answer as it is drawn (harness/workload/answers.py).

Drawn answers make t_sat uncertain in two ways: a run's verbosity moves all its sessions together,
and independent lengths average out over N t / B frames. Source: paper Eq. 1; the interval is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from harness.capacity import blocks_per_frame, plateau_occupancy, session_plateau_blocks
from harness.config import AnswerKind, OnMaxModelLen, RunConfig
from harness.kv.geometry import blocks_for
from harness.workload.answers import answer_moments

# Two-sided 95 %.
LOW, HIGH = 0.025, 0.975
# A standard normal in equal steps of probability, for averages over a run's verbosity.
_QUANTILES = ndtri((np.arange(400) + 0.5) / 400)
_BISECTIONS = 50


@dataclass(frozen=True, kw_only=True)
class SaturationForecast:
    """When the pool is full if calls go on for so long, seconds: median and 95 % interval."""

    median_s: float
    low_s: float
    high_s: float


def frame_output_tokens(run: RunConfig) -> float:
    """m, tokens that a frame is answered with on average."""
    return answer_moments(run).mean


def frame_kv_tokens(run: RunConfig) -> float:
    """KV positions that a frame adds on average. Example: fixed answers -> kv_tokens_per_frame."""
    return run.model.prompt_tokens_per_frame + frame_output_tokens(run) - 1


def session_tokens_per_s(run: RunConfig) -> float:
    """r, positions that a session adds a second on average."""
    return frame_kv_tokens(run) / run.model.frame_budget_s


def room_tokens(run: RunConfig, pool_blocks: int) -> float:
    """Positions that fit before the pool counts as full."""
    block = run.engine.block_size_tokens
    part_filled_blocks = run.workload.num_sessions * (block - 1) / (2 * block)
    return max(0.0, pool_blocks - blocks_per_frame(run) - part_filled_blocks) * block


def saturation(run: RunConfig, pool_blocks: int) -> SaturationForecast | None:
    """When the pool is full; None if the sessions together never hold all of it."""
    ends = run.retention.is_bounded or run.engine.on_max_model_len is not OnMaxModelLen.refuse
    if ends and plateau_occupancy(run, pool_blocks) <= 1:
        return None
    room, answers = room_tokens(run, pool_blocks), _AnswerDistribution(run)
    median_s = room / (run.workload.num_sessions * session_tokens_per_s(run))
    return SaturationForecast(
        median_s=median_s,
        low_s=answers.instant_s(room, LOW, around_s=median_s),
        high_s=answers.instant_s(room, HIGH, around_s=median_s),
    )


def full_probability(run: RunConfig, pool_blocks: int, t_s: float) -> float:
    """Probability that sessions of which nothing is evicted have filled the pool by `t_s`."""
    return _AnswerDistribution(run).exceeds_probability(room_tokens(run, pool_blocks), t_s)


class _AnswerDistribution:
    """Tokens of all sessions over time, as the declared answers make them.

    Given a run's verbosity, n frames hold normally distributed tokens, with n times the mean and
    the variance of one; over the verbosity an average is taken.
    """

    def __init__(self, run: RunConfig) -> None:
        self._frames_per_s = run.workload.num_sessions / run.model.frame_budget_s
        spread = run.workload.answer_spread if run.workload.answers is AnswerKind.geometric else 0.0
        verbosities = np.exp(spread * _QUANTILES) if spread else np.ones(1)
        moments = [answer_moments(run, float(verbosity)) for verbosity in verbosities]
        prompt = run.model.prompt_tokens_per_frame
        self._means = np.array([prompt + each.mean - 1 for each in moments])
        self._deviations = np.array([each.deviation for each in moments])

    def exceeds_probability(self, num_tokens: float, t_s: float) -> float:
        """Probability that the sessions have computed at least `num_tokens` by `t_s`."""
        num_frames = self._frames_per_s * t_s
        surplus = num_frames * self._means - num_tokens
        deviation = np.sqrt(num_frames) * self._deviations
        is_drawn = deviation > 0
        scaled = np.divide(surplus, deviation, out=np.zeros_like(surplus), where=is_drawn)
        return float(np.where(is_drawn, ndtr(scaled), surplus >= 0).mean())

    def instant_s(self, num_tokens: float, probability: float, *, around_s: float) -> float:
        """Instant by which `num_tokens` are exceeded with a probability, by bisection."""
        if not self._deviations.any():
            return around_s
        low_s, high_s = 0.0, 4 * around_s
        for _ in range(_BISECTIONS):
            middle_s = (low_s + high_s) / 2
            if self.exceeds_probability(num_tokens, middle_s) < probability:
                low_s = middle_s
            else:
                high_s = middle_s
        return high_s


def final_session_blocks(run: RunConfig) -> int:
    """Blocks that a session holds at the end on average; at most what its bound leaves it."""
    mean = blocks_for(
        math.ceil(run.num_frames * frame_kv_tokens(run) - 1e-9), run.engine.block_size_tokens
    )
    return min(mean, session_plateau_blocks(run))


def final_occupancy(run: RunConfig, pool_blocks: int) -> float:
    """Pool share that all sessions together hold at the end; above 1 the pool overflows."""
    return run.workload.num_sessions * final_session_blocks(run) / pool_blocks


def session_ceiling(run: RunConfig, pool_blocks: int) -> int:
    """Sessions whose blocks fit the pool to the end of the run, whatever their number now."""
    return pool_blocks // final_session_blocks(run)


def with_sessions(run: RunConfig, num_sessions: int) -> RunConfig:
    """The same run with another number of calls."""
    return replace(run, workload=replace(run.workload, num_sessions=num_sessions))
