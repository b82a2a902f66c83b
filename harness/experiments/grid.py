"""Run every point of a grid: simulated ones on all cores, live ones one after the other."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from harness.config import EngineKind, Invocation, RunConfig, ScaleName
from harness.engines.vllm_args import open_hub
from harness.experiments import live_run
from harness.experiments.checks import check
from harness.experiments.isolation import RunProcesses
from harness.experiments.report import run_label, verdict_line
from harness.experiments.runner import FinishedRun, Runner

_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    TextColumn("{task.completed:>4.0f}/{task.total:.0f} {task.fields[unit]}"),
    TimeElapsedColumn(),
    TextColumn("{task.fields[state]}"),
)


def run_all(invocations: Sequence[Invocation], console: Console) -> list[FinishedRun]:
    """Run every configuration, with a progress bar; finished ones are read back.

    Neighbours with the same engine share a batch; a live engine never shares the machine with
    another run. Results come in the order of `invocations`, and equal ones run once.
    Raises: KeyboardInterrupt, or what a run raised, after the runs in progress have been recorded.
    """
    for invocation in invocations:
        check(invocation.run_config)
    if any(i.scale is ScaleName.full and i.engine.kind is EngineKind.vllm for i in invocations):
        open_hub()
    finished: dict[str, FinishedRun] = {}
    with Progress(*_COLUMNS, console=console) as progress:
        board = _Board(progress, console, num_runs=len({i.run_config.digest for i in invocations}))
        for kind, batch in itertools.groupby(invocations, lambda point: point.engine.kind):
            points = list(batch)
            runs = {point.run_config.digest: point.run_config for point in points}
            new = [run for digest, run in runs.items() if digest not in finished]
            finished |= _run_batch(new, points[0], kind, board)
    return [finished[invocation.run_config.digest] for invocation in invocations]


def num_workers(kind: EngineKind, asked: int | None) -> int:
    """Runs at a time: as asked, or one a core if the clock is virtual, else one."""
    if asked is not None:
        return asked
    return len(os.sched_getaffinity(0)) if kind is EngineKind.sim else 1


def _run_batch(
    runs: Sequence[RunConfig], point: Invocation, kind: EngineKind, board: _Board
) -> dict[str, FinishedRun]:
    processes = RunProcesses(kind)
    runner = Runner(point.paths, processes, rerun=point.rerun)
    has_failed = threading.Event()

    def follow(run: RunConfig) -> FinishedRun:
        if has_failed.is_set():
            raise CancelledError
        try:
            return board.follow(runner, run)
        except BaseException:
            has_failed.set()
            raise

    pool = ThreadPoolExecutor(num_workers(kind, point.num_parallel_runs))
    futures = {run.digest: pool.submit(follow, run) for run in runs}
    try:
        wait(futures.values(), return_when=FIRST_EXCEPTION)
        # In order of submission, so that a failure comes before what it cancelled.
        return {digest: future.result() for digest, future in futures.items() if future.done()}
    except BaseException:
        processes.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Board:
    """What a person watches: how many runs are done, and what those in progress do."""

    def __init__(self, progress: Progress, console: Console, *, num_runs: int) -> None:
        self._progress = progress
        self._console = console
        self._all = progress.add_task("all runs", total=num_runs, unit="runs", state="")

    def follow(self, runner: Runner, run: RunConfig) -> FinishedRun:
        """Run it on a line of its own, which becomes a verdict above the bars."""
        line = self._progress.add_task(
            run_label(run),
            total=run.workload.num_sessions * run.num_frames,
            unit="frames",
            state="starting",
        )
        try:
            result = runner.run(run, lambda seen: self._show(line, seen))
        finally:
            self._progress.remove_task(line)
        self._progress.advance(self._all)
        self._console.print(verdict_line(result), soft_wrap=True)
        return result

    def _show(self, line: TaskID, seen: live_run.Progress) -> None:
        pool = "" if seen.occupancy is None else f", pool {seen.occupancy:.0%}"
        state = f"{seen.phase}, {seen.num_tokens} tokens{pool}"
        self._progress.update(line, completed=seen.num_released, state=state)
