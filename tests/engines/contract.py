"""What every engine must do: each check is an async function of a started engine and a
configuration.

`run_contract` runs them all against one engine in its own process, as a real run would.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from harness.config import EngineKind, RunConfig
from harness.core import clock
from harness.engines.base import Engine, Frame
from harness.engines.step_work import STEP_LOG, read_step_log
from harness.experiments.live_run import build_engine
from harness.kv.retention import recycling_of

RECORDED = "recorded_steps"
Check = Callable[[Engine, RunConfig], Awaitable[None]]


def frames_of(run: RunConfig, session_id: int, count: int) -> list[Frame]:
    """Distinct frames of noise."""
    rng = np.random.default_rng(session_id)
    num_samples = round(run.model.frame_budget_s * run.model.sample_rate_hz)
    return [
        Frame(
            session_id,
            index,
            rng.normal(0, 0.1, num_samples).astype(np.float32),
            run.model.output_tokens_per_frame,
        )
        for index in range(count)
    ]


async def _feed(frames: list[Frame], *, stay_open: bool) -> AsyncIterator[Frame]:
    for frame in frames:
        yield frame
    if stay_open:
        await asyncio.Event().wait()


async def _collect(engine: Engine, session_id: int, frames: list[Frame]) -> int:
    total = 0
    async for num_tokens in engine.converse(session_id, _feed(frames, stay_open=False)):
        assert num_tokens >= 1
        total += num_tokens
    return total


async def check_every_frame_is_answered_with_the_tokens_it_asks_for(
    engine: Engine, run: RunConfig
) -> None:
    total = await _collect(engine, 1, frames_of(run, 1, 3))
    assert total == 3 * run.model.output_tokens_per_frame


async def check_sessions_do_not_mix(engine: Engine, run: RunConfig) -> None:
    counts = await asyncio.gather(
        *(_collect(engine, session, frames_of(run, session, 2)) for session in range(10, 14))
    )
    assert counts == [2 * run.model.output_tokens_per_frame] * 4


async def check_closing_a_session_returns_its_blocks(engine: Engine, run: RunConfig) -> None:
    before = engine.pool()
    session = engine.converse(30, _feed(frames_of(run, 30, 2), stay_open=True))
    needed = 2 * run.model.output_tokens_per_frame
    while needed > 0:
        needed -= await anext(session)
    held = engine.pool()
    await session.aclose()  # type: ignore[attr-defined]
    assert before is not None
    assert held is not None
    if run.engine.kind is not EngineKind.echo:
        tokens = 2 * run.model.kv_tokens_per_frame
        assert held.used_blocks - before.used_blocks == -(-tokens // run.engine.block_size_tokens)
    for _ in range(200):
        after = engine.pool()
        assert after is not None
        if after.used_blocks == before.used_blocks:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{after.used_blocks} blocks are still held, {before.used_blocks} before")


async def check_a_recycled_session_holds_a_sawtooth_and_answers_every_frame(
    engine: Engine, run: RunConfig
) -> None:
    """Frame by frame: the open request holds what `Recycling` says, and no frame goes without."""
    recycling = recycling_of(run.retention, run.model.kv_tokens_per_frame)
    if recycling is None:
        return
    before = engine.pool()
    num_frames = recycling.frames_per_request + 2 * recycling.period_frames + 1
    frames: asyncio.Queue[Frame | None] = asyncio.Queue()

    async def fed() -> AsyncIterator[Frame]:
        while (frame := await frames.get()) is not None:
            yield frame

    session = engine.converse(35, fed())
    held, expected = [], []
    for count, frame in enumerate(frames_of(run, 35, num_frames), start=1):
        frames.put_nowait(frame)
        needed = run.model.output_tokens_per_frame
        while needed > 0:
            needed -= await anext(session)
        assert needed == 0
        state = engine.pool()
        assert state is not None
        assert before is not None
        held.append(state.used_blocks - before.used_blocks)
        tokens = recycling.request_frames(count) * run.model.kv_tokens_per_frame
        expected.append(-(-tokens // run.engine.block_size_tokens))
    # A request that is full ends with its last answer: its blocks may be gone already.
    full = [
        recycling.request_frames(count) == recycling.frames_per_request
        for count in range(1, num_frames + 1)
    ]
    pairs = list(zip(held, expected, full, strict=True))
    assert all(found == wanted or (is_full and found == 0) for found, wanted, is_full in pairs)
    kinds = [notice.kind for notice in engine.notices() if notice.session_id == 35]
    assert kinds == ["recycled"] * 3, kinds
    frames.put_nowait(None)
    async for _ in session:
        raise AssertionError("tokens after the last frame")


async def check_the_pool_state_counts_steps_and_is_never_over_full(
    engine: Engine, run: RunConfig
) -> None:
    before = engine.pool()
    await _collect(engine, 40, frames_of(run, 40, 1))
    after = engine.pool()
    assert before is not None
    assert after is not None
    assert after.num_steps > before.num_steps
    assert after.stamp_s >= before.stamp_s
    assert 0 <= after.used_blocks <= after.total_blocks
    if not run.retention.is_recycled:
        assert engine.notices() == []


async def check_stop_may_be_called_twice(engine: Engine, run: RunConfig) -> None:
    await engine.stop()
    await engine.stop()


# Stopping comes last: nothing answers afterwards.
CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_") and inspect.iscoroutinefunction(check)
}


def _check_recorded_steps(run: RunConfig, directory: Path) -> None:
    """What the log says was computed is what the checks above asked for."""
    steps = read_step_log(directory / STEP_LOG, start_s=0.0)
    # A live engine is warmed up with frames that are alike, which it encodes but once.
    encoding = steps[steps["num_frames"] > 0]
    frames = encoding["num_frames"].sum()
    assert frames >= 3 + 8 + 2 + 1
    assert encoding["num_prefill_tokens"].sum() == frames * run.model.prompt_tokens_per_frame
    assert (steps["end_s"] > steps["begin_s"]).all()
    assert (steps["num_context_tokens"] >= steps["num_requests"]).all()
    assert steps["num_requests"].max() == 4


def run_contract(run: RunConfig, directory: Path, cache: Path, results: Connection) -> None:
    """Start one engine, run every check on it, and send {check: None or its traceback}."""
    log = os.open(directory / "engine.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)

    async def main() -> dict[str, str | None]:
        engine = build_engine(run, directory, cache)
        await engine.start()
        found: dict[str, str | None] = {}
        for name, check in CHECKS.items():
            try:
                await asyncio.wait_for(check(engine, run), timeout=30)
                found[name] = None
            except BaseException:  # noqa: BLE001 - a check's failure is reported by its own test
                found[name] = traceback.format_exc()
        if run.engine.record_steps:
            try:
                _check_recorded_steps(run, directory)
                found[RECORDED] = None
            except BaseException:  # noqa: BLE001 - as above
                found[RECORDED] = traceback.format_exc()
        return found

    drive = clock.run_virtual if run.engine.kind is EngineKind.sim else asyncio.run
    results.send(drive(main()))
