"""`python -m harness experiment=cliff model=moshi`: Hydra composes, the experiment runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from harness.composition import (
    CONFIG_DIR,
    CONFIG_ERRORS,
    CONFIG_NAME,
    as_harness_error,
    expand,
    register_schema,
)
from harness.core.errors import HarnessError
from harness.experiments.session import run_experiment

INTERRUPTED = 130


def main() -> int:
    """Run what the command line asks for; returns the exit code."""
    # Hydra would print half a traceback and exit by itself; the wording of errors is ours.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    register_schema()
    exit_codes: list[int] = []

    @hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name=CONFIG_NAME)
    def task(_: DictConfig) -> None:
        # An error ends this job, not the others of a sweep (`-m`).
        overrides = list(HydraConfig.get().overrides.task)
        exit_codes.append(guarded(lambda: run_experiment(expand(overrides))))

    return guarded(task) or max(exit_codes, default=0)


def guarded(work: Callable[[], int | None]) -> int:
    """Run `work`; a known error or Ctrl-C becomes one line and an exit code."""
    try:
        return work() or 0
    except (HarnessError, *CONFIG_ERRORS) as error:
        known = as_harness_error(error)
        print(f"error: {known}", file=sys.stderr)
        return known.exit_code
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept; the same command goes on", file=sys.stderr)
        return INTERRUPTED
