"""Open-loop replay: every frame is released on its instant, whatever the engine did with the last.

One pacer walks the schedule and puts frames into per-session queues; one task a session carries the
queue into `Engine.converse` and notes the tokens that come back. The pacer never waits for anything
but the clock, so its own lateness (release lag) is the machine's and is recorded as such.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import pandas as pd

from harness.core import clock
from harness.core.errors import EngineError
from harness.engines.base import Engine, Frame
from harness.telemetry.recorder import Recorder
from harness.workload.audio import Samples

_HANG_SLACK_S = 0.05


class FrameAudio(Protocol):
    """The audio of one session."""

    def frame(self, index: int) -> Samples:
        """Frame `index`, from 0: float32, shape (num_samples,)."""


class Replayer:
    """Replays one schedule into one engine.

    schedule: as in telemetry's SCHEDULE schema, ordered by release.
    streams: audio of session i at index i.
    """

    def __init__(
        self,
        schedule: pd.DataFrame,
        streams: Sequence[FrameAudio],
        engine: Engine,
        recorder: Recorder,
        *,
        frame_budget_s: float,
    ) -> None:
        columns = ("release_s", "session_id", "frame", "output_tokens")
        self._releases = list(zip(*(schedule[column].tolist() for column in columns), strict=True))
        self._last_deadline_s = float(schedule["release_s"].max()) + frame_budget_s
        self._streams = streams
        self._engine = engine
        self._recorder = recorder
        self._queues: dict[int, asyncio.Queue[Frame]] = {}
        self._tasks: list[asyncio.Task[Any]] = []
        self._engine_died = asyncio.Event()

    async def run(self, start_s: float, *, hang_timeout_s: float) -> None:
        """Replay from `start_s` until the last deadline, or until the engine dies.

        An engine's death is recorded, not raised: what was measured until then stands. An engine
        whose scheduler publishes nothing for `hang_timeout_s`, although frames keep coming, is dead
        as well.
        """
        self._recorder.started(start_s)
        pacer = asyncio.create_task(self._pace(start_s))
        death = asyncio.create_task(self._engine_died.wait())
        watch = asyncio.create_task(self._watch_for_a_hang(start_s, hang_timeout_s))
        self._tasks += [pacer, death, watch]
        await asyncio.wait({pacer, death}, return_when=asyncio.FIRST_COMPLETED)
        if pacer.done():
            pacer.result()
        self._recorder.event("run_end", clock.now(), None, "")

    async def close(self) -> None:
        """End every session; call it after the last look at the engine's state."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pace(self, start_s: float) -> None:
        for release_s, session_id, index, output_tokens in self._releases:
            await clock.sleep_until(start_s + release_s)
            queue = self._queues.get(session_id)
            if queue is None:
                queue = self._open(session_id)
            audio = self._streams[session_id].frame(index)
            queue.put_nowait(Frame(session_id, index, audio, output_tokens))
            self._recorder.released(session_id, clock.now())
        await clock.sleep_until(start_s + self._last_deadline_s)

    def _open(self, session_id: int) -> asyncio.Queue[Frame]:
        queue = self._queues[session_id] = asyncio.Queue()
        self._tasks.append(asyncio.create_task(self._converse(session_id, queue)))
        self._recorder.event("session_start", clock.now(), session_id, "")
        return queue

    async def _converse(self, session_id: int, queue: asyncio.Queue[Frame]) -> None:
        async def frames() -> AsyncIterator[Frame]:
            while True:
                frame = await queue.get()
                taken_s = clock.now()
                yield frame
                # An engine asks for the next frame once it has digested this one.
                self._recorder.ingested(session_id, clock.now() - taken_s)

        try:
            async for num_tokens in self._engine.converse(session_id, frames()):
                self._recorder.tokens(session_id, num_tokens, clock.now())
        except EngineError as error:
            self._died(str(error))
            return
        # A call never ends by itself here, so the engine has dropped it.
        detail = "the engine ended the session"
        self._recorder.event("session_end", clock.now(), session_id, detail)

    async def _watch_for_a_hang(self, start_s: float, timeout_s: float) -> None:
        await clock.sleep_until(start_s)
        while True:
            state = self._engine.pool()
            last_sign_s = max(start_s, state.stamp_s) if state else start_s
            if clock.now() - last_sign_s > timeout_s:
                self._died(f"the scheduler took no step for {timeout_s:g} s: the engine hangs")
                return
            await clock.sleep_until(last_sign_s + timeout_s + _HANG_SLACK_S)

    def _died(self, detail: str) -> None:
        if not self._engine_died.is_set():
            self._recorder.event("engine_dead", clock.now(), None, detail)
            self._engine_died.set()
