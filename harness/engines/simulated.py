"""The simulated engine: vLLM's own scheduler in virtual time, a step-time model instead of a GPU.

    frame -> front end (one at a time) -> inbox -> scheduler -> step (takes time) -> tokens

One task is the engine core: it takes in what has arrived, lets the scheduler decide, waits for the
step to pass on the loop's clock and hands out tokens, in the order of vLLM's own engine core
(vllm/v1/engine/core.py, 0.32: `step`, `step_with_batch_queue`). Run it on a
`clock.VirtualEventLoop`; on a wall-clock loop it would answer in real time.

What audio costs: a step that computes a frame's prompt pays for its encoder (StepTime.frame_s and
prefill_step_s), and before that the front end, which shares the client's event loop, takes
`ingest_frame_s` for each frame, one after the other over all sessions.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.config import RunConfig
from harness.core import clock
from harness.core.errors import EngineError
from harness.core.files import write_json
from harness.core.notices import Notice
from harness.core.pool_state import PoolState
from harness.core.seeding import named_rng
from harness.engines.base import Frame
from harness.engines.sessions import Part, preemption_notice, session_requests
from harness.engines.sim_args import simulated_step_time
from harness.engines.step_work import STEP_LOG, StepLog

if TYPE_CHECKING:
    from harness.engines.sim_core import SchedulerCore, Step

BOUND_REPORT = "bound.json"
# vLLM's engine core sleeps this long after a step in which nothing could run.
_RETRY_S = 0.001


class SimulatedEngine:
    """A fresh simulated engine for one run.

    directory: where the report on the bound goes, as beside a live engine; None: nowhere.
    cache: directory for the config.json that vLLM insists on.
    """

    def __init__(self, run: RunConfig, *, directory: Path | None, cache: Path) -> None:
        self._run = run
        self._directory = directory
        self._cache = cache
        self._core: SchedulerCore | None = None
        self._serving: asyncio.Task[None] | None = None
        self._death: EngineError | None = None
        self._input_came = asyncio.Event()
        self._inbox: list[Callable[[], object]] = []
        self._aborts: list[str] = []
        self._answers: dict[str, _Answers] = {}
        self._notices: list[Notice] = []
        self._step_log: StepLog | None = None
        cost = simulated_step_time(run)
        self._ingest_frame_s = cost.ingest_frame_s
        self._front_end_free_s = 0.0
        self._step_jitter = _Jitter(run, "steps", cost.spread)
        self._front_end_jitter = _Jitter(run, "front end", cost.spread)

    async def start(self) -> None:
        """Build the scheduler and check that the bound is in force.

        Raises: EngineError if it is not; ConfigError if it cannot be.
        """
        from harness.engines.sim_core import SchedulerCore

        self._core = SchedulerCore(self._run, self._cache)
        if self._directory is not None:
            write_json(self._directory / BOUND_REPORT, self._core.bound.as_dict())
            if self._run.engine.record_steps:
                self._step_log = StepLog(self._directory / STEP_LOG)
        self._serving = asyncio.create_task(self._serve(self._core))
        self._serving.add_done_callback(self._ended)

    async def converse(self, session_id: int, frames: AsyncIterator[Frame]) -> AsyncIterator[int]:
        """One request after the other, each ended before it would hold too much."""
        async for part in session_requests(self._run, session_id, frames, self._notices):
            answers = self._open(part)
            try:
                while num_tokens := answers.take() or await answers.next():
                    yield num_tokens
            finally:
                self._close(part.name)

    def _open(self, part: Part) -> _Answers:
        if self._core is None or self._death is not None:
            raise self._death or EngineError("the engine is not running: start() was not called")
        feeding = asyncio.create_task(self._feed(self._core, part))
        answers = self._answers[part.name] = _Answers(feeding)
        return answers

    def _close(self, name: str) -> None:
        answers = self._answers.pop(name)
        answers.feeding.cancel()
        if not answers.is_complete:
            self._aborts.append(name)
            self._input_came.set()

    async def _feed(self, core: SchedulerCore, part: Part) -> None:
        """Every frame extends the request's prompt and decodes a fixed count of tokens.

        What a recycled request keeps goes in with its first new frame.
        """
        name, kept = part.name, part.kept
        async for frame in part.frames:
            await self._digest(len(kept) + 1)
            prompt: list[int] = []
            starts: list[int] = []
            for again in kept:
                starts.append(len(prompt))
                prompt += self._prompt(again, again.output_tokens - 1)
            starts.append(len(prompt))
            prompt += self._prompt(frame)
            self._post(
                partial(core.add, name, prompt, frame.output_tokens, clock.now(), starts=starts)
            )
            kept = []

        def close() -> None:
            if core.close(name, clock.now()):
                self._hand_out(name, 0, is_last=True)

        self._post(close)

    def _prompt(self, frame: Frame, num_said: int = 0) -> list[int]:
        # As with audio: no two frames are alike, whatever the prefix cache may look for.
        token = (frame.session_id + 2) << 24 | frame.index + 1
        return [token] * (self._run.model.prompt_tokens_per_frame + num_said)

    async def _digest(self, num_frames: int) -> None:
        """Wait for the front end, and for its work on one chunk."""
        if self._ingest_frame_s:
            start_s = max(clock.now(), self._front_end_free_s)
            duration_s = num_frames * self._ingest_frame_s * self._front_end_jitter.factor()
            self._front_end_free_s = start_s + duration_s
            await clock.sleep_until(self._front_end_free_s)

    def _post(self, action: Callable[[], object]) -> None:
        self._inbox.append(action)
        self._input_came.set()

    async def _serve(self, core: SchedulerCore) -> None:
        """The engine core's loop. Up to `core.depth` steps are decided on before one completes."""
        in_flight: deque[tuple[float, Step]] = deque()
        gpu_free_s = 0.0
        has_failed = False
        while True:
            if self._take_in(core):
                has_failed = False
            step = core.launch() if core.has_work() else None
            for lost in core.take_preempted():
                self._notices.append(
                    preemption_notice(clock.now(), lost.request_id, lost.num_computed_tokens)
                )
            if step is not None:
                begin_s = max(clock.now(), gpu_free_s)
                gpu_free_s = begin_s + step.seconds * self._step_jitter.factor()
                in_flight.append((gpu_free_s, step))
                if self._step_log is not None:
                    self._step_log.write(begin_s, gpu_free_s, step.work)
                has_failed = False
                if len(in_flight) < core.depth:
                    continue
            if in_flight:
                done_s, done = in_flight.popleft()
                await clock.sleep_until(done_s)
                self._abort(core)
                core.complete(done, self._hand_out)
            elif core.has_work() and not has_failed:
                # A step that only preempted is empty as well, and the next one may not be.
                has_failed = True
                await asyncio.sleep(_RETRY_S)
            else:
                # Two attempts with nothing in between: only input can change the third.
                self._input_came.clear()
                await self._input_came.wait()

    def _take_in(self, core: SchedulerCore) -> bool:
        """Apply what has arrived; returns whether anything had."""
        has_input = bool(self._inbox or self._aborts)
        self._abort(core)
        for action in self._inbox:
            action()
        self._inbox.clear()
        return has_input

    def _abort(self, core: SchedulerCore) -> None:
        for name in self._aborts:
            core.abort(name)
        self._aborts.clear()

    def _hand_out(self, name: str, num_tokens: int, is_last: bool) -> None:
        if (answers := self._answers.get(name)) is not None:
            answers.put(num_tokens, is_last)

    def _ended(self, serving: asyncio.Task[None]) -> None:
        """The engine core never ends by itself: it was stopped, or it has died."""
        if serving.cancelled() or (error := serving.exception()) is None:
            return
        if isinstance(error, EngineError):
            self._death = error
        else:
            self._death = EngineError(f"vLLM's scheduler died: {type(error).__name__}: {error}")
            self._death.__cause__ = error
        for answers in self._answers.values():
            answers.fail(self._death)

    def pool(self) -> PoolState | None:
        """The scheduler as it is now: a stall is seen in its numbers, and it cannot hang."""
        return self._core.state(clock.now()) if self._core else None

    def notices(self) -> list[Notice]:
        """Every preemption and rotation since the start."""
        return list(self._notices)

    async def stop(self) -> None:
        """End the engine core; what is in flight is lost."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        if self._step_log is not None:
            self._step_log.close()


class _Jitter:
    """Factors around 1, log-normal, from the run's seed and repetition; 1 without a spread."""

    def __init__(self, run: RunConfig, name: str, spread: float) -> None:
        self._rng = named_rng(run.seed, "jitter", name, run.repetition)
        self._spread = spread

    def factor(self) -> float:
        """How much longer than modelled the next one takes."""
        return math.exp(self._spread * self._rng.standard_normal()) if self._spread else 1.0


