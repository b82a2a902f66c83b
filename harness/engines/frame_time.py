"""How long a frame takes and how busy the engine is, from the step-time model, without simulating.

A frame of c prompt and m output tokens is in m steps; on an idle engine they take `alone`. Of that,
`shared` is what it adds to steps that others are in as well, and the others add theirs:

    alone = step(prompt) + (m - 1) step(one token)          shared = alone - m base - prefill_step
    staggered:     latency = ingest + wait + (alone + (m - 1) q prefill_step) / idle
                   idle = 1 - (N - 1) / B shared
    synchronised:  latency = N ingest + step(N prompts) + (m - 1) step(N tokens)

q is the share of its other steps that hold somebody's prompt: the frames that come during a step,
at most 1. A staggered frame first waits for the step that runs when it comes, and where steps are
decided on ahead, for one more. Where sessions are recycled, a frame is taken with its share of what
is encoded again; one that begins a request takes longer than that.

Source: ours; means, set beside simulated runs in docs/predict.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.config import ArrivalKind, RunConfig
from harness.engines.step_time import step_time_s
from harness.kv.retention import recycling_of
from harness.models.hardware import StepTime
from harness.workload.answers import answer_moments


@dataclass(frozen=True, kw_only=True)
class FrameTime:
    """What a frame is expected to take, all sessions having the same context.

    latency_s: release to last token; None if the engine or the front end cannot keep up.
    engine_load, front_end_load: share of all time that the sessions' frames take; 1 is too much.
    """

    latency_s: float | None
    engine_load: float
    front_end_load: float

    def keeps(self, budget_s: float) -> bool:
        """Whether a frame is expected to be answered within its budget."""
        return self.latency_s is not None and self.latency_s <= budget_s


def frame_time(run: RunConfig, cost: StepTime, context_tokens: float) -> FrameTime:
    """A frame's expected time.

    context_tokens: cached tokens of each session that its steps read.
    """
    num_steps = answer_moments(run).mean
    recycling = recycling_of(run.retention, run.model.kv_tokens_per_frame)
    encoded = 1.0 + (recycling.encoded_again if recycling else 0.0)
    prompt = run.model.prompt_tokens_per_frame + (encoded - 1) * run.model.kv_tokens_per_frame
    read_bytes = context_tokens * run.model.kv.bytes_per_token
    num_sessions, budget_s = run.workload.num_sessions, run.model.frame_budget_s

    def step_s(num_frames: int, *, is_prefill: bool) -> float:
        return step_time_s(
            cost,
            num_requests=num_frames,
            num_prefill_tokens=num_frames * prompt if is_prefill else 0,
            num_frames=num_frames * encoded if is_prefill else 0,
            context_bytes=num_frames * read_bytes,
        )

    alone_s = step_s(1, is_prefill=True) + (num_steps - 1) * step_s(1, is_prefill=False)
    shared_s = alone_s - num_steps * cost.base_s - cost.prefill_step_s
    if run.workload.arrivals is ArrivalKind.synchronised:
        # A prompt that does not fit the step goes into another one.
        num_further_steps = -(-num_sessions * prompt // run.engine.max_num_batched_tokens) - 1
        latency_s: float | None = (
            num_sessions * encoded * cost.ingest_frame_s
            + num_further_steps * (cost.base_s + cost.prefill_step_s)
            + step_s(num_sessions, is_prefill=True)
            + (num_steps - 1) * step_s(num_sessions, is_prefill=False)
        )
    else:
        latency_s = _staggered_s(run, cost, encoded, num_steps, alone_s, shared_s)
    engine_load = num_sessions * shared_s / budget_s
    front_end_load = num_sessions * encoded * cost.ingest_frame_s / budget_s
    return FrameTime(
        latency_s=None if max(engine_load, front_end_load) >= 1 else latency_s,
        engine_load=engine_load,
        front_end_load=front_end_load,
    )


def _staggered_s(
    run: RunConfig,
    cost: StepTime,
    encoded: float,
    num_steps: float,
    alone_s: float,
    shared_s: float,
) -> float | None:
    others_per_s = (run.workload.num_sessions - 1) / run.model.frame_budget_s
    if others_per_s * shared_s >= 1:
        return None
    # All of its steps hold a prompt; or fewer do, and q = others_per_s in_steps_s / num_steps.
    prefill_s = (num_steps - 1) * cost.prefill_step_s
    in_steps_s = (alone_s + prefill_s) / (1 - others_per_s * shared_s)
    if others_per_s * in_steps_s < num_steps:
        in_steps_s = alone_s / (1 - others_per_s * (shared_s + prefill_s / num_steps))
    step_s = in_steps_s / num_steps
    # A step is decided on ahead only if a frame of the running one goes on in it.
    steps_before = 0.5 + (min(1.0, num_steps - 1) if run.is_scheduled_async else 0.0)
    wait_s = min(1.0, others_per_s * in_steps_s) * steps_before * step_s
    return encoded * cost.ingest_frame_s + wait_s + in_steps_s
