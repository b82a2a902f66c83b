"""The cliff's rules on hand-made tables: each part of a claim can fail the verdict."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.claims import cliff
from harness.claims.judgement import ClaimVerdict, from_parts


def _tables(**changes: Any) -> dict[str, pd.DataFrame]:
    common = {
        "num_sessions": 8,
        "frame_budget_s": 2.0,
        "duration_s": 40.0,
        "cause": "",
        "schedule_digest": "d",
        "model": "qwen2_5_omni",
        "retention_window_tokens": None,
        "answer_early_s": 0.03,
        "answer_late_s": 0.03,
        "gateway_early_s": 0.0,
        "gateway_late_s": 0.0,
        "tick_view_miss_share": 0.0,
    }
    unbounded = common | {
        "variant": "unbounded",
        "retention_kind": "unbounded",
        "run_digest": "u",
        "verdict": "stalled",
        "paper_rule_walled": True,
        "deadline_miss_share": 0.5,
        "completeness": 0.5,
        "silence_onset_s": 20.0,
        "pool_full_s": 20.0,
        "predicted_saturation_s": 19.0,
    }
    bounded = common | {
        "variant": "bounded",
        "retention_kind": "sink_window",
        "run_digest": "b",
        "verdict": "alive",
        "paper_rule_walled": False,
        "deadline_miss_share": 0.0,
        "completeness": 1.0,
        "silence_onset_s": None,
        "pool_full_s": None,
        "predicted_saturation_s": None,
    }
    for key, value in changes.items():
        side, _, name = key.partition("__")
        (unbounded if side == "unbounded" else bounded)[name] = value
    t_s = np.arange(0, 42, 0.25)
    pools = [
        pd.DataFrame(
            {
                "t_s": t_s,
                "occupancy": np.minimum(t_s / 20, 1.0),
                "running": 0,
                "waiting": np.where(t_s > 22, 8, 0),
                "run_digest": "u",
            }
        ),
        pd.DataFrame(
            {
                "t_s": t_s,
                "occupancy": np.minimum(t_s / 20, 0.5),
                "running": 0,
                "waiting": 0,
                "run_digest": "b",
            }
        ),
    ]
    return {"": pd.DataFrame([unbounded, bounded]), "pool": pd.concat(pools)}


def test_a_clean_cliff_reproduces_all_three_claims() -> None:
    tables = _tables()
    for rule in (cliff.one_step, cliff.trigger, cliff.forecast):
        assert rule(tables).verdict is ClaimVerdict.REPRODUCED


@pytest.mark.parametrize(
    ("change", "rule", "words"),
    [
        ({"unbounded__verdict": "alive"}, cliff.one_step, "unbounded collapses"),
        ({"bounded__completeness": 0.99}, cliff.one_step, "bounded is alive"),
        ({"unbounded__tick_view_miss_share": 0.1}, cliff.one_step, "the gateway sees no miss"),
        ({"unbounded__paper_rule_walled": False}, cliff.one_step, "steps to its limit"),
        ({"unbounded__answer_late_s": 0.3}, cliff.one_step, "so is release to last token"),
        ({"bounded__answer_late_s": 0.3}, cliff.one_step, "and flat"),
        ({"unbounded__pool_full_s": None}, cliff.trigger, "to a full pool"),
    ],
)
def test_a_part_that_fails_is_named(change: dict[str, Any], rule: Any, words: str) -> None:
    judged = rule(_tables(**change))
    assert judged.verdict is ClaimVerdict.PARTLY
    assert words in judged.why


def test_the_papers_plateau_is_asked_for_in_the_papers_setting_alone() -> None:
    setting = {"model": "qwen3_omni", "num_sessions": 128, "retention_window_tokens": 1024}
    here = _tables(**{f"bounded__{name}": value for name, value in setting.items()})
    judged = cliff.trigger(here)
    assert "near 0.25" in judged.why
    assert judged.verdict is ClaimVerdict.PARTLY
    # As if the bounded calls held half of what they do.
    of_bounded = here["pool"]["run_digest"] == "b"
    here["pool"].loc[of_bounded, "occupancy"] /= 2
    assert cliff.trigger(here).verdict is ClaimVerdict.REPRODUCED


def test_a_forecast_says_whether_the_pool_was_full_inside_its_interval() -> None:
    row = {"run_digest": "u", "is_asked": True, "low_s": 18.0, "high_s": 19.5}
    judged = cliff.forecast(_tables() | {"forecast": pd.DataFrame([row])})
    assert judged.interval == (18.0, 19.5)
    assert "outside 18.0 to 19.5 s" in judged.ours
    assert cliff.forecast(_tables()).interval is None


def test_a_forecast_that_is_off_contradicts_the_claim() -> None:
    judged = cliff.forecast(_tables(unbounded__predicted_saturation_s=30.0))
    assert judged.verdict is ClaimVerdict.CONTRADICTED
    assert "+50.0%" in judged.ours


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bounded__verdict": "invalid", "bounded__cause": "late"}, "run is invalid: late"),
        ({"bounded__schedule_digest": "other"}, "not offered the same schedule"),
        ({"bounded__retention_kind": "unbounded"}, "no unbounded and bounded pair"),
    ],
)
def test_nothing_is_claimed_from_a_spoiled_pair(change: dict[str, Any], words: str) -> None:
    for rule in (cliff.one_step, cliff.trigger, cliff.forecast):
        judged = rule(_tables(**change))
        assert judged.verdict is ClaimVerdict.NOT_MEASURED
        assert words in judged.why


def test_nothing_held_is_a_contradiction() -> None:
    assert from_parts({"a": False, "b": False}, "x").verdict is ClaimVerdict.CONTRADICTED
    assert from_parts({"a": False, "b": True}, "x").verdict is ClaimVerdict.PARTLY
