"""What a run would come to, by arithmetic alone: pool, growth, saturation, ceilings, verdict.

Every number is one that the harness uses elsewhere: the pool of harness/capacity.py, growth and
saturation of harness/workload/growth.py (as `engine.dry_run=true` prints them), frame times of
harness/engines/frame_time.py. Nothing is run and vLLM is not imported.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from harness.analysis.runs import retention_label
from harness.capacity import check_capacity, check_engine_starts
from harness.config import RunConfig
from harness.core.errors import HarnessError
from harness.engines.frame_time import FrameTime, frame_time
from harness.engines.sim_args import simulated_pool_blocks
from harness.kv.geometry import tokens_in
from harness.kv.retention import Retention, most_read_tokens
from harness.models.hardware import StepTime
from harness.workload import growth
from harness.workload.growth import HIGH, LOW, SaturationForecast

# More sessions than any engine holds: a search for a ceiling ends here.
_MOST_SESSIONS = 1 << 20


class ExpectedVerdict(enum.Enum):
    """What arithmetic expects of a run, in the words of harness/diagnosis/verdicts.py.

    collapse stands for shedding and stalled, which follow one another; undecided for a pool that is
    full near the run's end, where the draw of answers decides; refused for a run that the harness
    would not start.
    """

    alive = "alive"
    overloaded = "overloaded"
    collapse = "collapse"
    undecided = "undecided"
    refused = "refused"


@dataclass(frozen=True, kw_only=True)
class VariantPrediction:
    """One variant, unbounded or bounded.

    final_occupancy: pool share that all sessions hold at the run's end; above 1 they do not fit.
    session_ceiling: sessions that memory holds to the run's end.
    step_time_ceiling: sessions that are answered within B, contexts at their fullest; None if
        nobody has said what a step costs.
    saturation: when the pool is full if calls go on; None if never.
    full_probability: that it is full early enough in the run for silence to be seen.
    first_frame, fullest_frame: with empty contexts, and with the fullest that there will be.
    """

    retention: str
    final_occupancy: float
    session_ceiling: int
    step_time_ceiling: int | None
    saturation: SaturationForecast | None
    full_probability: float
    first_frame: FrameTime | None
    fullest_frame: FrameTime | None
    verdict: ExpectedVerdict
    reason: str


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A workload on a GPU, both variants.

    is_open: whether calls arrive one by one; then all numbers are for `num_sessions` present from
        the start, which fill a pool at least as early.
    session_tokens_per_s, session_bytes_per_s: mean growth of one session's KV cache.
    step_time_evidence, step_time_source: of the step times; None if there are none.
    """

    model: str
    hardware: str
    num_sessions: int
    is_open: bool
    duration_s: float
    frame_budget_s: float
    frame_prompt_tokens: int
    frame_output_tokens: float
    pool_blocks: int
    block_size_tokens: int
    pool_tokens: int
    pool_bytes: int
    session_tokens_per_s: float
    session_bytes_per_s: float
    step_time_evidence: str | None
    step_time_source: str | None
    unbounded: VariantPrediction
    bounded: VariantPrediction


def predict(run: RunConfig) -> Prediction:
    """Predict a run with its bound, and the same run without.

    run: bounded. Raises: ConfigError if its pool cannot be known.
    """
    pool_blocks, cost = simulated_pool_blocks(run), _known_step_time(run)
    block, kv = run.engine.block_size_tokens, run.model.kv
    tokens_per_s = growth.session_tokens_per_s(run)
    return Prediction(
        model=run.model.title,
        hardware=run.hardware.title,
        num_sessions=run.workload.num_sessions,
        is_open=run.workload.arrivals.is_open,
        duration_s=run.workload.duration_s,
        frame_budget_s=run.model.frame_budget_s,
        frame_prompt_tokens=run.model.prompt_tokens_per_frame,
        frame_output_tokens=growth.frame_output_tokens(run),
        pool_blocks=pool_blocks,
        block_size_tokens=block,
        pool_tokens=tokens_in(pool_blocks, block),
        pool_bytes=kv.pool_bytes(pool_blocks, block),
        session_tokens_per_s=tokens_per_s,
        session_bytes_per_s=tokens_per_s * kv.bytes_per_token,
        step_time_evidence=cost.evidence if cost else None,
        step_time_source=cost.source if cost else None,
        unbounded=_variant(replace(run, retention=Retention()), pool_blocks, cost),
        bounded=_variant(run, pool_blocks, cost),
    )


