"""What the harness itself costs: many sessions on an engine that answers at once.

A benchmark, not a test: prints CPU time a frame and release lag, for comparison on one machine.

    python scripts/bench_replayer.py --sessions 256 --frame-budget-s 0.08 --duration-s 20
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from pathlib import Path

import numpy as np

from harness.composition import compose
from harness.core import clock
from harness.engines.echo import EchoEngine
from harness.replay.replayer import Replayer
from harness.telemetry.recorder import Recorder
from harness.telemetry.sampler import sample_pool, sampling_interval_s
from harness.workload.corpus import load_corpus
from harness.workload.schedule import build_schedule, draw_run_streams


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=256)
    parser.add_argument("--frame-budget-s", type=float, default=0.08)
    parser.add_argument("--duration-s", type=float, default=20.0)
    parser.add_argument("--cache-dir", type=Path, default=Path(".cache"))
    asked = parser.parse_args()

    run = compose(
        [
            "engine=echo",
            f"workload.num_sessions={asked.sessions}",
            f"workload.duration_s={asked.duration_s}",
            f"model.frame_budget_s={asked.frame_budget_s}",
        ]
    ).run_config
    clips = load_corpus(
        run.workload.corpora,
        cache_dir=asked.cache_dir / "corpora",
        sample_rate_hz=run.model.sample_rate_hz,
    )
    streams = draw_run_streams(run, clips)
    schedule = build_schedule(run, streams)
    recorder = Recorder(schedule, frame_budget_s=run.model.frame_budget_s)
    engine = EchoEngine()
    replayer = Replayer(
        schedule, streams, engine, recorder, frame_budget_s=run.model.frame_budget_s
    )

    async def replay() -> float:
        interval_s = sampling_interval_s(run.model.frame_budget_s)
        sampler = asyncio.create_task(sample_pool(engine.pool, recorder, interval_s=interval_s))
        start_s = clock.now() + 0.2
        await clock.sleep_until(start_s)
        before_s = time.process_time()
        await replayer.run(start_s, hang_timeout_s=10.0)
        spent_s = time.process_time() - before_s
        sampler.cancel()
        await replayer.close()
        return spent_s

    gc.collect()
    gc.freeze()
    spent_s = asyncio.run(replay())
    frames = recorder.frame_table(run.diagnosis)
    lag_ms = frames["release_lag_s"].to_numpy() * 1e3
    print(f"{asked.sessions} sessions, B = {asked.frame_budget_s:g} s, {len(frames)} frames")
    print(f"answered                {(frames['tokens'] == frames['expected_tokens']).mean():.2%}")
    print(f"harness CPU a frame     {spent_s / len(frames) * 1e6:.0f} us")
    for quantile in (0.5, 0.99, 1.0):
        print(f"release lag p{quantile * 100:<3g}        {np.quantile(lag_ms, quantile):.2f} ms")


if __name__ == "__main__":
    main()
