"""Frame times by formula: exact for one session, and never where an engine cannot keep up."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.config import RunConfig
from harness.engines.frame_time import frame_time
from harness.models.hardware import StepTime
from harness.workload.growth import with_sessions

Make = Callable[..., RunConfig]
COST = StepTime(
    scale="tiny",
    evidence="simulated",
    source="made up",
    base_s=0.01,
    request_s=0.001,
    prefill_step_s=0.02,
    prefill_token_s=0.0001,
    frame_s=0.003,
    context_byte_s=1e-10,
    ingest_frame_s=0.005,
)
# 52 tokens in, 8 out, B = 2 s.
ALONE_S = 8 * 0.011 + 0.02 + 52 * 0.0001 + 0.003


def test_one_session_takes_what_its_steps_cost(run_config: Make) -> None:
    run = run_config("workload.num_sessions=1")
    assert frame_time(run, COST, 0.0).latency_s == pytest.approx(0.005 + ALONE_S)
    read_s = 1000 * 57_344 * 1e-10
    longer = frame_time(run, COST, 1000.0)
    assert longer.latency_s == pytest.approx(0.005 + ALONE_S + 8 * read_s)


def test_others_add_their_share_and_a_step_to_wait_for(run_config: Make) -> None:
    found = frame_time(run_config("workload.num_sessions=2"), COST, 0.0)
    shared_s = ALONE_S - 8 * 0.01 - 0.02
    in_steps_s = ALONE_S / (1 - (shared_s + 0.02 * 7 / 8) / 2)
    wait_s = in_steps_s / 2 * 0.5 * in_steps_s / 8
    assert found.latency_s == pytest.approx(0.005 + wait_s + in_steps_s)
    assert found.engine_load == pytest.approx(2 * shared_s / 2)
    assert found.front_end_load == pytest.approx(0.005)


def test_steps_decided_on_ahead_are_waited_for(run_config: Make) -> None:
    run = run_config("workload.num_sessions=40")
    now, ahead = (
        frame_time(replace(run, engine=replace(run.engine, async_scheduling=is_async)), COST, 0.0)
        for is_async in (False, True)
    )
    assert now.latency_s is not None
    assert ahead.latency_s is not None
    # Another step of an engine that is never idle; 8 steps make a frame.
    assert 1.05 < ahead.latency_s / now.latency_s < 1.15


def test_nothing_is_decided_on_ahead_where_a_frame_is_one_step(run_config: Make) -> None:
    run = run_config("workload.num_sessions=40", "model.output_tokens_per_frame=1")
    latencies = {
        frame_time(
            replace(run, engine=replace(run.engine, async_scheduling=is_async)), COST, 0.0
        ).latency_s
        for is_async in (False, True)
    }
    assert len(latencies) == 1


def test_synchronised_frames_share_one_round(run_config: Make) -> None:
    run = run_config("workload.arrivals=synchronised", "engine.max_num_batched_tokens=1000")
    found = frame_time(run, COST, 0.0)
    prompts_s = 0.01 + 8 * 0.001 + 0.02 + 8 * (52 * 0.0001 + 0.003)
    assert found.latency_s == pytest.approx(8 * 0.005 + prompts_s + 7 * (0.01 + 8 * 0.001))
    smaller = frame_time(
        replace(run, engine=replace(run.engine, max_num_batched_tokens=256)), COST, 0.0
    )
    # 416 prompt tokens in two steps.
    assert smaller.latency_s is not None
    assert found.latency_s is not None
    assert smaller.latency_s - found.latency_s == pytest.approx(0.03)


def test_what_cannot_keep_up_has_no_latency(run_config: Make) -> None:
    run = run_config()
    for num_sessions in (125, 400):
        found = frame_time(with_sessions(run, num_sessions), COST, 0.0)
        assert found.latency_s is None
        assert not found.keeps(1e9)
        assert found.engine_load > 1


def test_more_sessions_are_never_faster(run_config: Make) -> None:
    run = run_config()
    latencies = [
        frame_time(with_sessions(run, count), COST, 0.0).latency_s for count in range(1, 110)
    ]
    assert len(set(latencies)) == len(latencies)
    assert latencies == sorted(latencies, key=lambda value: float(value or "inf"))
