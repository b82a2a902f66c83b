"""Latency made up here: what the tables and the rule for C9 make of it."""

import numpy as np
import pandas as pd
import pytest

from harness.analysis.latency_by_age import by_age, late
from harness.claims.judgement import ClaimVerdict
from harness.claims.window_size import latency

DURATION_S = 240.0


def tables(seconds: dict[int | None, float], verdict: str = "alive") -> dict[str, pd.DataFrame]:
    """One run a window; its later half takes `seconds` a frame, its earlier half nothing."""
    frames, runs = [], []
    for window, late_s in seconds.items():
        release = np.arange(0, DURATION_S, 2.0)
        name = "unbounded" if window is None else f"bounded (W={window})"
        frames.append(
            pd.DataFrame(
                {
                    "variant": name,
                    "run_digest": name,
                    "session_id": 0,
                    "release_s": release + 7.0,
                    "latency_s": np.where(release < DURATION_S / 2, 0.001, late_s),
                }
            )
        )
        runs.append(
            {
                "variant": name,
                "run_digest": name,
                "evidence": "simulated",
                "verdict": verdict,
                "duration_s": DURATION_S,
                "retention_window_tokens": window,
            }
        )
    stacked = pd.concat(frames, ignore_index=True)
    return {"by_age": by_age(stacked), "late": late(stacked, pd.DataFrame(runs))}


def test_small_windows_flat_and_a_large_one_risen_reproduce_c9() -> None:
    found = latency(tables({512: 0.1, 1024: 0.1, 2048: 0.105, 4096: 0.3, None: 0.4}))
    assert found.verdict is ClaimVerdict.REPRODUCED
    assert "W = 4096: 300 ms" in found.ours


@pytest.mark.parametrize(
    ("seconds", "why"),
    [((0.1, 0.1, 0.2, 0.5), "p90 is flat"), ((0.1, 0.1, 0.1, 0.15), "times as high at W = 4096")],
)
def test_each_part_can_fail(seconds: tuple[float, ...], why: str) -> None:
    found = latency(tables(dict(zip((512, 1024, 2048, 4096), seconds, strict=True))))
    assert found.verdict is ClaimVerdict.PARTLY
    assert why in found.why


def test_runs_that_are_not_alive_decide_nothing() -> None:
    windows = dict.fromkeys((512, 1024, 2048, 4096), 0.1)
    assert latency(tables(windows, verdict="overloaded")).verdict is ClaimVerdict.NOT_MEASURED


def test_windows_that_are_not_the_papers_are_shown_and_decide_nothing() -> None:
    found = latency(tables({64: 0.1, 128: 0.1, 256: 0.2, 512: 0.4}))
    assert found.verdict is ClaimVerdict.NOT_MEASURED
    assert "W = 256: 200 ms" in found.ours


def test_age_counts_from_a_sessions_own_first_frame() -> None:
    ages = tables({512: 0.1})["by_age"].set_index("age_s")["p90_s"]
    # Ten bins up to the oldest frame's 238 s.
    assert list(ages.index) == pytest.approx([23.8 * (n + 0.5) for n in range(10)])
    assert ages.iloc[4] == pytest.approx(0.001)
    assert ages.iloc[5] == pytest.approx(0.1)
