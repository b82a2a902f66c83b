"""The paper's wall in virtual time, from the command's configuration to its verdicts."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from harness.claims import cliff
from harness.claims.judgement import ClaimVerdict
from harness.composition import expand
from harness.diagnosis.verdicts import Verdict
from harness.experiments import forecast
from harness.experiments.grid import run_all
from harness.experiments.prediction import ExpectedVerdict, predict
from harness.experiments.runner import DONE, FinishedRun
from harness.experiments.session import report_module

CACHE = Path(__file__).resolve().parents[2] / ".cache"
# A quarter of the paper's calls on a quarter of its pool: the same occupancy at every instant.
QUARTER = (
    "engine=sim",
    "scale=full",
    "model=qwen3_omni",
    "hardware=rtx_pro_6000",
    "workload.num_sessions=32",
    "engine.kv_pool_blocks=8843",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FinishedRun]:
    """300 s of 32 calls, unbounded and bounded, at the same time."""
    results = tmp_path_factory.mktemp("results")
    points = expand([*QUARTER, f"paths.results_dir={results}", f"paths.cache_dir={CACHE}"])
    finished = run_all(points, Console(quiet=True))
    return {run.run.retention.kind.name: run for run in finished}


def test_unbounded_calls_collapse_when_the_pool_is_full_and_bounded_ones_live(
    runs: dict[str, FinishedRun],
) -> None:
    unbounded, bounded = runs["unbounded"].summary, runs["sink_window"].summary
    assert Verdict[unbounded["verdict"]].is_collapse, unbounded["cause"]
    # 141,488 tokens, filled by 32 calls of 27.5 a second.
    assert unbounded["pool_full_s"] == pytest.approx(160.8, abs=4)
    assert unbounded["predicted_saturation_s"] == pytest.approx(unbounded["pool_full_s"], abs=4)
    assert unbounded["tick_view_miss_share"] == 0.0
    assert bounded["verdict"] == "alive", bounded["cause"]
    assert bounded["peak_occupancy"] == pytest.approx(0.25, abs=0.02)
    assert bounded["completeness"] == 1.0


def test_a_prediction_says_what_the_simulation_does(runs: dict[str, FinishedRun]) -> None:
    found = predict(runs["sink_window"].run)
    unbounded, bounded = runs["unbounded"].summary, runs["sink_window"].summary
    assert found.unbounded.saturation is not None
    assert found.unbounded.saturation.median_s == pytest.approx(unbounded["pool_full_s"], abs=1.5)
    assert found.unbounded.verdict is ExpectedVerdict.collapse
    assert found.bounded.verdict is ExpectedVerdict.alive
    assert 0.9 < bounded["peak_occupancy"] / found.bounded.final_occupancy <= 1
    assert found.bounded.fullest_frame is not None
    assert bounded["latency_p50_s"] == pytest.approx(found.bounded.fullest_frame.latency_s, rel=0.1)


def test_a_simulated_run_leaves_what_a_live_one_leaves_and_says_what_it_is(
    runs: dict[str, FinishedRun],
) -> None:
    for kind, run in runs.items():
        assert run.summary["evidence"] == "simulated"
        assert (run.directory / DONE).exists()
        report = json.loads((run.directory / "bound.json").read_text())
        assert report["state"] == ("bounded" if kind == "sink_window" else "unbounded")
        assert report["num_layers"] == 48
        origin = json.loads((run.directory / "provenance.json").read_text())
        assert "published" in origin["config"]["hardware"]["step_times"]["qwen3_omni"]["source"]


def test_every_report_of_the_paper_draws_from_one_pair(
    runs: dict[str, FinishedRun], tmp_path: Path
) -> None:
    for name in ("one_call", "trigger", "forecast", "burst", "budget"):
        module = report_module(name)
        tables = module.tabulate(list(runs.values()))
        for path in module.draw(tables, tmp_path / name):
            assert path.stat().st_size > 10_000
    tables = forecast.tabulate(list(runs.values()))
    # Steps of a quarter of the calls are short: a moment comes in which all wait, and all stall.
    assert cliff.one_step(tables).verdict is ClaimVerdict.REPRODUCED
    judged = cliff.forecast(tables)
    assert judged.verdict is ClaimVerdict.REPRODUCED
    assert judged.interval is not None
