"""The audit's rules on hand-made tables: each part of a claim can fail the verdict."""

from typing import Any

import pandas as pd
import pytest

from harness.analysis.tables import Tables
from harness.claims import audit, audit_capacity
from harness.claims.judgement import ClaimVerdict

REPRODUCED, PARTLY = ClaimVerdict.REPRODUCED, ClaimVerdict.PARTLY


def _run(name: str, series: str, variant: str, size: int, **more: Any) -> dict[str, Any]:
    return {
        "run": name,
        "series": series,
        "model": "qwen3_omni",
        "variant": variant,
        "num_sessions": size,
        "duration_s": 300.0,
        "window_tokens": None,
        "sample_s": None,
        "verdict": "alive",
        "verdict_evidence": "as made",
        "paper_rule_walled": False,
        "num_missed": 0,
        "p50_ms": 4.0,
        "p90_ms": 5.0,
        "settled_p90_ms": 5.0,
        "stall_onset_s": None,
        "step_down_s": None,
    } | more


def _wall_matrix(walled: int = 14) -> list[dict[str, Any]]:
    rows = []
    for k in range(20):
        size, stop_s = (128, 140.0) if k % 2 else (96, 186.0)
        fate = {"verdict": "stalled", "paper_rule_walled": True, "step_down_s": stop_s}
        rows.append(_run(f"u{k}", "wall_matrix", "unbounded", size, **(fate if k < walled else {})))
        rows.append(_run(f"b{k}", "wall_matrix", "bounded", size))
    return rows


def _tables(
    rows: list[dict[str, Any]],
    *,
    medians: dict[str, list[float]] | None = None,
    ramps: list[tuple[str, int, int, float]] | None = None,
) -> Tables:
    over_time = [
        {"run": run, "t_s": 15.0 * k, "median_ms": value}
        for run, values in (medians or {}).items()
        for k, value in enumerate(values)
    ]
    offers = [
        {
            "variant": variant,
            "offered": offered,
            "rate_per_s": 8.0,
            "admitted": admitted,
            "rejected": offered - admitted,
            "p99_steady_ms": p99,
        }
        for variant, offered, admitted, p99 in ramps or []
    ]
    return {
        "": pd.DataFrame(rows),
        "medians": pd.DataFrame(over_time, columns=["run", "t_s", "median_ms"]),
        "ramps": pd.DataFrame(offers),
    }


def test_the_papers_counts_with_every_other_run_served_reproduce_c1() -> None:
    judged = audit.wall(_tables(_wall_matrix()))
    assert judged.verdict is REPRODUCED
    assert judged.interval == pytest.approx((0.457, 0.881), abs=1e-3)


@pytest.mark.parametrize(
    ("variant", "change", "words"),
    [
        ("bounded", {"verdict": "quiet_at_boundary"}, "every bounded run was served to the end"),
        ("bounded", {"paper_rule_walled": True}, "bounded 0/20 by the paper's rule"),
        ("bounded", {"verdict": "stalled"}, "no bounded run stalls by ours"),
        ("unbounded", {"verdict": "never_served"}, "every unbounded run that did not wall"),
    ],
)
def test_one_run_of_another_fate_is_named(variant: str, change: dict[str, Any], words: str) -> None:
    rows = _wall_matrix()
    last = max(k for k, row in enumerate(rows) if row["variant"] == variant)
    rows[last] |= change
    judged = audit.wall(_tables(rows))
    assert judged.verdict is PARTLY
    assert words in judged.why


def test_another_count_is_not_the_papers() -> None:
    judged = audit.wall(_tables(_wall_matrix(walled=13)))
    assert "unbounded 14/20 by the paper's rule" in judged.why


def test_the_forecast_must_hit_at_128_and_scale_to_96() -> None:
    rows = _wall_matrix()
    assert audit.forecast(_tables(rows)).verdict is REPRODUCED
    for row in rows:
        if row["num_sessions"] == 96 and row["step_down_s"]:
            row["step_down_s"] = 140.0
    judged = audit.forecast(_tables(rows))
    assert judged.verdict is PARTLY
    assert "N = 96 later by 128/96" in judged.why


