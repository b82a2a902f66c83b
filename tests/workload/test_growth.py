"""Growth and saturation by arithmetic, against hand computation and against drawn answers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from harness.capacity import plateau_occupancy
from harness.config import RunConfig
from harness.workload import growth
from harness.workload.answers import answer_moments, draw_answers

Make = Callable[..., RunConfig]
# Runs that differ by 15 % in verbosity, and one answer from the next.
DRAWN = (
    "workload.answers=geometric",
    "workload.answer_spread=0.15",
    "workload.answer_limit_tokens=64",
    "model.output_tokens_per_frame=32",
)


def test_the_full_pool_of_the_tiny_cliff_by_hand(run_config: Make) -> None:
    forecast = growth.saturation(run_config("retention=unbounded"), 148)
    assert forecast is not None
    # 148 blocks of 32, less 2 for one more frame and 31/64 of a block for each of 8 sessions.
    assert forecast.median_s == pytest.approx((148 - 2 - 8 * 31 / 64) * 32 / (8 * 59 / 2))
    assert forecast.low_s == forecast.median_s == forecast.high_s


def test_a_bound_whose_plateau_fits_is_never_full(run_config: Make) -> None:
    bounded = run_config("retention=sink_window")
    assert growth.saturation(bounded, 148) is None
    # 8 sessions hold up to 8 blocks each.
    assert growth.saturation(bounded, 60) is not None


def test_rotated_sessions_that_fit_are_never_full(run_config: Make) -> None:
    short = ("retention=unbounded", "engine.max_model_len=320")
    assert growth.saturation(run_config(*short, "engine.on_max_model_len=rotate"), 148) is None
    assert growth.saturation(run_config(*short), 148) is not None


def test_moments_are_those_of_the_drawn_answers(run_config: Make) -> None:
    run = run_config(*DRAWN, "workload.answer_spread=0", "workload.num_sessions=200")
    drawn = draw_answers(run)
    moments = answer_moments(run)
    # 4000 draws; without the cut at 64 the mean would be 32.
    assert moments.mean == pytest.approx(drawn.mean(), rel=0.04)
    assert moments.deviation == pytest.approx(drawn.std(), rel=0.05)
    assert moments.mean == pytest.approx(27.8, abs=0.1)


def test_fixed_answers_are_certain(run_config: Make) -> None:
    run = run_config("workload.answer_spread=0.5")
    assert growth.frame_kv_tokens(run) == run.model.kv_tokens_per_frame
    assert growth.full_probability(run, 148, 19.0) == 0.0
    assert growth.full_probability(run, 148, 19.5) == 1.0


@pytest.mark.parametrize("spread", [0.0, 0.15])
def test_the_interval_is_what_many_drawn_runs_do(run_config: Make, spread: float) -> None:
    overrides = (*DRAWN, f"workload.answer_spread={spread}", "workload.duration_s=80")
    run, pool_blocks = run_config(*overrides), 300
    forecast = growth.saturation(run, pool_blocks)
    assert forecast is not None
    room = growth.room_tokens(run, pool_blocks)
    full_s = np.array([_full_s(replace(run, seed=seed), room) for seed in range(400)])
    for instant_s, share in ((forecast.low_s, 0.025), (forecast.high_s, 0.975)):
        assert growth.full_probability(run, pool_blocks, instant_s) == pytest.approx(share)
    # Binomial: 10 of 400 within 3.1 standard deviations.
    assert 0.001 <= (full_s < forecast.low_s).mean() <= 0.05
    assert 0.95 <= (full_s < forecast.high_s).mean() <= 0.999
    assert (full_s < forecast.median_s).mean() == pytest.approx(0.5, abs=0.08)


def _full_s(run: RunConfig, room: float) -> float:
    """When one drawn run exceeds `room` tokens, in the middle of the frame that does it."""
    growths = draw_answers(run) + run.model.prompt_tokens_per_frame - 1
    frame_s = run.model.frame_budget_s / run.workload.num_sessions
    return float(np.searchsorted(np.cumsum(growths.T.ravel()), room) + 0.5) * frame_s


@pytest.mark.parametrize("retention", ["unbounded", "sink_window"])
def test_a_ceiling_is_the_last_number_that_fits(run_config: Make, retention: str) -> None:
    run = run_config(f"retention={retention}")
    ceiling = growth.session_ceiling(run, 148)
    assert growth.final_occupancy(growth.with_sessions(run, ceiling), 148) <= 1
    assert growth.final_occupancy(growth.with_sessions(run, ceiling + 1), 148) > 1
    # With fixed answers it is the plateau that capacity.py checks runs against.
    assert growth.final_occupancy(run, 148) == plateau_occupancy(run, 148)
