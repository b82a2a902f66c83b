"""A prediction agrees with what checks, plans and runs of the harness compute."""

from dataclasses import replace

import pytest
from rich.console import Console

from harness.capacity import planned_pool_blocks, plateau_occupancy
from harness.composition import compose
from harness.config import RunConfig
from harness.engines.frame_time import frame_time
from harness.experiments.plan import plan
from harness.experiments.prediction import ExpectedVerdict, predict
from harness.experiments.prediction_screen import screen
from harness.kv.retention import Retention
from harness.workload.growth import with_sessions


@pytest.fixture(scope="module")
def paper_run() -> RunConfig:
    """The paper's wall: 128 calls, five minutes, Qwen3-Omni on its GPU."""
    return compose(
        [
            "engine=sim",
            "scale=full",
            "model=qwen3_omni",
            "hardware=rtx_pro_6000",
            "retention=sink_window",
        ]
    ).run_config


@pytest.fixture(scope="module")
def drawn_run() -> RunConfig:
    """The wall matrix: drawn answers."""
    return compose(["experiment=wall_matrix", "retention=sink_window"]).run_config


def test_the_papers_wall(paper_run: RunConfig) -> None:
    found = predict(paper_run)
    assert found.pool_tokens == pytest.approx(566_000, rel=0.01)
    assert found.session_tokens_per_s == 27.5
    assert found.session_bytes_per_s == pytest.approx(2.70e6, rel=0.01)
    assert found.unbounded.saturation is not None
    assert found.unbounded.saturation.median_s == pytest.approx(160.5, abs=0.1)
    assert found.unbounded.verdict is ExpectedVerdict.collapse
    assert found.bounded.verdict is ExpectedVerdict.alive
    assert found.bounded.saturation is None
    assert found.step_time_evidence == "paper"


def test_the_fullest_frame_reads_the_bound_or_a_share_of_the_pool(paper_run: RunConfig) -> None:
    found = predict(paper_run)
    cost = paper_run.hardware.step_time("qwen3_omni")
    assert cost is not None
    # W and S; 35,374 blocks less 4 for a frame and half of one a call, over 128 calls.
    assert found.bounded.fullest_frame == frame_time(paper_run, cost, 1024 + 16)
    share = (35_374 - 4 - 128 * 15 / 32) * 16 / 128
    assert found.unbounded.fullest_frame == frame_time(paper_run, cost, share)


def test_its_numbers_are_those_of_checks_and_plans(paper_run: RunConfig) -> None:
    found = predict(paper_run)
    unbounded = replace(paper_run, retention=Retention())
    assert found.pool_blocks == planned_pool_blocks(paper_run)
    for run, side in ((paper_run, found.bounded), (unbounded, found.unbounded)):
        assert side.final_occupancy == plateau_occupancy(run, found.pool_blocks)
        last = with_sessions(run, side.session_ceiling)
        one_more = with_sessions(run, side.session_ceiling + 1)
        assert plateau_occupancy(last, found.pool_blocks) <= 1
        assert plateau_occupancy(one_more, found.pool_blocks) > 1
    assert found.unbounded.saturation is not None
    assert f"full after {found.unbounded.saturation.median_s:.0f} s" in _printed(unbounded)
    assert "never full" in _printed(paper_run)


def test_an_open_system_is_told_that_its_arrivals_are_not_in_the_forecast() -> None:
    run = compose(["experiment=admission", "retention=sink_window"]).run_config
    assert run.workload.arrivals.is_open
    console = Console(width=80)
    with console.capture() as captured:
        console.print(screen(predict(run)))
    assert "Calls arrive one by one here." in captured.get()
    assert "forecast for all calls from the start" in _printed(run)


def test_a_closed_system_is_told_nothing_of_arrivals(paper_run: RunConfig) -> None:
    assert not predict(paper_run).is_open
    assert "from the start" not in _printed(paper_run)


def _printed(run: RunConfig) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(plan(run))
    return captured.get()


@pytest.mark.parametrize(
    ("num_sessions", "unbounded", "bounded"),
    [
        (40, "alive", "alive"),
        (128, "collapse", "alive"),
        (430, "collapse", "overloaded"),
        (520, "refused", "refused"),
    ],
)
def test_verdicts_over_sessions(
    paper_run: RunConfig, num_sessions: int, unbounded: str, bounded: str
) -> None:
    found = predict(with_sessions(paper_run, num_sessions))
    assert (found.unbounded.verdict.value, found.bounded.verdict.value) == (unbounded, bounded)


def test_a_refusal_says_why(paper_run: RunConfig) -> None:
    found = predict(with_sessions(paper_run, 520))
    assert "is over engine.max_num_seqs=512" in found.bounded.reason
    assert found.bounded.session_ceiling == 505


def test_drawn_answers_give_an_interval_and_near_the_end_no_verdict(drawn_run: RunConfig) -> None:
    found = predict(with_sessions(drawn_run, 96)).unbounded
    assert found.saturation is not None
    low, median, high = (
        found.saturation.low_s,
        found.saturation.median_s,
        found.saturation.high_s,
    )
    # Half of a frame are answers, whose verbosity has a spread of 15 %.
    assert 0.05 < (high - low) / (4 * median) < 0.08
    assert found.verdict is ExpectedVerdict.collapse
    undecided = predict(with_sessions(drawn_run, 70)).unbounded
    assert undecided.verdict is ExpectedVerdict.undecided
    assert f"probability {undecided.full_probability:.2f}" in undecided.reason


def test_without_step_times_only_memory_is_judged(paper_run: RunConfig) -> None:
    found = predict(replace(paper_run, hardware=replace(paper_run.hardware, step_times={})))
    assert found.step_time_source is None
    assert found.bounded.step_time_ceiling is None
    assert found.bounded.verdict is ExpectedVerdict.alive
    assert "deadlines not judged" in found.bounded.reason


def test_a_gpu_too_slow_for_one_frame_is_overloaded_at_once(paper_run: RunConfig) -> None:
    entry = paper_run.hardware.step_times["qwen3_omni"] | {"base_s": 0.1}
    slow = replace(paper_run.hardware, step_times={"qwen3_omni": entry})
    found = predict(replace(paper_run, hardware=slow))
    assert found.bounded.verdict is ExpectedVerdict.overloaded
    assert found.bounded.step_time_ceiling == 0


def test_the_step_time_ceiling_is_the_last_number_that_keeps_b(paper_run: RunConfig) -> None:
    ceiling = predict(paper_run).bounded.step_time_ceiling
    assert ceiling is not None
    last = predict(with_sessions(paper_run, ceiling)).bounded.fullest_frame
    one_more = predict(with_sessions(paper_run, ceiling + 1)).bounded.fullest_frame
    assert last is not None
    assert one_more is not None
    assert last.keeps(2.0)
    assert not one_more.keeps(2.0)
