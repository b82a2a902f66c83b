"""C12's rule on hand-made tables: each part can fail the verdict."""

from typing import Any

import pandas as pd
import pytest

from harness.claims.beyond_voice import same_cliff
from harness.claims.judgement import ClaimVerdict

LOOPS = ("agent_scratchpad", "video_assistant")


def _tables(**changes: Any) -> dict[str, pd.DataFrame]:
    """Two loops, of which the second has `changes`, as in unbounded__verdict="alive"."""
    runs, frames = [], []
    for loop in LOOPS:
        common = {
            "model": loop,
            "cause": "",
            "num_sessions": 32,
            "duration_s": 100.0,
            "schedule_digest": loop,
        }
        sides = {
            "unbounded": {
                "retention_kind": "unbounded",
                "verdict": "stalled",
                "completeness": 0.5,
                "pool_full_s": 50.0,
                "expected_saturation_s": 49.0,
                "peak_occupancy": 1.0,
                "early_misses": 0,
            },
            "bounded": {
                "retention_kind": "sink_window",
                "verdict": "alive",
                "completeness": 1.0,
                "pool_full_s": None,
                "expected_saturation_s": None,
                "peak_occupancy": 0.3,
                "early_misses": 0,
            },
        }
        if loop == LOOPS[1]:
            for key, value in changes.items():
                side, _, name = key.partition("__")
                sides[side][name] = value
        for side, values in sides.items():
            digest = f"{loop} {side}"
            early = values.pop("early_misses")
            runs.append({**common, **values, "variant": side, "run_digest": digest})
            due = pd.Series(range(100), dtype=float)
            missed = (due > 50) if side == "unbounded" else (due < 0)
            frames.append(
                pd.DataFrame(
                    {"run_digest": digest, "deadline_s": due, "missed": missed | (due < early)}
                )
            )
    return {"": pd.DataFrame(runs), "frames": pd.concat(frames, ignore_index=True)}


def test_the_same_cliff_and_the_same_cure_reproduce_the_claim() -> None:
    judged = same_cliff(_tables())
    assert judged.verdict is ClaimVerdict.REPRODUCED
    assert "agent_scratchpad, N = 32: full at 50 s (expected -2.0%), stalled" in judged.ours


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unbounded__verdict": "overloaded"}, "every unbounded loop collapses"),
        ({"unbounded__expected_saturation_s": 40.0}, "of the time that arithmetic expects"),
        ({"unbounded__pool_full_s": None}, "of the time that arithmetic expects"),
        ({"unbounded__early_misses": 3}, "answers in time until then"),
        ({"bounded__verdict": "overloaded"}, "every bounded loop is alive"),
        ({"bounded__completeness": 0.99}, "every bounded loop is alive"),
    ],
)
def test_a_part_that_fails_for_one_loop_is_named(change: dict[str, Any], words: str) -> None:
    judged = same_cliff(_tables(**change))
    assert judged.verdict is ClaimVerdict.PARTLY
    assert words in judged.why


def test_an_invalid_run_proves_nothing() -> None:
    judged = same_cliff(_tables(bounded__verdict="invalid"))
    assert judged.verdict is ClaimVerdict.NOT_MEASURED
    assert "video_assistant bounded is invalid" in judged.why


def test_variants_of_different_offers_are_no_pair() -> None:
    tables = _tables(bounded__schedule_digest="another")
    assert "video_assistant" not in same_cliff(tables).ours
    tables[""]["retention_kind"] = "unbounded"
    assert same_cliff(tables).verdict is ClaimVerdict.NOT_MEASURED
