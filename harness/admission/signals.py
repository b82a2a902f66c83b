"""What a controller takes a frame's latency to be: the contract's, or what the paper's gateway saw.

Both are fed releases and tokens as they happen, and answer with the latencies that became known.
Instants never go back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

# (session, latency in seconds)
Known = tuple[int, float]
NEVER = float("inf")


class LatencySignal(Protocol):
    """Turns releases and tokens into latencies."""

    def released(self, session_id: int, release_s: float, expected_tokens: int) -> list[Known]:
        """A frame was released."""

    def tokens(self, session_id: int, num_tokens: int, instant_s: float) -> list[Known]:
        """Tokens of a session arrived."""

    def due(self, instant_s: float) -> list[Known]:
        """What silence alone has made known by now."""

    def left(self, session_id: int) -> None:
        """A session has gone; its open frames are nobody's any more."""


@dataclass(slots=True)
class _Open:
    session_id: int
    release_s: float
    missing_tokens: int
    is_known: bool = False


class ContractLatency:
    """Release to last token; infinite once a frame is incomplete at its deadline.

    frame_budget_s: B, the deadline.
    """

    def __init__(self, frame_budget_s: float) -> None:
        self._budget_s = frame_budget_s
        self._by_session: dict[int, deque[_Open]] = {}
        self._by_deadline: deque[_Open] = deque()

    def released(self, session_id: int, release_s: float, expected_tokens: int) -> list[Known]:
        """Nothing is known yet."""
        frame = _Open(session_id, release_s, expected_tokens)
        self._by_session.setdefault(session_id, deque()).append(frame)
        self._by_deadline.append(frame)
        return []

    def tokens(self, session_id: int, num_tokens: int, instant_s: float) -> list[Known]:
        """Frames that are complete now and were not judged at their deadline already."""
        known: list[Known] = []
        frames = self._by_session.get(session_id)
        while frames and num_tokens:
            frame = frames[0]
            taken = min(num_tokens, frame.missing_tokens)
            num_tokens -= taken
            frame.missing_tokens -= taken
            if frame.missing_tokens:
                break
            frames.popleft()
            if not frame.is_known:
                frame.is_known = True
                known.append((session_id, instant_s - frame.release_s))
        return known

    def due(self, instant_s: float) -> list[Known]:
        """Frames that have missed their deadline since the last call."""
        known: list[Known] = []
        frames = self._by_deadline
        while frames and (frames[0].is_known or frames[0].release_s + self._budget_s < instant_s):
            frame = frames.popleft()
            if not frame.is_known:
                frame.is_known = True
                known.append((frame.session_id, NEVER))
        return known

    def left(self, session_id: int) -> None:
        """Forget the session's open frames."""
        for frame in self._by_session.pop(session_id, ()):
            frame.is_known = True


class GatewayWait:
    """The paper's: from the tick until a token is buffered, at most `limit_s`; it never exceeds B.

    Source: PAPER 3, "the worker waits at most 0.8 B". Frame by frame it equals `tick_wait_s` of the
    frame table.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._arrived: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        self._waiting: dict[int, float] = {}

    def released(self, session_id: int, release_s: float, expected_tokens: int) -> list[Known]:
        """A wait of 0 if something is buffered."""
        arrived = self._arrived.get(session_id, 0)
        if arrived > self._taken.get(session_id, 0):
            self._taken[session_id] = arrived
            return [(session_id, 0.0)]
        self._waiting[session_id] = release_s
        return []

    def tokens(self, session_id: int, num_tokens: int, instant_s: float) -> list[Known]:
        """The end of a wait, if there was one."""
        arrived = self._arrived[session_id] = self._arrived.get(session_id, 0) + 1
        release_s = self._waiting.pop(session_id, None)
        if release_s is None:
            return []
        self._taken[session_id] = arrived
        return [(session_id, instant_s - release_s)]

    def due(self, instant_s: float) -> list[Known]:
        """Waits that have reached the limit: the gateway returns what it has, nothing."""
        ended: list[Known] = []
        # Kept in the order of their releases: the first is the oldest.
        for session_id, release_s in self._waiting.items():
            if release_s + self._limit_s >= instant_s:
                break
            ended.append((session_id, self._limit_s))
        for session_id, _ in ended:
            del self._waiting[session_id]
        return ended

    def left(self, session_id: int) -> None:
        """Forget the session."""
        for notes in (self._arrived, self._taken, self._waiting):
            notes.pop(session_id, None)
