"""The forecast of a full pool on traces whose future is known."""

import numpy as np
import numpy.typing as npt
import pytest

from harness.analysis import forecast
from harness.analysis.forecast import Forecast, forecast_full_pool

Floats = npt.NDArray[np.float64]
BUDGET_S = 2.0
STEP_S = 0.25
POOL_TOKENS = 565_984


def _trace(rng: np.random.Generator, *, spread: bool = True) -> tuple[Floats, Floats, float]:
    """Occupancy of 128 staggered calls, 27 tokens and an answer a frame, and when it is full."""
    num_sessions, num_frames = 128, 150
    shape = (num_sessions, num_frames)
    answers = np.minimum(rng.geometric(1 / 31, shape), 64) if spread else np.full(shape, 28)
    phases = np.arange(num_sessions)[:, None] * BUDGET_S / num_sessions
    instants = (phases + np.arange(num_frames) * BUDGET_S).ravel()
    order = np.argsort(instants)
    held = np.cumsum((27 + answers).ravel()[order]) / POOL_TOKENS
    t_s = np.arange(0, num_frames * BUDGET_S, STEP_S)
    occupancy = held[np.maximum(np.searchsorted(instants[order], t_s, side="right") - 1, 0)]
    full_s = float(instants[order][np.argmax(held >= 1)])
    return t_s, np.minimum(occupancy, 1.0), full_s


def _forecast(t_s: Floats, occupancy: Floats, until: float = 0.5) -> Forecast | None:
    return forecast_full_pool(
        t_s,
        occupancy,
        frame_budget_s=BUDGET_S,
        until_occupancy=until,
        rng=np.random.default_rng(0),
    )


def test_the_interval_holds_the_full_pool_about_as_often_as_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forecast, "NUM_TRACES", 200)
    rng, held = np.random.default_rng(0), 0
    for _ in range(60):
        t_s, occupancy, full_s = _trace(rng)
        found = _forecast(t_s, occupancy)
        assert found is not None
        assert found.low_s is not None
        assert found.high_s is not None
        held += found.low_s <= full_s <= found.high_s
    # 95 % of 60 are 57; fewer than 51 or all in very wide intervals would be another coverage.
    assert 51 <= held <= 60
    assert found.high_s - found.low_s < 0.05 * found.saturation_s


def test_an_earlier_forecast_is_less_sure() -> None:
    t_s, occupancy, _ = _trace(np.random.default_rng(1))
    widths = []
    for until in (0.2, 0.5, 0.8):
        found = _forecast(t_s, occupancy, until)
        assert found is not None
        assert found.low_s is not None
        assert found.high_s is not None
        widths.append(found.high_s - found.low_s)
    assert widths == sorted(widths, reverse=True)


def test_equal_answers_leave_no_doubt() -> None:
    t_s, occupancy, full_s = _trace(np.random.default_rng(2), spread=False)
    found = _forecast(t_s, occupancy)
    assert found is not None
    assert found.saturation_s == pytest.approx(full_s, abs=1.0)
    assert found.low_s == pytest.approx(found.high_s, abs=1.0)


def test_what_lies_behind_the_asked_for_occupancy_is_not_seen() -> None:
    t_s, occupancy, _ = _trace(np.random.default_rng(3))
    other = np.where(occupancy < 0.5, occupancy, 0.9)
    assert _forecast(t_s, occupancy) == _forecast(t_s, other)


def test_too_few_frames_give_a_forecast_without_an_interval() -> None:
    t_s, occupancy, _ = _trace(np.random.default_rng(4))
    found = _forecast(t_s, occupancy, 0.05)
    assert found is not None
    assert found.low_s is None
    assert _forecast(t_s, np.zeros_like(t_s)) is None


def test_a_pool_that_hardly_fills_is_forecast_without_an_interval() -> None:
    t_s = np.arange(0, 60, STEP_S)
    found = _forecast(t_s, 0.1 + 1e-9 * t_s)
    assert found is not None
    assert found.saturation_s > 1e8
    assert found.low_s is None
