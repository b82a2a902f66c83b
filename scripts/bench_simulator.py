"""What simulated time costs: virtual seconds a CPU second, and memory, as calls are added.

A benchmark, not a test: each run gets a process of its own, and pays for everything that a run of
an experiment pays for after vLLM is imported (configuration, scheduler, replay, tables on disk).

    python scripts/bench_simulator.py --sessions 32 64 128 --duration-s 300
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

from harness.composition import compose
from harness.config import RunConfig
from harness.core import clock
from harness.experiments import sim_preload  # noqa: F401  # before anything imports vLLM
from harness.experiments.live_run import Progress, replay_run
from harness.telemetry.schemas import FRAMES, POOL, SCHEDULE
from harness.workload.schedule import build_schedule, load_run_streams

_HEADER = "sessions  retention    shortcuts  tokens   CPU s  virtual s/CPU s  peak MiB  pool"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, nargs="+", default=[32, 64, 128, 256, 512])
    parser.add_argument("--duration-s", type=float, default=300.0)
    parser.add_argument("--retention", nargs="+", default=["unbounded", "sink_window"])
    parser.add_argument("--shortcuts", nargs="+", default=["true"], choices=["true", "false"])
    parser.add_argument("--model", default="qwen3_omni")
    parser.add_argument("--hardware", default="rtx_pro_6000")
    parser.add_argument("--pool-blocks", default="null", help="KV pool; default: the hardware's")
    parser.add_argument("--cache-dir", type=Path, default=Path(".cache"))
    asked = parser.parse_args()

    print(_HEADER)
    for num_sessions in asked.sessions:
        for retention in asked.retention:
            for shortcuts in asked.shortcuts:
                run = compose(
                    [
                        "engine=sim",
                        "scale=full",
                        f"model={asked.model}",
                        f"hardware={asked.hardware}",
                        f"retention={retention}",
                        f"workload.num_sessions={num_sessions}",
                        f"workload.duration_s={asked.duration_s}",
                        f"engine.scheduler_shortcuts={shortcuts}",
                        f"engine.kv_pool_blocks={asked.pool_blocks}",
                    ]
                ).run_config
                print(_row(run, asked.cache_dir), flush=True)


def _row(run: RunConfig, cache: Path) -> str:
    streams = load_run_streams(run, cache / "corpora")
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as name, context.Pool(1) as pool:
        directory = Path(name)
        SCHEDULE.write(build_schedule(run, streams), directory)
        cpu_s, peak_mib = pool.apply(_measure, (run, directory, cache))
        num_tokens = FRAMES.read(directory)["tokens"].sum()
        occupancy = POOL.read(directory)["occupancy"].max()
    return (
        f"{run.workload.num_sessions:8d}  {run.retention.kind.name:11s}  "
        f"{run.engine.scheduler_shortcuts!s:9s} {num_tokens:7d}  {cpu_s:6.2f}  "
        f"{run.workload.duration_s / cpu_s:15.1f}  {peak_mib:8.0f}  {occupancy:.2f}"
    )


def _measure(run: RunConfig, directory: Path, cache: Path) -> tuple[float, float]:
    gc.freeze()
    before_s = time.process_time()
    clock.run_virtual(replay_run(run, directory, cache, _nobody_watches))
    spent_s = time.process_time() - before_s
    return spent_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _nobody_watches(_: Progress) -> None:
    pass


if __name__ == "__main__":
    main()
