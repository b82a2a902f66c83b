"""Calls that outlive a request: it ends before it would reach max_model_len.

vLLM kills its engine core, with every session, when one streaming request gets there. So a
session's frames are cut into requests of at most as many frames as fit.
Source: seen with vLLM 0.32, V1 runner; the driver is the only place that can see it coming.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterator

from harness.config import OnMaxModelLen, RunConfig
from harness.core import clock
from harness.core.notices import Notice
from harness.engines.base import Frame

_REQUEST_ID = re.compile(r"call(-?\d+)\.(\d+)")


class FrameSource:
    """A session's frames, taken in parts."""

    def __init__(self, frames: AsyncIterator[Frame]) -> None:
        self._frames = aiter(frames)
        self.is_exhausted = False

    async def take(self, max_frames: int | None) -> AsyncIterator[Frame]:
        """At most `max_frames` of the remaining frames, as they come; all of them if None."""
        taken = 0
        while max_frames is None or taken < max_frames:
            try:
                frame = await anext(self._frames)
            except StopAsyncIteration:
                self.is_exhausted = True
                return
            taken += 1
            yield frame


def frames_per_request(max_model_len: int, kv_tokens_per_frame: int) -> int:
    """Frames after which a request must end: one token more is sampled than is computed.

    Example: max_model_len 119, 59 tokens a frame -> 2 frames, 118 computed tokens.
    """
    return (max_model_len - 1) // kv_tokens_per_frame


def request_id(session_id: int, part: int) -> str:
    """Name of the `part`-th request of a session. Example: session 3, part 0 -> call3.0."""
    return f"call{session_id}.{part}"


def session_of(vllm_request_id: str) -> int:
    """The session that a request belongs to; vLLM appends a suffix of its own to the id."""
    match = _REQUEST_ID.match(vllm_request_id)
    assert match is not None, f"request id {vllm_request_id} is not ours"
    return int(match.group(1))


def session_requests(
    run: RunConfig, session_id: int, frames: AsyncIterator[Frame], notices: list[Notice]
) -> Iterator[tuple[str, AsyncIterator[Frame]]]:
    """Cut a session into requests: the name of each, and the frames that it is to answer.

    Ask for the next request only after the last has ended; a rotation is added to `notices` then.
    """
    policy = run.engine.on_max_model_len
    limit = None
    if policy is not OnMaxModelLen.refuse:
        limit = frames_per_request(run.max_model_len, run.model.kv_tokens_per_frame)
    source = FrameSource(frames)
    for part in itertools.count():
        yield request_id(session_id, part), source.take(limit)
        if source.is_exhausted or policy is OnMaxModelLen.end:
            return
        detail = f"request {part} ended after {limit} frames, before max_model_len"
        notices.append(
            Notice(instant_s=clock.now(), kind="rotated", session_id=session_id, detail=detail)
        )


def preemption_notice(instant_s: float, vllm_request_id: str, num_computed_tokens: int) -> Notice:
    """What to tell of a preemption that took `num_computed_tokens` from a session."""
    return Notice(
        instant_s=instant_s,
        kind="preempted",
        session_id=session_of(vllm_request_id),
        detail=f"{num_computed_tokens} computed tokens lost",
    )
