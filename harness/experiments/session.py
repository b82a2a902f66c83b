"""One command's work: run every configuration, tabulate, draw, and show a person what happened.

An experiment is a module with `tabulate(runs)` and `draw(tables, stem)`. It may have more:

    configured(invocation)    what takes the module's place, if it depends on the command itself
    wanted(invocations)       what to run of the grid
    follow_up(invocations, finished)
                              what to run next, knowing what came of the runs so far; asked again
                              until it wants nothing
    export(tables, results)   further files to write; returns their paths
    show(tables)              the table for the terminal, if a row of the summary is no run
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from rich.console import Console

from harness.analysis.tables import write_tables
from harness.config import Invocation
from harness.core.errors import ConfigError, EngineError
from harness.experiments.grid import run_all
from harness.experiments.plan import plan
from harness.experiments.report import verdict_table


def report_module(name: str) -> ModuleType:
    """The module that tabulates and draws. Raises: ConfigError if there is none of that name."""
    try:
        module = importlib.import_module(f"harness.experiments.{name}")
    except ModuleNotFoundError:
        raise ConfigError(f"report={name} has no module harness/experiments/{name}.py") from None
    if not hasattr(module, "tabulate") and not hasattr(module, "configured"):
        raise ConfigError(
            f"report={name} is no experiment: harness/experiments/{name}.py has no tabulate(runs)"
        )
    return module


def run_experiment(invocations: Sequence[Invocation], console: Console | None = None) -> int:
    """Run a grid and write its artifact; returns the exit code.

    0 if every run is a result, whatever its verdict; EngineError's code if an engine did not start,
    died or was stopped early, a run's process did not end by itself, or a run is invalid: those are
    shown, and tried again by the next call.
    """
    console = console or Console(highlight=False)
    first = invocations[0]
    if first.engine.dry_run:
        for invocation in invocations:
            console.print(plan(invocation.run_config))
        return 0
    module: Any = report_module(first.report)
    if hasattr(module, "configured"):
        module = module.configured(first)
    points = module.wanted(invocations) if hasattr(module, "wanted") else invocations
    finished = run_all(points, console) if points else []
    if hasattr(module, "follow_up"):
        while more := module.follow_up(invocations, finished):
            finished += run_all(more, console)
    tables = module.tabulate(finished)
    write_tables(first.paths.results, first.artifact, tables)
    console.print(module.show(tables) if hasattr(module, "show") else verdict_table(tables[""]))
    if not points or any(run.has_recorded for run in finished):
        for path in module.draw(tables, first.paths.results / "figures" / first.artifact):
            console.print(f"figure: {path}", soft_wrap=True)
    if hasattr(module, "export"):
        for path in module.export(tables, first.paths.results):
            console.print(f"written: {path}", soft_wrap=True)
    failed = [run for run in finished if not run.is_result]
    for run in failed:
        cause = run.summary["cause"]
        if run.failure is not None and run.failure not in cause:
            cause = f"{run.failure}: what it recorded reads {cause}"
        print(f"error: {run.verdict.name}: {cause}: see {run.directory}", file=sys.stderr)
    return EngineError.exit_code if failed else 0
