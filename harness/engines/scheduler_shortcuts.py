"""vLLM's scheduler without work that decides nothing: same schedule, less time.

    what vLLM 0.32 does at every step                      here
    takes every paused session out of its queue, and       paused sessions wait beside the queue
    puts it back                                           and return to their place in it
    asks in eight calls whether a decoding request needs   a look at the blocks that it has, and
    a new block and has one to free                        the call that does it
    asks of each token scheduled whether it is of a        nothing: no answer of ours is
    structured answer
    copies token lists and block ids for the worker        nothing: there is no worker
    asks of each token in four calls whether it ends       one comparison of lengths: no token of
    the answer                                             ours is a stop token
    asks of each token for log probabilities, drafts,      nothing: ours has none of these
    pooled, encoded and transferred results

For the simulator, whose time this is; tests/engines/test_scheduler_shortcuts.py shows that the
decisions are equal.
Leans on vllm/v1/core/sched/scheduler.py and v1/core/kv_cache_manager.py (0.32).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import CachedRequestData
from vllm.v1.core.sched.utils import remove_all
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.request import RequestStatus

_PAUSED = RequestStatus.WAITING_FOR_STREAMING_REQ
_PREEMPTED = RequestStatus.PREEMPTED
_RUNNING = RequestStatus.RUNNING


class Shortcuts:
    """Mixin over a vLLM scheduler with the default first-come-first-served policy."""

    # Set by vLLM's scheduler, which has no types here; `super()` is still unknown to mypy.
    kv_cache_manager: Any
    requests: dict[str, Any]
    running: list[Any]
    waiting: Any
    kv_holding_waiting: Any
    deferred_waiting: set[Any]
    defer_block_free: bool
    max_model_len: int
    _inflight_prefills: set[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._paused: dict[str, Any] = {}
        # Order of arrival in `kv_holding_waiting`, by request id; a paused session keeps its place.
        self._places: dict[str, int] = {}
        self._next_place = itertools.count()
        self._no_cached_requests = CachedRequestData.make_empty()
        self._is_async = isinstance(self, AsyncScheduler)
        manager = self.kv_cache_manager
        self._is_caching = manager.enable_caching
        if not self._is_caching:
            manager.allocate_slots = quick_allocation(manager)
            # A scheduled request's blocks: they grow with its age, and only a worker wants them.
            manager.get_blocks = lambda _: manager.empty_kv_cache_blocks

    def get_request_counts(self) -> tuple[int, int]:
        """Count running and waiting requests; paused ones are waiting."""
        num_running, num_waiting = super().get_request_counts()  # type: ignore[misc]
        return num_running, num_waiting + len(self._paused)

    def _enqueue_waiting_request(self, request: Any) -> None:
        if self._holds_kv_blocks(request):  # type: ignore[attr-defined]
            self._places[request.request_id] = next(self._next_place)
            if request.status == _PAUSED:
                self._paused[request.request_id] = request
                return
        super()._enqueue_waiting_request(request)  # type: ignore[misc]

    def _update_request_as_session(self, session: Any, update: Any) -> None:
        super()._update_request_as_session(session, update)  # type: ignore[misc]
        if self._paused.pop(session.request_id, None) is None:
            return
        queue, places = self.kv_holding_waiting, self._places
        index = len(queue)
        while index and places[queue[index - 1].request_id] > places[session.request_id]:
            index -= 1
        queue.insert(index, session)

    def _free_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self._paused.pop(request.request_id, None)
        self._places.pop(request.request_id, None)
        return super()._free_request(request, *args, **kwargs)  # type: ignore[misc]

    def update_from_output(self, plan: Any, output: Any) -> dict[int, EngineCoreOutputs]:
        """Take in what a step has sampled; vLLM's own methods handle an answer that ends.

        output: ModelRunnerOutput in the order of the plan, of one or no token a request.
        """
        if not plan.num_scheduled_tokens or self.defer_block_free:
            answers: dict[int, EngineCoreOutputs] = super().update_from_output(plan, output)  # type: ignore[misc]
            return answers
        requests = self.requests
        tokens: list[EngineCoreOutput] = []
        stopped_running: set[Any] = set()
        stopped_preempted: set[Any] = set()
        for (name, num_tokens), sampled in zip(
            plan.num_scheduled_tokens.items(), output.sampled_token_ids, strict=True
        ):
            request = requests.get(name)
            if request is None:
                continue
            request.num_in_flight_tokens -= num_tokens
            # Sampled before the request was preempted or its answer ended.
            is_stale = request.num_stale_output_tokens > 0
            if is_stale:
                request.num_stale_output_tokens -= num_tokens
            status = request.status
            if not sampled or status > _PREEMPTED or (is_stale and request.drop_stale_output):
                continue
            sampled, is_stopped = self._update_request_with_output(request, sampled, is_stale)
            reason = None
            if is_stopped:
                reason = request.get_finished_reason()
                if self._handle_stopped_request(request):  # type: ignore[attr-defined]
                    self._free_request(request)
                (stopped_running if status == _RUNNING else stopped_preempted).add(request)
            tokens.append(
                EngineCoreOutput(request_id=name, new_token_ids=sampled, finish_reason=reason)
            )
        if stopped_running:
            self.running = remove_all(self.running, stopped_running)
        if stopped_preempted:
            self.waiting.remove_requests(stopped_preempted)
            self.kv_holding_waiting.remove_requests(stopped_preempted)
            self.deferred_waiting.difference_update(stopped_preempted)
        return {0: EngineCoreOutputs(outputs=tokens)}

    def _update_request_with_output(
        self, request: Any, new_token_ids: list[int], is_stale: bool = False
    ) -> tuple[list[int], bool]:
        if self._is_caching or len(new_token_ids) != 1:
            updated: tuple[list[int], bool] = super()._update_request_with_output(  # type: ignore[misc]
                request, new_token_ids, **({"is_stale": is_stale} if self._is_async else {})
            )
            return updated
        request._output_token_ids.append(new_token_ids[0])
        request._all_token_ids.append(new_token_ids[0])
        is_stopped = (
            len(request._output_token_ids) >= request.max_tokens
            or len(request._all_token_ids) >= self.max_model_len
        )
        if is_stopped:
            request.status = RequestStatus.FINISHED_LENGTH_CAPPED
        if self._is_async and not is_stale:
            request.num_output_placeholders -= 1
        return new_token_ids, is_stopped

    def _update_after_schedule(self, plan: Any) -> None:
        if self.defer_block_free:
            super()._update_after_schedule(plan)  # type: ignore[misc]
            return
        requests, prefills = self.requests, self._inflight_prefills
        for name, num_tokens in plan.num_scheduled_tokens.items():
            request = requests[name]
            computed = request.num_computed_tokens = request.num_computed_tokens + num_tokens
            request.num_in_flight_tokens += num_tokens
            num_ahead = request.num_output_placeholders
            if computed < len(request._all_token_ids) + num_ahead:
                request.is_prefill_chunk = True
            else:
                request.is_prefill_chunk = False
                prefills.discard(request)
                if self._is_async:
                    request.num_output_placeholders = num_ahead + 1
        self.finished_req_ids: set[str] = set()
        self.reset_preempted_req_ids: set[str] = set()

    def _reserve_prefill_lookahead(self, request: Any, num_computed: int, num_new: int) -> int:
        """Reserve nothing: no token is drafted."""
        return num_new if num_new > 0 else 0

    def _make_cached_request_data(self, *_: Any) -> CachedRequestData:
        return self._no_cached_requests


def quick_allocation(manager: Any) -> Callable[..., Any]:
    """Return `manager.allocate_slots`, which for a decode step calls only what has an effect.

    manager: a KVCacheManager without prefix caching, with one cache group.
    """
    (group,) = manager.coordinator.single_type_managers
    allocate, nothing = manager.allocate_slots, manager.empty_kv_cache_blocks
    num_free = manager.block_pool.get_num_free_blocks
    free_skipped, extend = group.remove_skipped_blocks, group.allocate_new_blocks
    block_size, blocks_of = group.block_size, group.req_to_blocks
    max_model_len = manager.max_model_len
    window = getattr(group, "sliding_window", None)
    num_kept = getattr(group.kv_cache_spec, "num_sink_blocks", 0)

    def allocate_slots(request: Any, num_new_tokens: int, **options: Any) -> Any:
        if num_new_tokens != 1 or request.status != _RUNNING:
            return allocate(request, num_new_tokens, **options)
        name, computed = request.request_id, request.num_computed_tokens
        blocks = blocks_of[name]
        if window is not None:
            # As SinkWindowManager.remove_skipped_blocks: what lies before is freed already.
            settled = computed - request.num_in_flight_tokens
            num_skipped = (settled - window + 1) // block_size
            if num_skipped > num_kept and not blocks[num_skipped - 1].is_null:
                free_skipped(name, settled)
        if computed >= len(blocks) * block_size:
            if not num_free() or computed >= max_model_len:
                return allocate(request, num_new_tokens, **options)
            extend(name, computed + 1, computed + 1)
        # The new blocks' ids, which only a worker wants.
        return nothing

    return allocate_slots