class _Answers:
    """Tokens of one request on their way from the engine core to whoever converses.

    feeding: the task that feeds the request; its error is the conversation's.
    """

    def __init__(self, feeding: asyncio.Task[None]) -> None:
        self.feeding = feeding
        self.is_complete = False
        self._num_tokens = 0
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[int] | None = None
        feeding.add_done_callback(self._fed)

    def put(self, num_tokens: int, is_last: bool) -> None:
        """Tokens have come; nothing follows if `is_last`."""
        waiter = self._waiter
        if is_last:
            self.is_complete = True
        if waiter is None or waiter.done():
            self._num_tokens += num_tokens
        elif num_tokens or is_last:
            waiter.set_result(num_tokens)

    def fail(self, error: BaseException) -> None:
        """Nothing follows but this error."""
        self._error = error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def _fed(self, feeding: asyncio.Task[None]) -> None:
        if not feeding.cancelled() and (error := feeding.exception()) is not None:
            self.fail(error)

    def take(self) -> int:
        """Tokens that have come and were not waited for."""
        num_tokens, self._num_tokens = self._num_tokens, 0
        return num_tokens

    def next(self) -> asyncio.Future[int]:
        """The next tokens, once they come; 0 after the last."""
        waiter = self._waiter = asyncio.Future(loop=self._loop)
        if self._error is not None:
            waiter.set_exception(self._error)
        elif self.is_complete:
            waiter.set_result(0)
        return waiter
