"""Token arithmetic against counting, and the odds that follow from it."""

import dataclasses

import numpy as np
import pytest

from harness.analysis import paper_walls
from harness.analysis.demand import (
    answer_moments,
    drawn_load,
    expected_load,
    odds_full,
    spread_between_runs,
)
from harness.analysis.odds import odds_over_time, paper_cells, spread_needed, spread_table
from harness.composition import compose
from harness.config import RunConfig


@pytest.fixture(scope="module")
def run() -> RunConfig:
    """The wall matrix at 16 calls and a minute, on a pool that a middling run fills."""
    return compose(
        [
            "experiment=wall_matrix",
            "workload.num_sessions=16",
            "workload.duration_s=60",
            "engine.kv_pool_blocks=1100",
        ]
    ).run_config


def test_moments_of_a_cut_geometric_length_are_those_of_its_draws() -> None:
    drawn = np.minimum(np.random.default_rng(0).geometric(1 / 32, 200_000), 64)
    mean, variance = answer_moments(32, 64)
    assert mean == pytest.approx(drawn.mean(), rel=5e-3)
    assert variance == pytest.approx(drawn.var(), rel=1e-2)


def test_the_formula_is_what_counting_draws_gives(run: RunConfig) -> None:
    law, drawn = expected_load(run), drawn_load(run, range(400))
    assert np.median(drawn[:, -1]) == pytest.approx(law.median[-1], rel=0.01)
    assert np.log(drawn[:, -1]).std() == pytest.approx(law.sigma[-1], rel=0.15)
    assert np.abs((drawn >= 1).mean(axis=0) - law.odds_full).max() < 0.08


def test_a_session_needs_whole_blocks(run: RunConfig) -> None:
    alone = dataclasses.replace(
        run,
        workload=dataclasses.replace(run.workload, num_sessions=1),
        engine=dataclasses.replace(run.engine, kv_pool_blocks=1),
    )
    assert drawn_load(alone, range(1))[0, 0] == np.ceil(drawn_load(alone, range(1))[0, 0])


def test_runs_spread_by_their_verbosity_alone(run: RunConfig) -> None:
    equal = dataclasses.replace(run, workload=dataclasses.replace(run.workload, answer_spread=0.0))
    assert spread_between_runs(equal) == 0
    assert 0.04 < spread_between_runs(run) < run.workload.answer_spread


def test_odds_are_a_half_at_a_full_pool_and_a_step_without_spread() -> None:
    assert odds_full(1.0, 0.1) == pytest.approx(0.5)
    assert odds_full(np.exp(0.2), 0.2) == pytest.approx(0.8413, abs=1e-4)
    assert odds_full([0.99, 1.01], 0.0).tolist() == [0.0, 1.0]


def test_the_spread_that_a_share_takes_gives_that_share() -> None:
    loads = [1.5, 2.0]
    needed = spread_needed(loads, 0.7)
    assert needed is not None
    assert odds_full(np.array(loads), needed).mean() == pytest.approx(0.7)
    assert spread_needed(loads, 0.4) is None
    assert spread_needed(loads, 1.0) == 0.0


def test_the_papers_cells_lie_beyond_a_full_pool_for_any_growth_it_allows() -> None:
    assert paper_walls.load_range(96) == pytest.approx((1.39, 1.68), abs=0.01)
    cells = paper_cells(0.05)
    assert (cells["load_low"] > 1.3).all()
    assert cells["odds_full"].min() > 0.999
    spread = spread_table(cells, 0.05).set_index("runs")
    assert spread.loc["all", "expected_k"] == pytest.approx(20, abs=0.01)
    # 4/10 needs less than a half of pools full, which no spread gives at a load above 1.
    assert np.isnan(spread.loc["N = 96", "sigma_needed"])


def test_runs_that_went_silent_are_counted_from_their_onset_on(run: RunConfig) -> None:
    odds = odds_over_time([(run, 40.0), (run, None)])
    counted = odds.set_index("t_s")["silent"]
    assert counted[38.0] == 0
    assert counted[40.0] == counted[60.0] == 1
