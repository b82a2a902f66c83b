"""Rules of C5, C10, N1 and F5 on hand-made tables: each part of a claim can fail the verdict."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from harness.analysis.capacity import capacities
from harness.claims import admission, capacity, schedulable
from harness.claims.judgement import ClaimVerdict, Judgement


def _ramp(kind: str, **changes: Any) -> dict[str, Any]:
    run = {
        "controller": "AIMD",
        "signal": "contract",
        "variant": kind,
        "retention_kind": kind,
        "verdict": "alive" if kind == "sink_window" else "stalled",
        "cause": "",
        "schedule_digest": "d",
        "frame_budget_s": 2.0,
        "offered": 512,
        "shed": 303,
        "settled_sessions": 209,
        "converged_s": 30.0,
        "missed_after": 0.0 if kind == "sink_window" else 0.5,
        "steady_p99_s": 0.6,
        "steady_missed": 0.0,
    }
    return run | changes


def _tables(bounded: dict[str, Any], unbounded: dict[str, Any]) -> dict[str, pd.DataFrame]:
    runs = [_ramp("sink_window", **bounded), _ramp("unbounded", **unbounded)]
    return {"": pd.DataFrame(runs)}


@pytest.mark.parametrize(
    ("bounded", "unbounded", "verdict"),
    [
        ({}, {}, ClaimVerdict.REPRODUCED),
        ({"settled_sessions": 72}, {}, ClaimVerdict.PARTLY),
        ({"missed_after": 0.02}, {}, ClaimVerdict.PARTLY),
        ({"steady_p99_s": None}, {}, ClaimVerdict.PARTLY),
        ({}, {"verdict": "alive"}, ClaimVerdict.PARTLY),
        ({"shed": 0}, {}, ClaimVerdict.PARTLY),
        ({"verdict": "invalid"}, {}, ClaimVerdict.NOT_MEASURED),
        ({"schedule_digest": "other"}, {}, ClaimVerdict.NOT_MEASURED),
        (
            {"shed": 0, "settled_sessions": 504, "missed_after": 0.9, "steady_p99_s": 50.0},
            {"verdict": "alive"},
            ClaimVerdict.CONTRADICTED,
        ),
    ],
)
def test_c5_holds_only_with_every_part(
    bounded: dict[str, Any], unbounded: dict[str, Any], verdict: ClaimVerdict
) -> None:
    assert admission.on_contract(_tables(bounded, unbounded)).verdict is verdict


def test_each_signal_has_its_own_verdict() -> None:
    tables = _tables({}, {})
    assert admission.on_gateway(tables).verdict is ClaimVerdict.NOT_MEASURED


@pytest.mark.parametrize(
    ("aware", "alone", "verdict"),
    [
        ("alive", "stalled", ClaimVerdict.REPRODUCED),
        ("stalled", "stalled", ClaimVerdict.PARTLY),
        ("alive", "alive", ClaimVerdict.PARTLY),
    ],
)
def test_protection_is_judged_against_aimd_alone(
    aware: str, alone: str, verdict: ClaimVerdict
) -> None:
    runs = [
        _ramp("unbounded", verdict=alone),
        _ramp("unbounded", controller="forecast-aware", verdict=aware),
    ]
    assert admission.protects_unbounded({"": pd.DataFrame(runs)}).verdict is verdict


CENSORED = 111.0


def _study(medians: dict[tuple[float, float], float], served: int = 208) -> dict[str, pd.DataFrame]:
    bias = pd.DataFrame(
        [
            {
                "variant": "w",
                "retention_kind": "sink_window",
                "target_s": target_s,
                "arrival_rate_per_s": rate,
                "median": median,
                "bias": median / served - 1,
                "is_censored": median == CENSORED,
            }
            for (target_s, rate), median in medians.items()
        ]
    )
    truth = pd.DataFrame(
        {
            "variant": ["w"],
            "retention_kind": ["sink_window"],
            "served_sessions": [served],
            "failed_sessions": [served + 10],
        }
    )
    paper = pd.DataFrame({"variant": ["bounded"], "admitted": [209], "offered": [512]})
    return {"bias": bias, "truth": truth, "paper": paper}


@pytest.mark.parametrize(
    ("medians", "verdict"),
    [
        (
            {(0.6, 2.0): 205, (0.6, 16.0): 210, (1.8, 2.0): 208, (1.8, 16.0): 209},
            ClaimVerdict.REPRODUCED,
        ),
        (
            {(0.6, 2.0): CENSORED, (0.6, 16.0): 210, (1.8, 2.0): 208, (1.8, 16.0): 209},
            ClaimVerdict.REPRODUCED,
        ),
        ({(0.6, 2.0): 60, (0.6, 16.0): 64, (1.8, 2.0): 205, (1.8, 16.0): 209}, ClaimVerdict.PARTLY),
        (
            {(0.6, 2.0): 60, (0.6, 16.0): 90, (1.8, 2.0): 105, (1.8, 16.0): 309},
            ClaimVerdict.CONTRADICTED,
        ),
    ],
)
def test_a_property_of_the_system_depends_on_neither_ramp_nor_target(
    medians: dict[tuple[float, float], float], verdict: ClaimVerdict
) -> None:
    assert schedulable.property_of_the_system(_study(medians)).verdict is verdict


@pytest.mark.parametrize(
    ("slow", "fast", "finding"),
    [
        ((60, 205), (64, 209), "property of the target; does not hold"),
        ((60, 62), (90, 95), "property of the ramp; does not hold"),
        ((60, 90), (90, 205), "property of the ramp and of the target; does not hold"),
        ((205, 208), (210, 209), "over ramps the medians agree"),
    ],
)
def test_what_a_settled_number_depends_on_is_said_first(
    slow: tuple[int, int], fast: tuple[int, int], finding: str
) -> None:
    medians = {
        (target_s, rate): found
        for rate, pair in ((2.0, slow), (16.0, fast))
        for target_s, found in zip((0.6, 1.8), pair, strict=True)
    }
    judgement = schedulable.property_of_the_system(_study(medians))
    assert finding in judgement.why
    assert judgement.why.startswith(("where AIMD settles is a", "over ramps"))


def _try(model: str, n: int, served: bool, **changes: Any) -> dict[str, Any]:
    run = {
        "model": model,
        "variant": "unbounded",
        "num_sessions": n,
        "served": served,
        "evidence": "simulated",
        "step_evidence": "paper",
        "first_miss_s": None if served else 10.0,
        "pool_full_s": None,
        "first_preemption_s": None,
        "ingest_load": 0.2,
        "encoder_load": 0.1,
        "memory_ceiling": 300,
        "bounded_ceiling": 500,
        "duration_s": 90.0,
    }
    return run | changes


@pytest.mark.parametrize(
    ("changes", "binds"),
    [
        ({}, "deadline"),
        ({"pool_full_s": 9.0}, "memory"),
        ({"pool_full_s": 11.0}, "deadline"),
        ({"first_preemption_s": 9.0, "first_miss_s": None}, "memory"),
        ({"ingest_load": 0.95, "encoder_load": 0.8}, "front end"),
        ({"encoder_load": 0.6}, "encoder"),
    ],
)
def test_what_binds_is_what_came_first(changes: dict[str, Any], binds: str) -> None:
    runs = pd.DataFrame([_try("m", 20, True), _try("m", 21, False, **changes)])
    found = capacities(runs).iloc[0]
    assert (found["served_sessions"], found["failed_sessions"]) == (20, 21)
    assert found["binds"] == binds


PAPER = pd.DataFrame(
    {
        "model": ["qwen3_omni", "minicpm_o", "moshi", "qwen2_5_omni"],
        "low": [160, 96, 32, 16],
        "high": [None, 96, None, 24],
    }
)


@pytest.mark.parametrize(
    ("served", "verdict"),
    [
        ((170, 100, 100, 20), ClaimVerdict.REPRODUCED),
        ((130, 100, 100, 20), ClaimVerdict.PARTLY),
        ((130, 160, 20, 30), ClaimVerdict.CONTRADICTED),
    ],
)
def test_c10_compares_brackets_with_the_papers_ranges(
    served: tuple[int, ...], verdict: ClaimVerdict
) -> None:
    runs = pd.DataFrame(
        [
            _try(model, n + step, step == 0)
            for model, n in zip(PAPER["model"], served, strict=True)
            for step in (0, 1)
        ]
    )
    tables = {"capacity": capacities(runs), "paper": PAPER}
    assert capacity.four_models(tables).verdict is verdict


def test_c10_is_not_measured_without_all_four_models() -> None:
    runs = pd.DataFrame([_try("moshi", 40, True)])
    tables = {"capacity": capacities(runs), "paper": PAPER}
    assert capacity.four_models(tables).verdict is ClaimVerdict.NOT_MEASURED


@pytest.mark.parametrize(
    ("bounded", "unbounded", "warning_s", "verdict"),
    [
        (0.95, 0.1, 12.0, ClaimVerdict.REPRODUCED),
        (0.95, 0.1, -12.0, ClaimVerdict.PARTLY),
        (-0.4, -0.4, None, ClaimVerdict.CONTRADICTED),
        (None, 0.1, 12.0, ClaimVerdict.NOT_MEASURED),
    ],
)
def test_a_truthful_signal_rises_with_load_and_warns_in_time(
    bounded: float | None, unbounded: float, warning_s: float | None, verdict: ClaimVerdict
) -> None:
    rows = [
        {
            "controller": admission.FULL_RAMP,
            "signal": signal,
            "retention_kind": kind,
            "rho": rho,
            "first_miss_s": 40.0,
            "warning_s": warning_s,
        }
        for signal in ("contract", "gateway")
        for kind, rho in (("sink_window", bounded), ("unbounded", unbounded))
    ]
    assert admission.truthful({"signals": pd.DataFrame(rows)}).verdict is verdict


def test_what_was_let_in_on_the_way_is_read_off_the_ramp() -> None:
    control = pd.DataFrame(
        {
            "run_digest": "d",
            "kind": ["live", "live", "cap", "live"],
            "t_s": [0.0, 1.0, 1.5, 2.0],
            "value": [1, 2, 99, 3],
        }
    )
    run = pd.Series({"run_digest": "d", "arrival_rate_per_s": 1.0})
    assert [admission.let_in_after(control, run, n) for n in (1, 2, 3, 50)] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    "rule",
    [
        admission.on_contract,
        admission.on_gateway,
        admission.protects_unbounded,
        admission.truthful,
        schedulable.property_of_the_system,
    ],
)
def test_runs_without_a_recording_measure_nothing(
    rule: Callable[[dict[str, pd.DataFrame]], Judgement],
) -> None:
    runs = pd.DataFrame([{"verdict": "never_served", "retention_kind": "unbounded"}])
    assert rule({"": runs}).verdict is ClaimVerdict.NOT_MEASURED