def test_one_call_needs_the_bounded_one_to_be_served() -> None:
    walled = {"verdict": "stalled", "stall_onset_s": 180.0}
    pair = [
        _run("u", "one_call", "unbounded", 128, **walled),
        _run("b", "one_call", "bounded", 128),
    ]
    assert audit.one_call(_tables(pair)).verdict is REPRODUCED
    pair[1]["verdict"] = "quiet_at_boundary"
    assert "bounded is served for 300 s" in audit.one_call(_tables(pair)).why


def test_minicpm_needs_single_digits_and_service_for_600_s() -> None:
    fate = {"sample_s": 10.0, "stall_onset_s": 110.0, "verdict": "stalled"}
    pair = [
        _run("u", "minicpm_600", "unbounded", 96, **fate),
        _run("b", "minicpm_600", "bounded", 96),
    ]
    good = _tables(pair, medians={"b": [800.0, 3.0, 9.0]})
    assert audit.minicpm_wall(good).verdict is REPRODUCED
    risen = audit.minicpm_wall(_tables(pair, medians={"b": [800.0, 3.0, 18.0]}))
    assert "single digits" in risen.why


def test_other_ramps_must_find_the_same_number() -> None:
    pair = [("bounded", 512, 209, 12.0), ("unbounded", 384, 247, 1603.0)]
    near, far = ("unknown", 384, 200, 8.0), ("unknown", 384, 175, 8.0)
    assert audit_capacity.admission(_tables([], ramps=[*pair, near])).verdict is REPRODUCED
    judged = audit_capacity.admission(_tables([], ramps=[*pair, far]))
    assert "other ramps that shed settle within 10%" in judged.why


def test_a_window_that_was_never_full_decides_nothing() -> None:
    rows = [
        _run(
            f"w{w}", "window_size", "bounded", 128, window_tokens=w, p90_ms=p90, settled_p90_ms=p90
        )
        for w, p90 in ((512, 5.0), (1024, 5.0), (2048, 5.0), (4096, 161.0))
    ]
    assert audit_capacity.window_size(_tables(rows)).verdict is REPRODUCED
    for row in rows:
        row |= {"duration_s": 60.0, "settled_p90_ms": 4.5}
    judged = audit_capacity.window_size(_tables(rows))
    assert judged.verdict is PARTLY
    assert "also without the first 15 s" in judged.why
    assert "at most 1860 tokens" in judged.why


def test_a_model_counts_only_where_every_session_was_served() -> None:
    sizes = {"qwen3_omni": 160, "minicpm_o": 96, "moshi": 32, "qwen2_5_omni": 16}
    rows = [_run(m, "burst", "unbounded", size, model=m) for m, size in sizes.items()]
    assert audit_capacity.four_models(_tables(rows)).verdict is REPRODUCED
    rows[1]["verdict"] = "partly_served"
    assert "MiniCPM-o serves every one of 96" in audit_capacity.four_models(_tables(rows)).why


def test_bursts_must_be_flat_at_every_n() -> None:
    rows = [_run(f"u{n}", "burst", "unbounded", n) for n in (64, 96, 128, 160)]
    rows += [_run(f"b{n}", "window_size", "bounded", n) for n in (64, 96, 128, 160)]
    medians = {str(row["run"]): [300.0, 3.0, 4.0] for row in rows}
    assert audit_capacity.burst(_tables(rows, medians=medians)).verdict is REPRODUCED
    medians["u160"] = [300.0, 3.0, 40.0]
    assert "unbounded is flat" in audit_capacity.burst(_tables(rows, medians=medians)).why


@pytest.mark.parametrize(
    "rule",
    [
        audit.wall,
        audit.one_call,
        audit.forecast,
        audit.minicpm_wall,
        audit_capacity.burst,
        audit_capacity.admission,
        audit_capacity.window_size,
        audit_capacity.four_models,
    ],
)
def test_nothing_is_claimed_from_data_that_lack_the_runs(rule: Any) -> None:
    other = [_run("x", "re_encode", "bounded", 8)]
    assert rule(_tables(other)).verdict is ClaimVerdict.NOT_MEASURED
