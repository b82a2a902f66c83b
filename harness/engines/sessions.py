"""Calls that outlive a request: a session's frames, cut into requests of as many as fit.

*Rotated*: vLLM kills its engine core, with every session, when one streaming request reaches
max_model_len, so a request ends before that; the next one knows nothing of it. *Recycled*
(retention=recycle): a request ends before it would hold more than W tokens, and the next one begins
with its last frames and what was said to them, encoded again.
Source: seen with vLLM 0.32, V1 runner; the driver is the only place that can see it coming.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from harness.config import OnMaxModelLen, RunConfig
from harness.core import clock
from harness.core.notices import Notice
from harness.engines.base import Frame
from harness.models.front_ends.base import Answered

_REQUEST_ID = re.compile(r"call(-?\d+)\.(\d+)")


class FrameSource:
    """A session's frames, taken in parts.

    taken: those of the part in progress, and what it kept, if the session is cut at all.
    """

    def __init__(self, frames: AsyncIterator[Frame]) -> None:
        self._frames = aiter(frames)
        self._next: Frame | None = None
        self.taken: list[Frame] = []

    async def has_more(self) -> bool:
        """Wait for the next frame; False if none comes any more."""
        if self._next is None:
            self._next = await anext(self._frames, None)
        return self._next is not None

    async def take(self, cut: Cut | None, used_tokens: int) -> AsyncIterator[Frame]:
        """The remaining frames, as they come, until a request that has `used_tokens` is full.

        A request ends with the frame after which the longest one might not fit, so that its blocks
        are free when the next frame comes.
        """
        while await self.has_more():
            frame, self._next = self._next, None
            assert frame is not None
            if cut is None:
                yield frame
                continue
            self.taken.append(frame)
            yield frame
            used_tokens += cut.tokens_of(frame)
            if used_tokens + cut.most_frame_tokens > cut.limit_tokens:
                return

    def forget_all_but(self, cut: Cut) -> list[Frame]:
        """The last frames, as many as the cut keeps; the others are not needed any more."""
        kept, num_tokens = len(self.taken), 0
        while kept:
            num_tokens += cut.tokens_of(self.taken[kept - 1])
            if num_tokens > cut.kept_tokens:
                break
            kept -= 1
        self.taken = self.taken[kept:]
        return list(self.taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a session is cut into requests, in KV positions.

    limit_tokens: most of one request. kept_tokens: most that the next one begins with.
    prompt_tokens: of each frame; most_frame_tokens: of the longest, with its answer.

    Example: limit 118, frames of 59 tokens -> 2 frames a request; with 59 kept, the second request
    begins with the second frame and ends with the third.
    """

    limit_tokens: int
    kept_tokens: int
    prompt_tokens: int
    most_frame_tokens: int

    def tokens_of(self, frame: Frame) -> int:
        """What a frame adds: the last token of an answer is sampled and never computed."""
        return self.prompt_tokens + frame.output_tokens - 1


def cut_of(run: RunConfig) -> Cut | None:
    """Where a run's sessions are cut; None if a session is one request."""
    kept = run.retention
    if kept.is_recycled and kept.window_tokens is not None:
        limit, kept_tokens = kept.window_tokens, kept.kept_tokens
    elif run.engine.on_max_model_len is not OnMaxModelLen.refuse:
        # One token more is sampled than is computed.
        limit, kept_tokens = run.max_model_len - 1, 0
    else:
        return None
    return Cut(
        limit_tokens=limit,
        kept_tokens=kept_tokens,
        prompt_tokens=run.model.prompt_tokens_per_frame,
        most_frame_tokens=run.most_frame_tokens,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """One request of a session.

    kept: frames that are to be encoded again, with their answers, before the first new one.
    frames: the new ones, as they come.
    """

    name: str
    kept: list[Frame]
    frames: AsyncIterator[Frame]


class Said:
    """What was said to the frames of one session, for when they are to be encoded again.

    Answers come in the order of the frames, each of exactly the length that was asked for.
    """

    def __init__(self) -> None:
        self._answers: dict[int, list[int]] = {}
        self._unanswered: deque[Frame] = deque()

    def expect(self, frame: Frame) -> None:
        """A frame was handed over."""
        self._answers[frame.index] = []
        self._unanswered.append(frame)

    def receive(self, token_ids: Sequence[int]) -> None:
        """Tokens came."""
        for token_id in token_ids:
            frame = self._unanswered[0]
            answer = self._answers[frame.index]
            answer.append(token_id)
            if len(answer) == frame.output_tokens:
                self._unanswered.popleft()

    def forget_all_but(self, frames: Sequence[Frame]) -> None:
        """Only these frames will be asked for."""
        self._answers = {frame.index: self._answers[frame.index] for frame in frames}

    def with_answers(self, frames: Sequence[Frame]) -> list[Answered]:
        """The frames, each with what of its answer the cache held: all but the last token."""
        return [
            Answered(frame.audio, frame.index, self._answers[frame.index][:-1]) for frame in frames
        ]


def request_id(session_id: int, part: int) -> str:
    """Name of the `part`-th request of a session. Example: session 3, part 0 -> call3.0."""
    return f"call{session_id}.{part}"


def session_of(vllm_request_id: str) -> int:
    """The session that a request belongs to; vLLM appends a suffix of its own to the id."""
    match = _REQUEST_ID.match(vllm_request_id)
    assert match is not None, f"request id {vllm_request_id} is not ours"
    return int(match.group(1))


async def session_requests(
    run: RunConfig, session_id: int, frames: AsyncIterator[Frame], notices: list[Notice]
) -> AsyncIterator[Part]:
    """Cut a session into requests, each opened once its first frame is there.

    Ask for the next request only after the last has ended. That it was rotated or recycled is added
    to `notices` if anything follows it.
    """
    is_recycled = run.retention.is_recycled
    cut, source = cut_of(run), FrameSource(frames)
    kept: list[Frame] = []
    ended: list[Notice] = []
    for part in itertools.count():
        if not await source.has_more():
            return
        notices += ended
        used_tokens = 0 if cut is None else sum(map(cut.tokens_of, kept))
        num_kept = len(kept)
        yield Part(request_id(session_id, part), kept, source.take(cut, used_tokens))
        num_new = len(source.taken) - num_kept
        if cut is None or (not is_recycled and run.engine.on_max_model_len is OnMaxModelLen.end):
            return
        kept = source.forget_all_but(cut)
        ending = f"{len(kept)} are kept" if is_recycled else "before max_model_len"
        ended = [
            Notice(
                instant_s=clock.now(),
                kind="recycled" if is_recycled else "rotated",
                session_id=session_id,
                detail=f"request {part} ended after {num_new} new frames, {ending}",
            )
        ]


def preemption_notice(instant_s: float, vllm_request_id: str, num_computed_tokens: int) -> Notice:
    """What to tell of a preemption that took `num_computed_tokens` from a session."""
    return Notice(
        instant_s=instant_s,
        kind="preempted",
        session_id=session_of(vllm_request_id),
        detail=f"{num_computed_tokens} computed tokens lost",
    )
