"""`python -m harness experiment=cliff model=moshi`: Hydra composes, the experiment runs.

With `-m` a job of the sweep may run elsewhere: a launcher pickles the task, with what it encloses,
for a worker process on this or another machine (docs/clusters.md).
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from harness.composition import (
    CONFIG_DIR,
    CONFIG_ERRORS,
    CONFIG_NAME,
    as_harness_error,
    check_overrides,
    expand,
    register_schema,
)
from harness.core.errors import ConfigError, HarnessError
from harness.experiments.session import run_experiment

INTERRUPTED = 130


class JobFailed(HarnessError):
    """A job of a sweep has said elsewhere what went wrong; this carries its exit code home."""

    def __init__(self, exit_code: int, machine: str) -> None:
        super().__init__(exit_code, machine)
        self.exit_code = exit_code
        self._machine = machine

    def __str__(self) -> str:
        return (
            f"a job of the sweep failed on {self._machine} with exit code {self.exit_code}: its "
            "log says why; finished runs are kept"
        )


def main() -> int:
    """Run what the command line asks for; returns the exit code."""
    # Hydra would print half a traceback and exit by itself; the wording of errors is ours.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    register_schema()
    exit_codes: list[int] = []
    launched_from, folder = _this_process(), Path.cwd()

    @hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name=CONFIG_NAME)
    def task(_: DictConfig) -> None:
        # An error ends this job, not the others of a sweep (`-m`); Ctrl-C ends them all.
        is_elsewhere = _this_process() != launched_from
        overrides = list(HydraConfig.get().overrides.task)
        code = _reported(lambda: _run(overrides, folder))
        exit_codes.append(code)
        if is_elsewhere and code:
            raise JobFailed(code, platform.node())

    def checked() -> None:
        check_overrides(sys.argv[1:])
        task()

    return guarded(checked) or max(exit_codes, default=0)


def _run(overrides: list[str], folder: Path) -> int:
    """Run one job of the command in the folder that the command was given in.

    Relative paths mean the same there, so that all workers share one results directory.
    Raises: ConfigError if a worker does not see the folder; whatever the experiment raises.
    """
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be entered on {platform.node()}: {error.strerror}: workers need the "
            "project on a file system that all of them share"
        ) from error
    return run_experiment(expand(overrides))


def _this_process() -> tuple[str, int]:
    return platform.node(), os.getpid()


def guarded(work: Callable[[], int | None]) -> int:
    """Run `work`; a known error or Ctrl-C becomes one line and an exit code."""
    try:
        return _reported(work)
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept; the same command goes on", file=sys.stderr)
        return INTERRUPTED


def _reported(work: Callable[[], int | None]) -> int:
    try:
        return work() or 0
    except (HarnessError, *CONFIG_ERRORS) as error:
        known = as_harness_error(error)
        print(f"error: {known}", file=sys.stderr)
        return known.exit_code
