"""The line through bounded plateaus, and where it reaches a full pool."""

import numpy as np
import pandas as pd
import pytest

from harness.analysis.budget import budget_lines, ceiling_interval

SESSIONS = np.array([64.0, 128.0, 256.0, 384.0])


def _plateaus(values: np.ndarray, *, settled: tuple[bool, ...] = (True,) * 4) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "window_tokens": 1024,
            "sink_tokens": 16,
            "num_sessions": SESSIONS,
            "plateau": values,
            "is_settled": settled,
            "pool_tokens": 500_000,
        }
    )


def test_an_exact_line_reaches_one_where_arithmetic_says() -> None:
    line = budget_lines(_plateaus(0.01 + 0.002 * SESSIONS)).iloc[0]
    assert line["share_per_session"] == pytest.approx(0.002)
    assert line["rho0"] == pytest.approx(0.01)
    assert line["ceiling_sessions"] == pytest.approx(495)
    assert line["ceiling_low"] == pytest.approx(495, abs=0.1)
    assert line["ceiling_high"] == pytest.approx(495, abs=0.1)


def test_the_interval_holds_the_ceiling_about_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        noisy = 0.01 + 0.002 * SESSIONS + rng.normal(0, 0.01, len(SESSIONS))
        low, high = ceiling_interval(SESSIONS, noisy)
        assert low is not None
        held += low <= 495 <= (high or np.inf)
    assert 180 <= held <= 199


def test_plateaus_that_have_not_settled_are_left_out() -> None:
    values = 0.01 + 0.002 * SESSIONS
    values[3] = 0.2
    line = budget_lines(_plateaus(values, settled=(True, True, True, False))).iloc[0]
    assert line["num_points"] == 3
    assert line["share_per_session"] == pytest.approx(0.002)


def test_two_plateaus_make_no_line() -> None:
    values = 0.002 * SESSIONS
    assert budget_lines(_plateaus(values, settled=(True, True, False, False))).empty
