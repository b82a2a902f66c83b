"""One reading of a vLLM scheduler, the same for the live engine's and the simulated one.

Leans on vllm/v1/core/sched/scheduler.py (0.32): `requests`, `running`, `waiting`,
`num_waiting_for_streaming_input`, and the block pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm.v1.request import RequestStatus

from harness.core.pool_state import PoolState


@dataclass(slots=True)
class SchedulerCounters:
    """What has happened in a scheduler since it was made."""

    num_preemptions: int = 0
    num_steps: int = 0
    num_scheduled_tokens: int = 0


def read_state(scheduler: Any, counters: SchedulerCounters, *, stamp_s: float) -> PoolState:
    """The state of `scheduler` (a vLLM Scheduler) as of `stamp_s` on the run's clock."""
    pool = scheduler.kv_cache_manager.block_pool
    # One block is vLLM's null block, which no request can hold.
    total = pool.num_gpu_blocks - 1
    num_running = len(scheduler.running)
    num_paused = scheduler.num_waiting_for_streaming_input
    return PoolState(
        stamp_s=stamp_s,
        total_blocks=total,
        used_blocks=total - pool.get_num_free_blocks(),
        num_running=num_running,
        # Not the lengths of the queues: an asynchronous scheduler can lose a session from both.
        num_waiting=len(scheduler.requests) - num_running - num_paused,
        num_paused=num_paused,
        num_preempted_waiting=sum(
            request.status == RequestStatus.PREEMPTED for request in scheduler.waiting
        ),
        num_preemptions=counters.num_preemptions,
        num_steps=counters.num_steps,
        num_scheduled_tokens=counters.num_scheduled_tokens,
    )
