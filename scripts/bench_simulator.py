"""What simulated time costs: virtual seconds a CPU second, and memory, as calls are added.

A benchmark, not a test: each run gets a process of its own, and pays for everything that a run of
an experiment pays for after vLLM is imported (configuration, scheduler, replay, tables on disk).
At the end it says whether the targets hold: speed at 128 calls, memory, cost linear in calls x
duration where every call is answered (bounded; an overflowing pool makes fewer tokens).

    python scripts/bench_simulator.py --sessions 32 64 128 --duration-s 300
"""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.composition import compose
from harness.config import RunConfig
from harness.core import clock
from harness.experiments import sim_preload  # noqa: F401  # before anything imports vLLM
from harness.experiments.live_run import Progress, replay_run
from harness.telemetry.schemas import FRAMES, POOL, SCHEDULE
from harness.workload.schedule import build_schedule, load_run_streams

TARGET_SESSIONS = 128
TARGET_SPEED = 40.0
TARGET_MIB = 2048.0
TARGET_LINEARITY = 0.15
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
    rows = []
    for num_sessions, retention, shortcuts in itertools.product(
        asked.sessions, asked.retention, asked.shortcuts
    ):
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
        rows.append(_row(run, asked.cache_dir))
        print(rows[-1], flush=True)
    _judge([row for row in rows if row.run.engine.scheduler_shortcuts])


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run and what it cost."""

    run: RunConfig
    num_tokens: int
    cpu_s: float
    peak_mib: float
    occupancy: float

    @property
    def session_seconds(self) -> float:
        """Calls x duration."""
        return self.run.workload.num_sessions * self.run.workload.duration_s

    @property
    def speed(self) -> float:
        """Virtual seconds a CPU second."""
        return self.run.workload.duration_s / self.cpu_s

    def __str__(self) -> str:
        return (
            f"{self.run.workload.num_sessions:8d}  {self.run.retention.kind.name:11s}  "
            f"{self.run.engine.scheduler_shortcuts!s:9s} {self.num_tokens:7d}  {self.cpu_s:6.2f}  "
            f"{self.speed:15.1f}  {self.peak_mib:8.0f}  {self.occupancy:.2f}"
        )


def _judge(rows: list[Row]) -> None:
    """Print whether each target holds, from these rows alone."""
    for row in rows:
        if row.run.workload.num_sessions == TARGET_SESSIONS:
            held = "holds" if row.speed >= TARGET_SPEED else "MISSED"
            print(
                f"speed at {TARGET_SESSIONS} calls, {row.run.retention.kind.name}: {row.speed:.1f} "
                f"virtual s a CPU s, target {TARGET_SPEED:g}: {held}"
            )
    if rows:
        most = max(row.peak_mib for row in rows)
        held = "holds" if most <= TARGET_MIB else "MISSED"
        print(f"memory: {most:.0f} MiB at most, target {TARGET_MIB:g}: {held}")
    answered = [row for row in rows if row.occupancy < 1]
    if len({row.session_seconds for row in answered}) > 2:
        work = np.array([row.session_seconds for row in answered])
        cost = np.array([row.cpu_s for row in answered])
        slope, fixed = np.polyfit(work, cost, 1)
        worst = np.abs((fixed + slope * work) / cost - 1).max()
        held = "holds" if worst <= TARGET_LINEARITY else "MISSED"
        print(
            f"linear: {fixed:.2f} s + {slope * 1e6:.0f} us a call and second, off by at most "
            f"{worst:.0%}, target {TARGET_LINEARITY:.0%}: {held}"
        )


def _row(run: RunConfig, cache: Path) -> Row:
    streams = load_run_streams(run, cache / "corpora")
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as name, context.Pool(1) as pool:
        directory = Path(name)
        SCHEDULE.write(build_schedule(run, streams), directory)
        cpu_s, peak_mib = pool.apply(_measure, (run, directory, cache))
        num_tokens = int(FRAMES.read(directory)["tokens"].sum())
        occupancy = float(POOL.read(directory)["occupancy"].max())
    return Row(run=run, num_tokens=num_tokens, cpu_s=cpu_s, peak_mib=peak_mib, occupancy=occupancy)


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
