"""Short runs through the whole pipeline, on the echo engine, in real time and real processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.composition import expand
from harness.config import Invocation

CACHE = Path(__file__).resolve().parents[2] / ".cache"
ECHO = (
    "engine=echo",
    "model.frame_budget_s=0.2",
    "workload.duration_s=2",
    "engine.hang_timeout_s=5",
)


@pytest.fixture
def echo_points(tmp_path: Path) -> Callable[..., list[Invocation]]:
    """The cliff's grid on the echo engine, two seconds a run, results in a temporary directory."""

    def make(*overrides: str) -> list[Invocation]:
        paths = (f"paths.results_dir={tmp_path / 'results'}", f"paths.cache_dir={CACHE}")
        return expand([*ECHO, *paths, *overrides])

    return make
