"""vLLM's own scheduler, with its state published where a stall cannot hide it.

Set as `scheduler_cls`, vLLM's option for this. Scheduling itself is untouched: after each decision
the numbers are copied to a shared page, and each preemption is appended to a small log.
Leans on vllm/v1/core/sched/scheduler.py (0.32): `schedule`, `finish_requests`, `_preempt_request`.
"""

from __future__ import annotations

import json
import time
from collections import deque
from pathlib import Path
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from harness.core.errors import EngineError
from harness.core.files import write_json
from harness.core.pool_state import PoolStatePage
from harness.engines.scheduler_state import SchedulerCounters, read_state
from harness.engines.step_work import STEP_LOG, StepLog, StepWork, planned_work
from harness.engines.vllm_args import OBSERVER_KEY, STEP_LOG_KEY
from harness.kv.retention import Retention, most_read_tokens
from harness.vllm_plugin.config import retention_from
from harness.vllm_plugin.host_bound import HostBound
from harness.vllm_plugin.self_check import inspect_scheduler

STATE_PAGE = "pool_state.page"
PREEMPTION_LOG = "preemptions.jsonl"
BOUND_REPORT = "bound.json"


class _Observer:
    """Mixin over a vLLM scheduler; `additional_config[OBSERVER_KEY]` says where to write."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = self.vllm_config  # type: ignore[attr-defined]
        directory = Path(config.additional_config[OBSERVER_KEY])
        self._page = PoolStatePage(directory / STATE_PAGE)
        self._preemption_log = directory / PREEMPTION_LOG
        self._counters = SchedulerCounters()
        try:
            report = inspect_scheduler(self).as_dict()
        except EngineError as error:
            # The engine core's own message to its parent is only that it failed.
            write_json(directory / BOUND_REPORT, {"error": str(error)})
            raise
        write_json(directory / BOUND_REPORT, report)
        self._step_log: StepLog | None = None
        if config.additional_config[STEP_LOG_KEY]:
            self._step_log = StepLog(directory / STEP_LOG)
        kept = retention_from(config.additional_config) or Retention()
        self._most_read_tokens = most_read_tokens(kept, config.cache_config.block_size)
        self._in_flight: deque[tuple[float, StepWork]] = deque()
        self._publish()

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        begin_s = time.monotonic()
        output = super().schedule(*args, **kwargs)  # type: ignore[misc]
        self._counters.num_steps += 1
        self._counters.num_scheduled_tokens += output.total_num_scheduled_tokens
        self._publish()
        if self._step_log is not None and output.total_num_scheduled_tokens:
            requests = self.requests  # type: ignore[attr-defined]
            work = planned_work(output, requests, self._most_read_tokens)
            self._in_flight.append((begin_s, work))
        return output

    def finish_requests(self, *args: Any, **kwargs: Any) -> Any:
        finished = super().finish_requests(*args, **kwargs)  # type: ignore[misc]
        self._publish()
        return finished

    def update_from_output(self, plan: Any, *args: Any, **kwargs: Any) -> Any:
        # Sessions pause and requests end here, and no further step may follow.
        outputs = super().update_from_output(plan, *args, **kwargs)  # type: ignore[misc]
        self._publish()
        if self._step_log is not None and plan.total_num_scheduled_tokens:
            # Steps end in the order in which they were decided on.
            begin_s, work = self._in_flight.popleft()
            self._step_log.write(begin_s, time.monotonic(), work)
        return outputs

    def _preempt_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self._counters.num_preemptions += 1
        entry = {
            "t_s": time.monotonic(),
            "request_id": request.request_id,
            "num_computed_tokens": request.num_computed_tokens,
        }
        with self._preemption_log.open("a") as log:
            log.write(json.dumps(entry) + "\n")
        return super()._preempt_request(request, *args, **kwargs)  # type: ignore[misc]

    def _publish(self) -> None:
        self._page.write(read_state(self, self._counters, stamp_s=time.monotonic()))


class ObservedScheduler(_Observer, HostBound, Scheduler):  # type: ignore[misc]
    """vLLM's synchronous scheduler, observed."""


class ObservedAsyncScheduler(_Observer, HostBound, AsyncScheduler):  # type: ignore[misc]
    """vLLM's asynchronous scheduler (the default on CUDA), observed."""
