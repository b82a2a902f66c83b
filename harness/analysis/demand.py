"""How many KV blocks the calls of a run need together: counting tokens, without an engine.

A call holds ceil(tokens / block) blocks; a frame of p prompt and m answer tokens adds p + m - 1.
Summed over the calls, in units of the pool, this is the run's *load*

    x(t) = demand(t) / pool, about N r t / pool

with r the growth of one call. The pool is full once x reaches 1. Runs differ in r by their
verbosity (harness/workload/answers.py) and by the luck of N independent calls, so with sigma the
standard deviation of ln x between runs

    P(the pool was full by t) = Phi(ln x(t) / sigma)

Once it is full the calls that still live share it: n r t = pool, so of N calls 1 - 1 / x are dead.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt
from scipy import stats

from harness.capacity import planned_pool_blocks
from harness.config import AnswerKind, RunConfig
from harness.core.errors import ConfigError
from harness.workload.answers import draw_answers

Floats = npt.NDArray[np.float64]


def answer_moments(mean_tokens: float, limit_tokens: int) -> tuple[float, float]:
    """Mean and variance of a geometric length of that mean, cut at the limit.

    Example: mean 32, limit 64 -> mean 27.8.
    """
    k = np.arange(1, limit_tokens + 1)
    reaches = (1.0 - 1.0 / max(1.0, mean_tokens)) ** (k - 1)
    mean = float(reaches.sum())
    return mean, float(((2 * k - 1) * reaches).sum()) - mean**2


def frame_growth(run: RunConfig, verbosity: float = 1.0) -> tuple[float, float]:
    """Mean and variance of the KV tokens that a frame adds to a call, at a run's verbosity."""
    model = run.model
    if run.workload.answers is AnswerKind.fixed:
        return float(model.kv_tokens_per_frame), 0.0
    mean, variance = answer_moments(
        model.output_tokens_per_frame * verbosity, run.longest_answer_tokens
    )
    return model.prompt_tokens_per_frame + mean - 1, variance


def spread_between_runs(run: RunConfig) -> float:
    """Standard deviation of the logarithm of a run's growth that its verbosity gives.

    Half the chord between one deviation up and down: the limit on answers bends the curve.
    """
    step = run.workload.answer_spread
    if run.workload.answers is AnswerKind.fixed or not step:
        return 0.0
    high, low = (frame_growth(run, math.exp(sign * step))[0] for sign in (1, -1))
    return (math.log(high) - math.log(low)) / 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Load:
    """x after each frame, over the runs that a configuration can draw.

    t_s: (num_frames,) deadline of each frame.
    median: (num_frames,) x of a run of middling verbosity.
    sigma: (num_frames,) standard deviation of ln x between runs.
    """

    t_s: Floats
    median: Floats
    sigma: Floats

    @property
    def odds_full(self) -> Floats:
        """(num_frames,) probability that the pool was full by then."""
        return odds_full(self.median, self.sigma)


def pool_blocks(run: RunConfig) -> int:
    """The run's pool. Raises: ConfigError if it depends on a GPU that is not named."""
    blocks = planned_pool_blocks(run)
    if blocks is None:
        raise ConfigError("the load of a pool needs its size: set engine.kv_pool_blocks")
    return blocks


def expected_load(run: RunConfig) -> Load:
    """The law of x by formula; a last block is half full on average."""
    mean, variance = frame_growth(run)
    frames = np.arange(1, run.num_frames + 1, dtype=np.float64)
    block, num_sessions = run.engine.block_size_tokens, run.workload.num_sessions
    blocks = num_sessions * (frames * mean / block + (block - 1) / (2 * block))
    within = np.sqrt(variance / (num_sessions * frames)) / mean
    return Load(
        t_s=frames * run.model.frame_budget_s,
        median=blocks / pool_blocks(run),
        sigma=np.hypot(within, spread_between_runs(run)),
    )


def drawn_load(run: RunConfig, seeds: range) -> Floats:
    """(num_seeds, num_frames) x of the runs that these seeds draw, counted block by block."""
    pool, block = pool_blocks(run), run.engine.block_size_tokens
    loads = np.empty((len(seeds), run.num_frames))
    for row, seed in enumerate(seeds):
        answers = draw_answers(dataclasses.replace(run, seed=seed))
        tokens = np.cumsum(run.model.prompt_tokens_per_frame + answers - 1, axis=1)
        loads[row] = (-(-tokens // block)).sum(axis=0) / pool
    return loads


def odds_full(load: npt.ArrayLike, sigma: npt.ArrayLike) -> Floats:
    """Phi(ln x / sigma); a step at x = 1 where nothing varies."""
    logs, spread = np.broadcast_arrays(np.log(load), np.asarray(sigma, dtype=float))
    varied = spread > 0
    z = np.where(varied, logs / np.where(varied, spread, 1.0), np.copysign(np.inf, logs))
    return np.asarray(stats.norm.cdf(z), dtype=float)
