"""Live beside simulated, from recordings made by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.analysis.fidelity import QUANTITIES, compare_pair, compare_samples, sample_row
from harness.claims.fidelity import simulator
from harness.claims.judgement import ClaimVerdict
from harness.diagnosis.recording import Recording

Recorded = tuple[dict[str, Any], Recording]


def made(tokens: list[list[int]], *, preemptions: int = 0, **summary: Any) -> Recorded:
    """A run of frames of 8 tokens, 1 s each; tokens: of each session's frames, in order."""
    rows = [
        {
            "session_id": session,
            "frame": frame,
            "tokens": count,
            "expected_tokens": 8,
            "last_token_s": frame + 0.1 if count == 8 else np.nan,
            "ingest_s": 0.004,
        }
        for session, counts in enumerate(tokens)
        for frame, count in enumerate(counts)
    ]
    events = pd.DataFrame(
        {
            "t_s": [1.0] * preemptions,
            "kind": ["preempted"] * preemptions,
            "session_id": [0] * preemptions,
        }
    )
    empty = pd.DataFrame()
    values = {
        "retention": {"window_tokens": None, "sink_tokens": 0},
        "num_sessions": len(tokens),
        "seed": 0,
        "duration_s": 12.0,
        "frame_budget_s": 1.0,
        "verdict": "shedding",
        "completeness": 0.9,
        "pool_full_s": 5.0,
        "first_preemption_s": None,
        "last_token_s": 8.0,
        "deadline_miss_share": 0.2,
        "latency_p50_s": 0.1,
        "latency_p99_s": 0.2,
        "run_digest": "d",
    }
    recording = Recording(frames=pd.DataFrame(rows), pool=empty, events=events, schedule=empty)
    return values | summary, recording


def test_a_pair_is_compared_frame_by_frame() -> None:
    live = made([[8, 8, 8], [8, 3, 0]], preemptions=1, pool_full_s=5.0)
    simulated = made([[8, 8, 8], [8, 8, 0]], preemptions=2, pool_full_s=5.25)
    row = compare_pair(live, simulated)
    assert row["frames"] == 6
    assert row["frames_equal_share"] == pytest.approx(5 / 6)
    assert row["tokens_apart"] == pytest.approx(5 / 48)
    assert row["sessions_apart"] == 1
    assert (row["preemptions_live"], row["preemptions_simulated"]) == (1, 2)
    assert row["pool_full_s_simulated"] - row["pool_full_s_live"] == pytest.approx(0.25)


def test_sessions_are_compared_by_rank_never_by_id() -> None:
    one = sample_row(made([[8, 8], [8, 0]]), role="live")
    other = sample_row(made([[8, 0], [8, 8]]), role="simulated")
    assert one["sessions"] == other["sessions"] == [1, 2]
    never = sample_row(made([[8, 8]], pool_full_s=None), role="live")
    assert never["pool_full_s"] == 12.0


def _tables(*, lost: int = 0, num_live: int = 8, verdict: str = "shedding") -> dict[str, Any]:
    """Five equal staggered pairs, and synchronised runs of which the live ones lose frames."""
    simulated = made([[8] * 30, [8] * 30])
    pairs = [compare_pair(made([[8] * 30, [8] * 30], verdict=verdict), simulated)] * 5
    rng = np.random.default_rng(0)
    rows = []
    for role, count, fewer in (("live", num_live, lost), ("simulated", 40, 0)):
        for _ in range(count):
            served = int(rng.integers(15, 20)) - fewer
            run = made([[8] * served + [0] * (30 - served)], preemptions=int(rng.integers(1, 4)))
            rows.append(sample_row(run, role=role))
    return {"pairs": pd.DataFrame(pairs), "tests": compare_samples(pd.DataFrame(rows))}


def test_equal_samples_pass_and_the_claim_with_them() -> None:
    tables = _tables()
    assert list(tables["tests"]["quantity"]) == list(QUANTITIES)
    assert (tables["tests"]["p_corrected"] > 0.05).all()
    judged = simulator(tables)
    assert judged.verdict is ClaimVerdict.REPRODUCED, judged.why


def test_a_live_engine_that_serves_less_is_told_apart() -> None:
    tables = _tables(lost=6)
    tests = tables["tests"].set_index("quantity")
    assert (tests.loc[["sessions", "frames_answered"], "p_corrected"] < 0.05).all()
    judged = simulator(tables)
    assert judged.verdict is ClaimVerdict.PARTLY
    assert "no quantity's distribution is told apart" in judged.why
    assert "sessions, frames_answered told apart" in judged.ours


def test_a_pair_with_another_verdict_breaks_the_claim() -> None:
    judged = simulator(_tables(verdict="alive"))
    assert judged.verdict is ClaimVerdict.PARTLY
    assert "every pair has one verdict" in judged.why


def test_too_few_valid_runs_are_no_measurement() -> None:
    assert simulator(_tables(num_live=3)).verdict is ClaimVerdict.NOT_MEASURED
