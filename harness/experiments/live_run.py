"""One run inside its own process: start the engine, replay the schedule, write what happened."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.admission.build import build_gate
from harness.config import EngineKind, RunConfig
from harness.core import clock
from harness.engines.base import Engine
from harness.engines.step_work import STEP_LOG, read_step_log
from harness.replay.replayer import FrameAudio, Replayer
from harness.telemetry.host_memory import ProcessTreeMemory
from harness.telemetry.recorder import Recorder
from harness.telemetry.sampler import sample_pool, sampling_interval_s
from harness.telemetry.schemas import SCHEDULE, STEPS
from harness.workload.schedule import departures, load_run_streams, silent_streams

# Between "the engine is warm" and the first release: time to settle, and for the sampler to begin.
LEAD_S = 0.5
REPORT_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a watching person sees of a run.

    phase: starting | replaying.
    elapsed_s: since the first release.
    num_released, num_tokens: frames handed over, tokens received.
    occupancy: of the KV pool, None before the first reading.
    """

    phase: str
    elapsed_s: float = 0.0
    num_released: int = 0
    num_tokens: int = 0
    occupancy: float | None = None
    num_waiting: int = 0


Report = Callable[[Progress], None]


def build_engine(run: RunConfig, directory: Path, cache: Path) -> Engine:
    """The engine that a configuration asks for, not started."""
    if run.engine.kind is EngineKind.echo:
        from harness.engines.echo import EchoEngine

        return EchoEngine()
    if run.engine.kind is EngineKind.sim:
        from harness.engines.simulated import SimulatedEngine

        return SimulatedEngine(run, directory=directory, cache=cache)
    from harness.engines.vllm_live import VllmEngine

    return VllmEngine(run, observer_dir=directory, cache=cache)


async def replay_run(run: RunConfig, directory: Path, cache: Path, report: Report) -> None:
    """Run to the horizon, or to cancellation or the engine's death, and write the recording.

    Raises: EngineError if the engine did not start; CorpusError; TelemetryError.
    """
    report(Progress(phase="starting"))
    engine = build_engine(run, directory, cache)
    try:
        # Before anything that starts threads: the engine core is forked from this process.
        await engine.start()
        schedule, streams = SCHEDULE.read(directory), load_streams(run, cache)
        # A full collection over vLLM's modules pauses this process by up to half a second.
        gc.collect()
        gc.freeze()
        await record_replay(run, engine, schedule, streams, directory, report)
    finally:
        await engine.stop()


def load_streams(run: RunConfig, cache: Path) -> Sequence[FrameAudio]:
    """The sessions' audio; silence for a simulated engine, which hears nothing.

    Raises: CorpusError.
    """
    if run.engine.kind is EngineKind.sim:
        return silent_streams(run)
    return load_run_streams(run, cache / "corpora")


async def record_replay(
    run: RunConfig,
    engine: Engine,
    schedule: pd.DataFrame,
    streams: Sequence[FrameAudio],
    directory: Path,
    report: Report,
) -> None:
    """Replay into a started engine; the recording is written whatever ends it."""
    budget_s = run.model.frame_budget_s
    recorder = Recorder(schedule, frame_budget_s=budget_s)
    replayer = Replayer(
        schedule,
        streams,
        engine,
        recorder,
        frame_budget_s=budget_s,
        gate=build_gate(run, engine.pool),
        departures=departures(run, schedule),
    )
    start_s = clock.now() + LEAD_S
    interval_s = sampling_interval_s(budget_s)
    memory = ProcessTreeMemory() if run.engine.kind is EngineKind.vllm else None
    helpers = [
        asyncio.create_task(
            sample_pool(
                engine.pool,
                recorder,
                interval_s=interval_s,
                read_host_bytes=memory.read if memory else None,
            )
        ),
        asyncio.create_task(_report_progress(recorder, start_s, report)),
    ]
    try:
        await replayer.run(start_s, hang_timeout_s=max(run.engine.hang_timeout_s, 3 * budget_s))
    except asyncio.CancelledError:
        recorder.event("interrupted", clock.now(), None, "stopped from outside")
        raise
    finally:
        for helper in helpers:
            helper.cancel()
        # Ending the sessions frees blocks, which would read as a recovery: sampling ends before.
        await asyncio.gather(*helpers, return_exceptions=True)
        await replayer.close()
        recorder.notices(engine.notices())
        recorder.write(directory, run.diagnosis)
        if run.engine.record_steps:
            STEPS.write(read_step_log(directory / STEP_LOG, start_s=recorder.start_s), directory)


async def _report_progress(recorder: Recorder, start_s: float, report: Report) -> None:
    while True:
        pool = recorder.latest_pool
        report(
            Progress(
                phase="replaying",
                elapsed_s=max(0.0, clock.now() - start_s),
                num_released=recorder.num_released,
                num_tokens=recorder.num_tokens,
                occupancy=pool.occupancy if pool else None,
                num_waiting=pool.num_waiting if pool else 0,
            )
        )
        await asyncio.sleep(REPORT_INTERVAL_S)
