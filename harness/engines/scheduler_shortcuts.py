"""vLLM's scheduler without work that decides nothing: same schedule, less time.

    what vLLM 0.32 does at every step                      here
    takes every paused session out of its queue, and       paused sessions wait beside the queue
    puts it back                                           and return to their place in it
    finds that a decoding request needs no new block       a look at the block that it has
    and frees none
    copies token lists and block ids for the worker        nothing: there is no worker
    asks of each token in four calls whether it ends       one comparison of lengths: no token of
    the answer                                             ours is a stop token

For the simulator, whose time this is; tests/engines/test_sim_core.py shows that the decisions are
equal.
Leans on vllm/v1/core/sched/scheduler.py and v1/core/kv_cache_manager.py (0.32).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import CachedRequestData
from vllm.v1.request import RequestStatus

_PAUSED = RequestStatus.WAITING_FOR_STREAMING_REQ


class Shortcuts:
    """Mixin over a vLLM scheduler with the default first-come-first-served policy."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._paused: dict[str, Any] = {}
        # Order of arrival in `kv_holding_waiting`, by request id; a paused session keeps its place.
        self._places: dict[str, int] = {}
        self._next_place = itertools.count()
        self._no_cached_requests = CachedRequestData.make_empty()
        self._is_async = isinstance(self, AsyncScheduler)
        manager = self.kv_cache_manager  # type: ignore[attr-defined]
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
        queue, places = self.kv_holding_waiting, self._places  # type: ignore[attr-defined]
        index = len(queue)
        while index and places[queue[index - 1].request_id] > places[session.request_id]:
            index -= 1
        queue.insert(index, session)

    def _free_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self._paused.pop(request.request_id, None)
        self._places.pop(request.request_id, None)
        return super()._free_request(request, *args, **kwargs)  # type: ignore[misc]

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
            or len(request._all_token_ids) >= self.max_model_len  # type: ignore[attr-defined]
        )
        if is_stopped:
            request.status = RequestStatus.FINISHED_LENGTH_CAPPED
        if self._is_async and not is_stale:
            request.num_output_placeholders -= 1
        return new_token_ids, is_stopped

    def _make_cached_request_data(self, *_: Any) -> CachedRequestData:
        return self._no_cached_requests


def quick_allocation(manager: Any) -> Callable[..., Any]:
    """Return `manager.allocate_slots`, which answers at once for a decode step without effect.

    manager: a KVCacheManager without prefix caching, with one cache group.
    """
    (group,) = manager.coordinator.single_type_managers
    allocate, nothing = manager.allocate_slots, manager.empty_kv_cache_blocks
    block_size, blocks_of = group.block_size, group.req_to_blocks
    window = getattr(group, "sliding_window", None)
    num_kept = getattr(group.kv_cache_spec, "num_sink_blocks", 0)
    running = RequestStatus.RUNNING

    def allocate_slots(request: Any, num_new_tokens: int, **options: Any) -> Any:
        if num_new_tokens == 1 and request.status == running:
            blocks, computed = blocks_of[request.request_id], request.num_computed_tokens
            if computed < len(blocks) * block_size:
                if window is None:
                    return nothing
                # As SinkWindowManager.remove_skipped_blocks: what lies before is freed already.
                settled = computed - request.num_in_flight_tokens
                num_skipped = (settled - window + 1) // block_size
                if num_skipped <= num_kept or blocks[num_skipped - 1].is_null:
                    return nothing
        return allocate(request, num_new_tokens, **options)

    return allocate_slots
