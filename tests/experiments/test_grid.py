"""Which points of a grid run at the same time, which after one another, and which once."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from harness.composition import expand
from harness.config import EngineKind, Invocation, RunConfig
from harness.core.errors import ConfigError, CorpusError
from harness.experiments import grid
from harness.experiments.runner import FinishedRun

SIMULATED = ("engine=sim", "scale=full", "model=qwen3_omni", "hardware=rtx_pro_6000")


class _StandIn:
    """A runner that notes what is in progress and starts nothing."""

    def __init__(self, meanwhile: Callable[[RunConfig], None]) -> None:
        self.started: list[str] = []
        self._meanwhile = meanwhile

    def __call__(self, *_: object, **__: object) -> "_StandIn":
        return self

    def run(self, run: RunConfig, _: object) -> FinishedRun:
        self.started.append(run.digest)
        self._meanwhile(run)
        summary = {"verdict": "alive", "cause": ""}
        return FinishedRun(run=run, directory=Path(), summary=summary, was_cached=False)


@pytest.fixture
def run_grid(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[_StandIn, list[FinishedRun]]]:
    def run(
        points: list[Invocation], meanwhile: Callable[[RunConfig], None]
    ) -> tuple[_StandIn, list[FinishedRun]]:
        stand_in = _StandIn(meanwhile)
        monkeypatch.setattr(grid, "Runner", stand_in)
        return stand_in, grid.run_all(points, Console(quiet=True))

    return run


def test_simulated_points_meet_and_come_back_in_the_order_of_the_grid(
    run_grid: Callable[..., tuple[_StandIn, list[FinishedRun]]],
) -> None:
    points = expand([*SIMULATED, "num_parallel_runs=2"])
    # Each waits for the other: one at a time would break the barrier.
    barrier = threading.Barrier(2, timeout=10)
    _, finished = run_grid(points, lambda _: barrier.wait())
    assert [run.run for run in finished] == [point.run_config for point in points]


def test_live_points_never_meet(
    run_grid: Callable[..., tuple[_StandIn, list[FinishedRun]]],
) -> None:
    busy = threading.Lock()
    overlaps = []

    def meanwhile(_: RunConfig) -> None:
        overlaps.append(not busy.acquire(blocking=False))
        threading.Event().wait(0.05)
        busy.release()

    run_grid(expand([]), meanwhile)
    assert overlaps == [False, False]
    assert grid.num_workers(EngineKind.vllm, None) == 1
    with pytest.raises(ConfigError, match="must be 1 with engine=vllm"):
        expand(["num_parallel_runs=2"])


def test_equal_points_run_once(
    run_grid: Callable[..., tuple[_StandIn, list[FinishedRun]]],
) -> None:
    points = expand(SIMULATED)
    stand_in, finished = run_grid([*points, points[0]], lambda _: None)
    assert len(stand_in.started) == 2
    assert finished[2] is finished[0]


def test_an_error_ends_the_grid_before_the_points_that_wait(
    run_grid: Callable[..., tuple[_StandIn, list[FinishedRun]]],
) -> None:
    points = expand([*SIMULATED, "num_parallel_runs=1"])
    seen = []

    def fail(run: RunConfig) -> None:
        seen.append(run.digest)
        raise CorpusError("no audio")

    with pytest.raises(CorpusError, match="no audio"):
        run_grid(points, fail)
    assert len(seen) == 1