def _known_step_time(run: RunConfig) -> StepTime | None:
    cost = run.hardware.step_time(run.model.name)
    return cost if cost is not None and cost.scale == run.scale.name else None


def _variant(run: RunConfig, pool_blocks: int, cost: StepTime | None) -> VariantPrediction:
    saturation = growth.saturation(run, pool_blocks)
    # Silence is called after some empty frames: a pool that fills later than that is not seen.
    seen_s = run.workload.duration_s - run.diagnosis.silent_after_frames * run.model.frame_budget_s
    probability = 0.0 if saturation is None else growth.full_probability(run, pool_blocks, seen_s)
    first = frame_time(run, cost, 0.0) if cost else None
    fullest = frame_time(run, cost, _fullest_context(run, pool_blocks)) if cost else None
    verdict, reason = _verdict(run, pool_blocks, saturation, probability, first, fullest)
    return VariantPrediction(
        retention=retention_label(run.retention),
        final_occupancy=growth.final_occupancy(run, pool_blocks),
        session_ceiling=growth.session_ceiling(run, pool_blocks),
        step_time_ceiling=_step_time_ceiling(run, pool_blocks, cost) if cost else None,
        saturation=saturation,
        full_probability=probability,
        first_frame=first,
        fullest_frame=fullest,
        verdict=verdict,
        reason=reason,
    )


def _fullest_context(run: RunConfig, pool_blocks: int) -> float:
    """Most cached tokens that a step reads of a session: its own, its share of the pool, or W."""
    held = run.num_frames * growth.frame_kv_tokens(run)
    share = growth.room_tokens(run, pool_blocks) / run.workload.num_sessions
    most_read = most_read_tokens(run.retention, run.engine.block_size_tokens)
    return min(held, share, held if most_read is None else most_read)


def _step_time_ceiling(run: RunConfig, pool_blocks: int, cost: StepTime) -> int:
    """Most sessions that keep B at their fullest contexts, by bisection: more are never faster."""

    def keeps(num_sessions: int) -> bool:
        more = growth.with_sessions(run, num_sessions)
        return frame_time(more, cost, _fullest_context(more, pool_blocks)).keeps(
            run.model.frame_budget_s
        )

    low, high = 0, 1
    while high < _MOST_SESSIONS and keeps(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _verdict(
    run: RunConfig,
    pool_blocks: int,
    saturation: SaturationForecast | None,
    probability: float,
    first: FrameTime | None,
    fullest: FrameTime | None,
) -> tuple[ExpectedVerdict, str]:
    budget_s = run.model.frame_budget_s
    try:
        check_capacity(run)
        check_engine_starts(run, pool_blocks)
    except HarnessError as error:
        return ExpectedVerdict.refused, str(error)
    if first is not None and not first.keeps(budget_s):
        return ExpectedVerdict.overloaded, "even with empty contexts frames take longer than B"
    is_late = fullest is not None and not fullest.keeps(budget_s)
    late = "; frames are late before that" if is_late else ""
    if saturation is not None and probability >= HIGH:
        return ExpectedVerdict.collapse, f"the pool fills, then calls fall silent for good{late}"
    if saturation is not None and probability > LOW:
        chance = f"the pool is full in time with probability {probability:.2f}{late}"
        return ExpectedVerdict.undecided, chance
    if is_late:
        return ExpectedVerdict.overloaded, "with full contexts frames take longer than B"
    judged = "" if fullest is not None else "; deadlines not judged: no step time is known"
    return ExpectedVerdict.alive, f"the pool is not full during the run{judged}"
