"""vLLM's scheduler and KV-cache manager without a model: what its engine core does between steps.

A request "samples" one token a step once its prompt is computed; what a step would have cost on a
GPU is handed out with it. There is no clock in here: whoever drives it calls `launch`, lets the
step's seconds pass, and calls `complete`.
Leans on vllm/v1/engine/core.py and vllm/v1/core/sched/scheduler.py (0.32).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import (
    get_request_block_hasher,
    init_none_hash,
    resolve_kv_cache_block_sizes,
)
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
    replace_as,
)
from vllm.v1.outputs import EMPTY_MODEL_RUNNER_OUTPUT, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from harness.config import RunConfig
from harness.core.errors import EngineError
from harness.core.pool_state import PoolState
from harness.engines.scheduler_shortcuts import Shortcuts
from harness.engines.scheduler_state import SchedulerCounters, read_state
from harness.engines.sim_args import kv_dtype, simulated_step_time, vllm_config
from harness.engines.step_time import step_time_s
from harness.engines.step_work import StepWork
from harness.kv.retention import most_read_tokens
from harness.vllm_plugin.self_check import BoundReport, inspect_scheduler
from harness.vllm_plugin.spec import bounded_spec, register_spec

# What every step samples: no special token of any model, and every answer is as long as asked for.
_SAMPLED_TOKEN = 7
# Name of a request, tokens that it was given, and whether it is gone now.
HandOut = Callable[[str, int, bool], None]


@dataclass(frozen=True, slots=True)
class Step:
    """A decision of the scheduler that a GPU would now compute.

    seconds: what that takes. plan, sampled: vLLM's SchedulerOutput, and the tokens by request.
    """

    seconds: float
    work: StepWork
    plan: Any
    sampled: list[list[int]]


@dataclass(frozen=True, slots=True)
class Preempted:
    """A request that lost its blocks, and what had been computed of it."""

    request_id: str
    num_computed_tokens: int


class _TokenRequest(Request):  # type: ignore[misc]
    """A request of token ids alone: vLLM asks five times a step and request what else it has."""

    num_encoder_inputs = 0
    has_encoder_inputs = False
    use_structured_output = False

    def is_finished(self) -> bool:
        return bool(self.status > RequestStatus.PREEMPTED)


class _Noting:
    """Mixin over a vLLM scheduler that keeps what was preempted, and where each frame begins.

    chunk_starts: request id -> position of the first token of each of its frames, in order.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.preempted: list[Preempted] = []
        self.chunk_starts: dict[str, list[int]] = defaultdict(lambda: [0])

    def _update_request_as_session(self, session: Any, update: Any) -> None:
        super()._update_request_as_session(session, update)  # type: ignore[misc]
        start = session.num_tokens - len(update.prompt_token_ids or ())
        self.chunk_starts[session.request_id].append(start)

    def _preempt_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.preempted.append(Preempted(request.request_id, request.num_computed_tokens))
        return super()._preempt_request(request, *args, **kwargs)  # type: ignore[misc]


class _Stock(_Noting, Scheduler):  # type: ignore[misc]
    pass


class _StockAsync(_Noting, AsyncScheduler):  # type: ignore[misc]
    pass


class _Short(_Noting, Shortcuts, Scheduler):  # type: ignore[misc]
    pass


class _ShortAsync(_Noting, Shortcuts, AsyncScheduler):  # type: ignore[misc]
    pass


# (scheduler_shortcuts, async) -> class
_SCHEDULERS = {
    (False, False): _Stock,
    (False, True): _StockAsync,
    (True, False): _Short,
    (True, True): _ShortAsync,
}


