"""Open-loop replay: every frame is released on its instant, whatever the engine did with the last.

One pacer walks the schedule and puts frames into per-session queues; one task a session carries the
queue into `Engine.converse` and notes the tokens that come back. The pacer never waits for anything
but the clock, so its own lateness (release lag) is the machine's and is recorded as such.

With a session's first frame the gate is asked. A shed session stops there: the engine never hears
of it. A session that hangs up is aborted, which returns its blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import pandas as pd

from harness.admission.admit_all import AdmitAll
from harness.admission.gate import Gate
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
    gate: who is let in; everybody by default.
    departures: (instant, session) of calls that end before the run, in order.
    """

    def __init__(
        self,
        schedule: pd.DataFrame,
        streams: Sequence[FrameAudio],
        engine: Engine,
        recorder: Recorder,
        *,
        frame_budget_s: float,
        gate: Gate | None = None,
        departures: Sequence[tuple[float, int]] = (),
    ) -> None:
        columns = ("release_s", "session_id", "frame", "output_tokens")
        self._releases = list(zip(*(schedule[column].tolist() for column in columns), strict=True))
        self._last_deadline_s = float(schedule["release_s"].max()) + frame_budget_s
        self._streams = streams
        self._engine = engine
        self._recorder = recorder
        self._gate = gate or Gate(AdmitAll(), None, engine.pool)
        self._departures = departures
        # None: the session was shed, or has left.
        self._queues: dict[int, asyncio.Queue[Frame] | None] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
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
        leaving = asyncio.create_task(self._hang_up(start_s))
        self._tasks += [pacer, death, watch, leaving]
        await asyncio.wait({pacer, death}, return_when=asyncio.FIRST_COMPLETED)
        if pacer.done():
            pacer.result()
        if leaving.done():
            leaving.result()
        self._recorder.event("run_end", clock.now(), None, "")

    async def close(self) -> None:
        """End every session; call it after the last look at the engine's state."""
        for interval in self._gate.controller.intervals:
            self._recorder.interval(
                interval.end_s,
                signal_s=interval.signal_s,
                num_frames=interval.num_frames,
                live_sessions=interval.num_live,
                congested=interval.is_congested,
                session_cap=interval.session_cap,
            )
        tasks = [*self._tasks, *self._calls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pace(self, start_s: float) -> None:
        for release_s, session_id, index, output_tokens in self._releases:
            await clock.sleep_until(start_s + release_s)
            if session_id not in self._queues:
                self._queues[session_id] = (
                    self._open(session_id) if self._asks(session_id) else None
                )
            queue = self._queues[session_id]
            if queue is None:
                continue
            audio = self._streams[session_id].frame(index)
            self._gate.released(session_id, start_s + release_s, output_tokens)
            queue.put_nowait(Frame(session_id, index, audio, output_tokens))
            self._recorder.released(session_id, clock.now())
        await clock.sleep_until(start_s + self._last_deadline_s)

    def _asks(self, session_id: int) -> bool:
        arrival, decision = self._gate.arrives(session_id, clock.now())
        self._recorder.decision(
            session_id,
            arrival.instant_s,
            admitted=decision.admit,
            reason=decision.reason,
            live_sessions=arrival.num_live,
            session_cap=decision.session_cap,
            signal_s=decision.signal_s,
            occupancy=arrival.pool.occupancy if arrival.pool else None,
            saturation_s=decision.saturation_s,
        )
        return decision.admit

    def _open(self, session_id: int) -> asyncio.Queue[Frame]:
        queue: asyncio.Queue[Frame] = asyncio.Queue()
        self._calls[session_id] = asyncio.create_task(self._converse(session_id, queue))
        self._recorder.event("session_start", clock.now(), session_id, "")
        return queue

    async def _hang_up(self, start_s: float) -> None:
        for instant_s, session_id in self._departures:
            await clock.sleep_until(start_s + instant_s)
            call = self._calls.pop(session_id, None)
            if call is not None:
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
                self._queues[session_id] = None
                self._gate.leaves(session_id)
                self._recorder.event("session_left", clock.now(), session_id, "hung up")

    async def _converse(self, session_id: int, queue: asyncio.Queue[Frame]) -> None:
        async def frames() -> AsyncIterator[Frame]:
            while True:
                frame = await queue.get()
                taken_s = clock.now()
                yield frame
                # An engine asks for the next frame once it has digested this one.
                self._recorder.ingested(session_id, clock.now() - taken_s)

        now, record, tell = clock.reader(), self._recorder.tokens, self._gate.tokens
        try:
            async for num_tokens in self._engine.converse(session_id, frames()):
                instant_s = now()
                record(session_id, num_tokens, instant_s)
                tell(session_id, num_tokens, instant_s)
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
            # Nobody in, nothing to schedule: an idle engine does not hang.
            busy_since_s = self._gate.busy_since_s or clock.now()
            last_sign_s = max(busy_since_s, state.stamp_s) if state else busy_since_s
            if clock.now() - last_sign_s > timeout_s:
                self._died(f"the scheduler took no step for {timeout_s:g} s: the engine hangs")
                return
            await clock.sleep_until(last_sign_s + timeout_s + _HANG_SLACK_S)

    def _died(self, detail: str) -> None:
        if not self._engine_died.is_set():
            self._recorder.event("engine_dead", clock.now(), None, detail)
            self._engine_died.set()
