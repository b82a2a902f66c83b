from collections.abc import Callable

import numpy as np
import pytest

from harness.config import RunConfig
from harness.workload.answers import draw_answers

Make = Callable[..., RunConfig]
GEOMETRIC = ("workload.answers=geometric", "workload.num_sessions=200", "workload.duration_s=200")


def test_fixed_answers_are_the_models_mean(run_config: Make) -> None:
    assert np.unique(draw_answers(run_config())).tolist() == [8]


def test_geometric_answers_have_the_mean_and_keep_the_limit(run_config: Make) -> None:
    answers = draw_answers(run_config(*GEOMETRIC, "workload.answer_limit_tokens=400"))
    assert answers.min() == 1
    assert answers.max() <= 400
    # 20,000 draws of standard deviation 7.5.
    assert answers.mean() == pytest.approx(8, abs=0.25)


def test_runs_differ_by_the_spread_and_sessions_of_one_run_share_it(run_config: Make) -> None:
    def means(spread: float) -> list[float]:
        overrides = (*GEOMETRIC, "workload.answer_limit_tokens=4000")
        runs = [
            run_config(*overrides, f"workload.answer_spread={spread}", f"seed={seed}")
            for seed in range(12)
        ]
        return [float(np.log(draw_answers(run).mean())) for run in runs]

    assert np.std(means(0.0)) < 0.02
    assert 0.08 < np.std(means(0.15)) < 0.25


def test_answers_do_not_depend_on_the_retention(run_config: Make) -> None:
    first = draw_answers(run_config(*GEOMETRIC, "retention=unbounded"))
    assert np.array_equal(first, draw_answers(run_config(*GEOMETRIC, "retention=sink_window")))
