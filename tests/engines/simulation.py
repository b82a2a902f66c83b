"""Runs on the simulated engine in this process: the same replayer, sampler and recorder as ever."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

with warnings.catch_warnings():
    # Importing vLLM meets deprecations of its own libraries, which are errors in our tests.
    warnings.simplefilter("ignore")
    import harness.engines.sim_core  # noqa: F401
    from harness.engines.sim_args import load_vllm

    load_vllm()

from harness.composition import compose
from harness.config import RunConfig
from harness.core import clock
from harness.diagnosis.recording import Recording
from harness.engines.simulated import SimulatedEngine
from harness.experiments.live_run import load_streams, record_replay
from harness.experiments.runner import read_recording
from harness.telemetry.schemas import SCHEDULE
from harness.workload.corpus import Clip
from harness.workload.schedule import build_schedule, draw_run_streams, silent_streams

# Sixteen calls due at once on a pool that their first seven frames fill; one step costs 2 to 5 ms.
CROWD = (
    "engine=sim",
    "workload.num_sessions=16",
    "workload.duration_s=24",
    "workload.arrivals=synchronised",
    "model.output_tokens_per_frame=20",
    "engine.kv_pool_blocks=236",
)


def configured(*overrides: str) -> RunConfig:
    """A run on the simulated engine."""
    return compose(["engine=sim", *overrides]).run_config


def simulate(
    run: RunConfig,
    clips: Sequence[Clip],
    directory: Path,
    *,
    prepare: Callable[[SimulatedEngine], None] | None = None,
) -> Recording:
    """Replay a run in virtual time and read back what it left.

    prepare: what to do to the engine once it has started.
    """
    directory.mkdir(parents=True, exist_ok=True)
    hears = run.model.sample_rate_hz is not None
    schedule = build_schedule(run, draw_run_streams(run, clips) if hears else silent_streams(run))
    SCHEDULE.write(schedule, directory)

    async def main() -> None:
        engine = SimulatedEngine(run, directory=directory, cache=directory)
        await engine.start()
        if prepare is not None:
            prepare(engine)
        streams = load_streams(run, directory)
        await record_replay(run, engine, schedule, streams, directory, lambda _: None)
        await engine.stop()

    clock.run_virtual(main())
    return read_recording(directory)