class SchedulerCore:
    """A fresh scheduler for one run, at the run's geometry, pool and bound.

    depth: steps that may be decided on before the first of them is completed.
    """

    def __init__(self, run: RunConfig, cache: Path) -> None:
        """Build it. Raises: EngineError if the bound is not in force."""
        config = vllm_config(run, cache)
        kv_cache = _kv_cache_config(run, config.cache_config.num_gpu_blocks)
        block_size, hash_block_size = resolve_kv_cache_block_sizes(kv_cache, config)
        scheduler = _SCHEDULERS[run.engine.scheduler_shortcuts, run.is_scheduled_async]
        self._scheduler: Any = scheduler(
            vllm_config=config,
            kv_cache_config=kv_cache,
            structured_output_manager=StructuredOutputManager(config),
            block_size=block_size,
            hash_block_size=hash_block_size,
            log_stats=False,
        )
        self.bound: BoundReport = inspect_scheduler(self._scheduler)
        self.depth: int = config.max_concurrent_batches
        self._hasher = None
        if config.cache_config.enable_prefix_caching:
            hash_function = get_hash_fn_by_name(config.cache_config.prefix_caching_hash_algo)
            init_none_hash(hash_function)
            self._hasher = get_request_block_hasher(hash_block_size, hash_function)
        self._counters = SchedulerCounters()
        self._cost = simulated_step_time(run)
        self._bytes_per_token = run.model.kv.bytes_per_token
        self._max_model_len = run.max_model_len
        most_read = most_read_tokens(run.retention, run.engine.block_size_tokens)
        self._most_read_tokens = self._max_model_len if most_read is None else most_read
        self._sampling: dict[int, SamplingParams] = {}

    def add(
        self,
        request_id: str,
        prompt_token_ids: list[int],
        output_tokens: int,
        arrival_s: float,
        *,
        starts: list[int],
    ) -> None:
        """Start a session's request, or extend it by one chunk.

        starts: where in the chunk each of its frames begins; several in the first chunk of a
            recycled request.
        """
        if len(starts) > 1:
            self._scheduler.chunk_starts[request_id] = starts
        self._scheduler.add_request(
            self._request(request_id, prompt_token_ids, output_tokens, arrival_s, resumable=True)
        )

    def close(self, request_id: str, arrival_s: float) -> bool:
        """No chunk follows; returns whether the request is gone already."""
        self._scheduler.add_request(self._request(request_id, [0], 1, arrival_s, resumable=False))
        return request_id not in self._scheduler.requests

    def abort(self, request_id: str) -> None:
        """Drop a request and free its blocks."""
        self._scheduler.finish_requests(request_id, RequestStatus.FINISHED_ABORTED)

    def _request(
        self,
        request_id: str,
        prompt_token_ids: list[int],
        output_tokens: int,
        arrival_s: float,
        *,
        resumable: bool,
    ) -> Request:
        sampling = self._sampling.get(output_tokens)
        if sampling is None:
            sampling = self._sampling[output_tokens] = SamplingParams(
                max_tokens=output_tokens,
                min_tokens=output_tokens,
                ignore_eos=True,
                temperature=0.0,
                output_kind=RequestOutputKind.DELTA,
                detokenize=False,
            )
        return _TokenRequest(
            request_id,
            prompt_token_ids,
            sampling,
            None,
            arrival_time=arrival_s,
            block_hasher=self._hasher,
            resumable=resumable,
        )

    def has_work(self) -> bool:
        """Whether a step is to be decided on, be it an empty one."""
        return bool(self._scheduler.has_requests())

    def launch(self) -> Step | None:
        """Let the scheduler decide on a step; None if nothing can run.

        Raises: EngineError if a request reached max_model_len, where vLLM's worker dies.
        """
        plan = self._scheduler.schedule()
        self._counters.num_steps += 1
        if not plan.num_scheduled_tokens:
            self._scheduler.update_from_output(plan, EMPTY_MODEL_RUNNER_OUTPUT)
            return None
        self._counters.num_scheduled_tokens += plan.total_num_scheduled_tokens
        requests, most_read = self._scheduler.requests, self._most_read_tokens
        chunk_starts = self._scheduler.chunk_starts
        num_prefill_tokens = num_frames = num_read_tokens = 0
        sampled: list[list[int]] = []
        for request_id, num_tokens in plan.num_scheduled_tokens.items():
            request = requests[request_id]
            # The scheduler has advanced it already.
            computed = request.num_computed_tokens
            if computed >= self._max_model_len:
                raise EngineError(
                    f"request {request_id} reached max_model_len={self._max_model_len}, where "
                    "vLLM's engine core dies with every session"
                )
            num_read_tokens += computed if computed < most_read else most_read
            first = computed - num_tokens
            if first < request.num_prompt_tokens:
                num_prefill_tokens += num_tokens
                # A frame's audio is encoded whole, in the step that begins it.
                starts = chunk_starts[request_id]
                num_frames += bisect_left(starts, computed) - bisect_left(starts, first)
            sampled.append([] if request.is_prefill_chunk else [_SAMPLED_TOKEN])
        seconds = step_time_s(
            self._cost,
            num_requests=len(sampled),
            num_prefill_tokens=num_prefill_tokens,
            num_frames=num_frames,
            context_bytes=num_read_tokens * self._bytes_per_token,
        )
        work = StepWork(len(sampled), num_prefill_tokens, num_frames, num_read_tokens)
        return Step(seconds, work, plan, sampled)

    def complete(self, step: Step, hand_out: HandOut) -> None:
        """Give the scheduler what the step sampled, and hand out whose tokens these are."""
        request_ids = list(step.plan.num_scheduled_tokens)
        output = ModelRunnerOutput(
            req_ids=request_ids,
            req_id_to_index={name: index for index, name in enumerate(request_ids)},
            sampled_token_ids=step.sampled,
        )
        requests = self._scheduler.requests
        for group in self._scheduler.update_from_output(step.plan, output).values():
            for answer in group.outputs:
                name = answer.request_id
                is_last = answer.finish_reason is not None and name not in requests
                hand_out(name, len(answer.new_token_ids), is_last)

    def take_preempted(self) -> list[Preempted]:
        """Preemptions since the last call, which is to come after each `launch`."""
        taken: list[Preempted] = self._scheduler.preempted
        self._scheduler.preempted = []
        self._counters.num_preemptions += len(taken)
        return taken

    def state(self, stamp_s: float) -> PoolState:
        """The scheduler as it is now."""
        return read_state(self._scheduler, self._counters, stamp_s=stamp_s)


def _kv_cache_config(run: RunConfig, num_blocks: int) -> KVCacheConfig:
    """One cache group of all layers, unbounded or bounded, as the live engine's worker reports."""
    register_spec()
    kv = run.model.kv
    spec = FullAttentionSpec(
        block_size=run.engine.block_size_tokens,
        num_kv_heads=kv.num_kv_heads,
        head_size=kv.head_size,
        dtype=getattr(torch, kv_dtype(kv)),
    )
    if run.retention.native:
        spec = replace_as(
            spec,
            SlidingWindowSpec,
            drop=("attention_chunk_size", "non_causal"),
            sliding_window=run.retention.window_tokens,
        )
    elif run.retention.is_evicting:
        spec = bounded_spec(spec, run.retention)
    layers = [f"model.layers.{index}.attn" for index in range(kv.num_layers)]
    return KVCacheConfig(
        num_blocks=num_blocks,
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec(layers, spec)],
    )
