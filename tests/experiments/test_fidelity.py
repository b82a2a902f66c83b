"""The comparison end to end, with simulated engines of another speed in the live ones' place."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.composition import compose, expand
from harness.config import EngineKind, RunConfig
from harness.core.errors import ConfigError
from harness.diagnosis.summary import summarise
from harness.experiments import fidelity
from harness.experiments.runner import FinishedRun
from harness.workload.corpus import Clip
from tests.engines.simulation import configured, simulate

# Six frames a call, on a pool that is full after four of them.
CALLS = (
    "experiment=fidelity",
    "engine.record_steps=false",
    "engine.kv_pool_blocks=24",
    "workload.num_sessions=4",
    "workload.duration_s=6",
    "diagnosis.silent_after_frames=1",
    "workload.answers=geometric",
    "workload.answer_limit_tokens=24",
)
SYNCHRONISED = "workload.arrivals=synchronised"


def _finished(run: RunConfig, clips: list[Clip], directory: Path, *, as_live: bool) -> FinishedRun:
    recording = simulate(run, clips, directory)
    if as_live:
        engine = dataclasses.replace(run.engine, kind=EngineKind.vllm)
        run = dataclasses.replace(run, engine=engine)
    summary = summarise(run, recording)
    return FinishedRun(run=run, directory=directory, summary=summary, was_cached=False)


CALIBRATION = ("seed=100", "engine.record_steps=true", "engine.kv_pool_blocks=64", SYNCHRONISED)
STAGGERED = ("workload.arrivals=staggered",)


@pytest.fixture
def made(clips: list[Clip], tmp_path: Path) -> Callable[..., list[FinishedRun]]:
    """Runs of some offers, which say that they are live."""

    def make(*offers: tuple[str, ...]) -> list[FinishedRun]:
        return [
            _finished(configured(*CALLS, *offer), clips, tmp_path / str(index), as_live=True)
            for index, offer in enumerate(offers)
        ]

    return make


def test_every_live_run_is_simulated_with_the_fitted_step_time_and_compared(
    made: Callable[..., list[FinishedRun]],
    clips: list[Clip],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fidelity, "SIMULATED_REPETITIONS", 5)
    repetitions = [(SYNCHRONISED, f"repetition={repetition}") for repetition in range(4)]
    live = made(CALIBRATION, STAGGERED, *repetitions)
    command = [compose(CALLS)]
    wanted = [point.run_config for point in fidelity.follow_up(command, live)]
    assert len(wanted) == 1 + 5
    told = live[0].run.hardware.step_time("qwen2_5_omni")
    assert told is not None
    for run in wanted:
        assert run.engine.kind is EngineKind.sim
        fitted = run.hardware.step_time("qwen2_5_omni")
        assert fitted is not None
        assert fitted.frame_s + fitted.prefill_step_s == pytest.approx(
            told.frame_s + told.prefill_step_s, rel=0.1
        )
    simulated = [_finished(run, clips, tmp_path / run.digest, as_live=False) for run in wanted]
    assert fidelity.follow_up(command, [*live, *simulated]) == []
    tables = fidelity.tabulate([*live, *simulated])
    assert tables[""]["role"].value_counts().to_dict() == {
        "simulated": 6,
        "live": 5,
        "calibration": 1,
    }
    (pair,) = tables["pairs"].to_dict(orient="records")
    assert pair["frames"] == 24
    assert pair["frames_equal_share"] == 1.0
    assert pair["verdict_live"] == pair["verdict_simulated"]
    assert abs(pair["last_token_s_live"] - pair["last_token_s_simulated"]) < 0.05
    tests = tables["tests"].set_index("quantity")
    assert tests.loc["sessions", ["num_live", "num_simulated"]].tolist() == [4, 5]
    assert all(path.stat().st_size > 10_000 for path in fidelity.draw(tables, tmp_path / "f"))


def test_an_invalid_live_run_is_listed_and_not_compared(
    made: Callable[..., list[FinishedRun]],
) -> None:
    (run,) = made(STAGGERED)
    spoiled = dataclasses.replace(run, summary=run.summary | {"verdict": "invalid"})
    tables = fidelity.tabulate([spoiled])
    assert tables[""]["verdict"].tolist() == ["invalid"]
    assert tables["pairs"].empty
    assert tables["tests"]["num_live"].tolist() == [0] * len(tables["tests"])


def test_a_part_of_the_grid_without_calibration_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match=r"runs with case=calibration, and what is named"):
        fidelity.wanted(expand(["experiment=fidelity", "case=calls_4"]))
    whole = expand(["experiment=fidelity"])
    assert fidelity.wanted(whole) == whole
