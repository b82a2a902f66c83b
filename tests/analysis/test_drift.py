"""Early and late latency, while every call is served."""

import pandas as pd
import pytest

from harness.analysis.drift import latency_drift


def _frames(silent_from_s: float | None) -> pd.DataFrame:
    release = pd.Series([2.0 * k for k in range(100)])
    silent = release >= (1e9 if silent_from_s is None else silent_from_s)
    # Latency grows by 10 ms a second; the gateway waits until its limit once all is silent.
    return pd.DataFrame(
        {
            "release_s": release,
            "deadline_s": release + 2,
            "latency_s": (0.01 * release).mask(silent),
            "tick_wait_s": silent * 1.6,
            "silent": silent,
        }
    )


def test_quarters_are_of_the_whole_run_if_nobody_is_silent() -> None:
    drift = latency_drift(_frames(None))
    assert drift["answer_early_s"] == pytest.approx(0.01 * 24, abs=0.02)
    assert drift["answer_late_s"] == pytest.approx(0.01 * 174, abs=0.02)


def test_what_comes_after_the_first_silence_is_not_service() -> None:
    drift = latency_drift(_frames(100.0))
    assert drift["answer_early_s"] == pytest.approx(0.12, abs=0.02)
    assert drift["answer_late_s"] == pytest.approx(0.87, abs=0.02)
    assert drift["gateway_late_s"] == 0.0
