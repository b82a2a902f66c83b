"""Calls that outlive a request: it ends before it would reach max_model_len.

vLLM kills its engine core, with every session, when one streaming request gets there. So a
session's frames are cut into requests of at most as many frames as fit.
Source: seen with vLLM 0.32, V1 runner; the driver is the only place that can see it coming.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

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
