"""Short runs through the whole pipeline, on the echo engine, in real time and real processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.composition import expand
from harness.config import Invocation

CACHE = Path(__file__).resolve().parents[2] / ".cache"
# How punctual the machine is, is not what these tests ask: a busy one may be late by a frame.
PATIENT = ("diagnosis.max_release_lag_share=0.9", "diagnosis.miss_tolerance=0.2")
ECHO = (
    "engine=echo",
    "model.frame_budget_s=0.4",
    "workload.duration_s=2",
    "engine.hang_timeout_s=5",
    *PATIENT,
)


@pytest.fixture
def echo_points(tmp_path: Path) -> Callable[..., list[Invocation]]:
    """The cliff's grid on the echo engine, two seconds a run, results in a temporary directory."""

    def make(*overrides: str) -> list[Invocation]:
        paths = (f"paths.results_dir={tmp_path / 'results'}", f"paths.cache_dir={CACHE}")
        return expand([*ECHO, *paths, *overrides])

    return make
