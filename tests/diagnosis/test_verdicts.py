"""One hand-made trace for every verdict, and for every self-check that makes one invalid."""

import math

import pytest

from harness.config import RunConfig
from harness.diagnosis.summary import summarise, unserved
from harness.diagnosis.verdicts import Diagnosis, Verdict, diagnose, pool_full_s
from tests.diagnosis.conftest import NUM_FRAMES, Make

FULL = (10, 100, 100)


def test_alive_when_every_frame_is_answered_in_time(run: RunConfig, recording: Make) -> None:
    found = diagnose(run, recording())
    assert found.verdict is Verdict.alive
    assert "0.0% deadline misses" in found.cause


def test_stalled_when_the_pool_is_full_and_nothing_runs(run: RunConfig, recording: Make) -> None:
    found = diagnose(run, recording(answered=(5, 5), used_blocks=FULL, waiting=2, paused=0))
    assert found.verdict is Verdict.stalled
    assert "2 sessions wait for blocks" in found.cause


def test_shedding_when_a_preempted_session_stays_silent(run: RunConfig, recording: Make) -> None:
    events = [(9.0, "preempted", 1, "")]
    found = diagnose(
        run,
        recording(answered=(NUM_FRAMES, 5), used_blocks=FULL, running=1, waiting=1, events=events),
    )
    assert found.verdict is Verdict.shedding
    assert "1 of 2 sessions are silent for good, 1 were preempted" in found.cause


def test_a_preemption_proves_a_full_pool_that_no_sample_saw(
    run: RunConfig, recording: Make
) -> None:
    events = [(9.1, "preempted", 1, "")]
    seen = recording(answered=(NUM_FRAMES, 5), used_blocks=(10, 90, 90), events=events)
    assert pool_full_s(run, seen) == 9.1
    assert pool_full_s(run, recording(used_blocks=FULL)) == pytest.approx(9.75, abs=0.3)
    assert pool_full_s(run, recording()) is None


def test_overloaded_when_tokens_flow_but_late(run: RunConfig, recording: Make) -> None:
    found = diagnose(run, recording(delay_s=2.5))
    assert found.verdict is Verdict.overloaded
    assert "100.0% of frames missed" in found.cause


def test_overloaded_not_shedding_when_a_session_starves_beside_a_free_pool(
    run: RunConfig, recording: Make
) -> None:
    found = diagnose(run, recording(answered=(NUM_FRAMES, 0)))
    assert found.verdict is Verdict.overloaded
    assert "pool not full" in found.cause


def test_engine_dead_when_the_engine_said_so(run: RunConfig, recording: Make) -> None:
    events = [(7.5, "engine_dead", None, "engine core died")]
    found = diagnose(run, recording(answered=(3, 3), events=events))
    assert found.verdict is Verdict.engine_dead
    assert "at 7.5 s: engine core died" in found.cause


def test_never_served_when_no_token_ever_came(run: RunConfig, recording: Make) -> None:
    assert diagnose(run, recording(answered=(0, 0))).verdict is Verdict.never_served


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ((4.0, "interrupted", None, ""), "interrupted after 4.0 s"),
        ((6.0, "session_end", 1, ""), "the engine ended 1 sessions, the first at 6.0 s"),
    ],
)
def test_ended_early_when_cut_short(
    run: RunConfig, recording: Make, event: tuple[float, str, int | None, str], words: str
) -> None:
    found = diagnose(run, recording(answered=(2, 2), events=[event]))
    assert found.verdict is Verdict.ended_early
    assert words in found.cause


@pytest.mark.parametrize(
    ("spoiled", "words"),
    [
        ({"lag_s": 0.2}, "the replayer was late: release lag p99 200.0 ms is over 100.0 ms"),
        ({"prefixes": ("a", "a")}, "1 sessions share their first frame"),
        ({"pool_step_s": 2.5}, "the pool was not sampled for 2.50 s"),
    ],
)
def test_invalid_when_a_self_check_fails(
    run: RunConfig, recording: Make, spoiled: dict[str, object], words: str
) -> None:
    found = diagnose(run, recording(**spoiled))
    assert found.verdict is Verdict.invalid
    assert words in found.cause


def test_invalid_when_latency_sits_on_a_limit(run: RunConfig, recording: Make) -> None:
    capped = recording()
    capped.frames["latency_s"] = 1.6
    found = diagnose(run, capped)
    assert found.verdict is Verdict.invalid
    assert "100% of latencies are 1.600000 s" in found.cause


def test_invalid_when_sessions_would_cross_max_model_len(
    run_config: object, recording: Make
) -> None:
    short = run_config(  # type: ignore[operator]
        "workload.num_sessions=2", "workload.duration_s=20", "engine.max_model_len=128"
    )
    found = diagnose(short, recording())
    assert found.verdict is Verdict.invalid
    assert "engine.max_model_len=128" in found.cause


def test_a_collapse_is_shedding_stalled_or_engine_dead() -> None:
    assert {v for v in Verdict if v.is_collapse} == {
        Verdict.shedding,
        Verdict.stalled,
        Verdict.engine_dead,
    }


def test_the_paper_rule_sees_a_wall_where_no_deadline_miss_shows(
    run: RunConfig, recording: Make
) -> None:
    summary = summarise(run, recording(answered=(5, 5), used_blocks=FULL, waiting=2, paused=0))
    assert summary["paper_rule_walled"] is True
    assert summary["tick_view_miss_share"] == 0.0
    assert summary["deadline_miss_share"] == 0.5
    assert summary["completeness"] == 0.5
    assert summary["silence_onset_s"] == 10.0
    assert summary["latency_p99_s"] < 0.1


def test_the_fixed_shape_of_a_verdict_holds_for_served_and_unserved_runs(
    run: RunConfig, recording: Make
) -> None:
    served = summarise(run, recording())
    never = unserved(run, Diagnosis(verdict=Verdict.never_served, cause="it did not start"))
    assert set(served) == set(never) == _FIXED_KEYS
    assert not any(isinstance(v, float) and math.isnan(v) for v in served.values())


_FIXED_KEYS = {
    "experiment",
    "model",
    "engine",
    "evidence",
    "retention",
    "num_sessions",
    "frame_budget_s",
    "duration_s",
    "seed",
    "verdict",
    "cause",
    "completeness",
    "deadline_miss_share",
    "tick_view_miss_share",
    "empty_frame_share",
    "latency_p50_s",
    "latency_p99_s",
    "peak_occupancy",
    "pool_full_s",
    "first_preemption_s",
    "last_token_s",
    "silence_onset_s",
    "predicted_saturation_s",
    "paper_rule_walled",
    "schedule_digest",
    "run_digest",
}
