"""One command's work: run every configuration, tabulate, draw, and show a person what happened."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from harness.analysis.runs import retention_label
from harness.analysis.tables import write_tables
from harness.config import Invocation, RunConfig
from harness.core.errors import ConfigError, EngineError
from harness.diagnosis.verdicts import Verdict
from harness.experiments import live_run
from harness.experiments.isolation import RunProcesses
from harness.experiments.plan import plan
from harness.experiments.report import verdict_line, verdict_table
from harness.experiments.runner import FinishedRun, Runner, check

_FAILED = (Verdict.never_served, Verdict.engine_dead, Verdict.ended_early)


def report_module(name: str) -> ModuleType:
    """The module that tabulates and draws. Raises: ConfigError if there is none of that name."""
    try:
        return importlib.import_module(f"harness.experiments.{name}")
    except ModuleNotFoundError:
        raise ConfigError(f"report={name} has no module harness/experiments/{name}.py") from None


def run_experiment(invocations: Sequence[Invocation], console: Console | None = None) -> int:
    """Run a grid and write its artifact; returns the exit code.

    0 if every run is a result, whatever its verdict; EngineError's code if an engine did not start,
    died or was stopped early: the runs are then shown, and tried again by the next call.
    """
    console = console or Console(highlight=False)
    first = invocations[0]
    if first.engine.dry_run:
        for invocation in invocations:
            console.print(plan(invocation.run_config))
        return 0
    module = report_module(first.report)
    finished = run_all(invocations, console)
    tables = module.tabulate(finished)
    write_tables(first.paths.results, first.artifact, tables)
    console.print(verdict_table(tables[""]))
    if any(run.recording() is not None for run in finished):
        for path in module.draw(tables, first.paths.results / "figures" / first.artifact):
            console.print(f"figure: {path}", soft_wrap=True)
    failed = [run for run in finished if run.verdict in _FAILED]
    for run in failed:
        print(
            f"error: {run.verdict.name}: {run.summary['cause']}: see {run.directory}",
            file=sys.stderr,
        )
    return EngineError.exit_code if failed else 0


def run_all(invocations: Sequence[Invocation], console: Console) -> list[FinishedRun]:
    """Run every configuration in order, with a progress bar; finished ones are read back."""
    first = invocations[0]
    for invocation in invocations:
        check(invocation.run_config)
    runner = Runner(first.paths, RunProcesses(first.engine.kind), rerun=first.rerun)
    finished: list[FinishedRun] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:>4.0f}/{task.total:.0f} frames"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(*columns, console=console) as progress:
        tasks = [_add(progress, invocation.run_config) for invocation in invocations]
        for invocation, task in zip(invocations, tasks, strict=True):
            run = invocation.run_config
            progress.start_task(task)
            result = runner.run(run, lambda seen, task=task: _show(progress, task, seen))  # type: ignore[misc]
            progress.update(
                task, completed=_num_frames(run), state=f"[bold]{result.verdict.name}[/]"
            )
            progress.stop_task(task)
            console.print(verdict_line(result), soft_wrap=True)
            finished.append(result)
    return finished


def _num_frames(run: RunConfig) -> int:
    return run.workload.num_sessions * run.num_frames


def _add(progress: Progress, run: RunConfig) -> TaskID:
    return progress.add_task(
        f"{run.model.name} {retention_label(run.retention)}",
        total=_num_frames(run),
        start=False,
        state="waiting",
    )


def _show(progress: Progress, task: TaskID, seen: live_run.Progress) -> None:
    pool = "" if seen.occupancy is None else f", pool {seen.occupancy:.0%}"
    state = f"{seen.phase}, {seen.num_tokens} tokens{pool}"
    progress.update(task, completed=seen.num_released, state=state)
