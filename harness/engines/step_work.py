"""What each step of an engine computed and how long it took, written down as it happens.

An engine writes it only if its run asks for it (`engine.record_steps`): 48 bytes a step in one
system call, so nothing is kept in memory and nothing is lost to a kill.
Leans on vllm/v1/core/sched/output.py (0.32): SchedulerOutput.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from harness.core.errors import EngineError

STEP_LOG = "steps.bin"
# Two hours of 2 ms steps; a longer log says nothing more of what a step costs.
MAX_STEPS = 3_600_000
_RECORD = struct.Struct("<dd4q")


class StepWork(NamedTuple):
    """What one step computes.

    num_requests: in the step. num_prefill_tokens: prompt tokens, of continued sessions as well.
    num_frames: frames whose audio is encoded.
    num_context_tokens: cached tokens that its attention reads, over all requests.
    """

    num_requests: int
    num_prefill_tokens: int
    num_frames: int
    num_context_tokens: int


def planned_work(plan: Any, requests: dict[str, Any], most_read_tokens: int | None) -> StepWork:
    """The work in a scheduler's decision.

    plan: vLLM's SchedulerOutput, just made. requests: the scheduler's, by id.
    most_read_tokens: of one request, as the retention bounds it; None: all that it has.
    """
    num_prefill_tokens = num_context_tokens = 0
    for request_id, num_tokens in plan.num_scheduled_tokens.items():
        request = requests[request_id]
        # The scheduler has advanced it already.
        computed = request.num_computed_tokens
        if computed - num_tokens < request.num_prompt_tokens:
            num_prefill_tokens += num_tokens
        num_context_tokens += (
            computed if most_read_tokens is None else min(computed, most_read_tokens)
        )
    return StepWork(
        num_requests=len(plan.num_scheduled_tokens),
        num_prefill_tokens=num_prefill_tokens,
        num_frames=sum(map(len, plan.scheduled_encoder_inputs.values())),
        num_context_tokens=num_context_tokens,
    )


class StepLog:
    """Appends steps to a file; only the engine's scheduler writes it."""

    def __init__(self, path: Path) -> None:
        """Create the file. Raises: EngineError if it cannot be written."""
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise EngineError(f"cannot write {path}: {error.strerror}") from error
        self._num_steps = 0

    def write(self, begin_s: float, end_s: float, work: StepWork) -> None:
        """Append one step; past MAX_STEPS nothing is written.

        begin_s, end_s: from the scheduler's decision until it has taken in what was sampled, on the
            run's clock.
        """
        if self._num_steps < MAX_STEPS:
            self._file.write(_RECORD.pack(begin_s, end_s, *work))
            self._num_steps += 1

    def close(self) -> None:
        """Close the file; what was written stays."""
        self._file.close()


def read_step_log(path: Path, *, start_s: float) -> pd.DataFrame:
    """Every whole record of a log, as in telemetry's STEPS schema.

    start_s: the run's start, on the clock of the records; earlier steps have a negative `begin_s`.
    """
    content = path.read_bytes()
    whole = len(content) - len(content) % _RECORD.size
    names = ["begin_s", "end_s", *StepWork._fields]
    table = pd.DataFrame(_RECORD.iter_unpack(content[:whole]), columns=names)
    table[["begin_s", "end_s"]] -= start_s
    return table
