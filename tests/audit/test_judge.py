"""Facts and verdicts of runs whose fate is known because they were made by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.audit.facts import facts_table, run_medians, step_down, ticks
from harness.audit.judge import judged
from harness.audit.names import origin
from harness.audit.published import read_run
from tests.audit.authors_format import gone_quiet, idle, log, served, walled, write_log

NAME = "var_van96_r{}_n96"


def _judge(folder: Path, *logs: dict[str, Any], name: str = NAME) -> pd.DataFrame:
    names = [name.format(k) for k in range(1, len(logs) + 1)]
    runs = [read_run(write_log(folder, n, content)) for n, content in zip(names, logs, strict=True)]
    known = {n: o for n in names if (o := origin(n)) is not None}
    return judged(facts_table(runs), known)


def test_frames_of_one_tick_are_one_value(tmp_path: Path) -> None:
    run = read_run(write_log(tmp_path, NAME.format(1), log(served(20), sessions=7)))
    t_s, latency_ms = ticks(run)
    assert len(run.latency_ms) == 140
    assert latency_ms.tolist() == served(20)
    assert t_s[1] - t_s[0] == pytest.approx(2.0)


def test_medians_lie_in_bins_of_15_seconds(tmp_path: Path) -> None:
    run = read_run(write_log(tmp_path, NAME.format(1), log([2.0] * 75 + [5.0] * 75)))
    medians = run_medians(run)
    assert medians["t_s"].tolist() == [15.0 * k for k in range(20)]
    assert medians["median_ms"].tolist() == [2.0] * 10 + [5.0] * 10


@pytest.mark.parametrize(
    ("latency_ms", "answered", "verdict", "is_walled", "words"),
    [
        (served(), 4, "alive", False, "no step-down"),
        (walled(70, 90), 4, "stalled", True, "every tick from 180 s on waits 1600 ms; 40 s before"),
        (gone_quiet(136), 4, "quiet_at_boundary", False, "at 272 s latency falls"),
        (gone_quiet(60), 4, "quiet", False, "at 120 s latency falls"),
        (served(60), 4, "ended_early", False, "the last frame is at 118 of 300 s"),
        (idle(150), 0, "never_served", False, "0 of 4 sessions ever answered"),
        (served(), 3, "partly_served", False, "3 of 4 sessions ever answered"),
        ([1700.0, 1701.0, 1500.0] * 50, 4, "overloaded", True, "late median 1700 ms"),
    ],
)
def test_a_known_fate_is_recognised(
    tmp_path: Path,
    latency_ms: Sequence[float],
    answered: int,
    verdict: str,
    is_walled: bool,
    words: str,
) -> None:
    row = _judge(tmp_path, log(latency_ms, answered=answered)).iloc[0]
    assert row["verdict"] == verdict, row["verdict_evidence"]
    assert words in row["verdict_evidence"]
    assert row["paper_rule_walled"] == is_walled


def test_one_slow_tick_is_no_wall_and_no_step(tmp_path: Path) -> None:
    latency_ms = served()
    latency_ms[-1] = 1601.0
    latency_ms[0] = latency_ms[80] = 320.0
    assert _judge(tmp_path, log(latency_ms)).iloc[0]["verdict"] == "alive"


def test_an_early_fall_into_a_noisy_idle_level_is_a_step_and_no_slope() -> None:
    t_s = 2.0 * np.arange(150) + 0.5
    noise = np.random.default_rng(0).lognormal(0.0, 0.45, 136)
    found = step_down(t_s, np.array([*served(14), *(1.2 * noise)]), 2.0)
    assert found is not None
    assert found["at_s"] == pytest.approx(28.5, abs=4)
    assert step_down(t_s, np.geomspace(6.0, 1.0, 150), 2.0) is None


def test_a_run_that_idles_from_the_start_is_told_by_the_level_of_others(tmp_path: Path) -> None:
    flat, other = idle(150), gone_quiet(60)
    assert _judge(tmp_path, log(flat)).iloc[0]["verdict"] == "alive"
    both = _judge(tmp_path, log(flat), log(other))
    assert both["verdict"].tolist() == ["quiet", "quiet"]
    assert "flat at 1.2 ms from the start" in both.iloc[0]["verdict_evidence"]


def test_a_short_run_is_not_called_idle(tmp_path: Path) -> None:
    short = log(idle(45)) | {"duration": 90.0}
    both = _judge(tmp_path, short, log(gone_quiet(60)))
    assert both["verdict"].tolist() == ["alive", "quiet"]


def test_a_worker_without_a_wait_limit_cannot_wall(tmp_path: Path) -> None:
    late = log([1700.0 + k for k in range(150)])
    row = _judge(tmp_path, late, name="svmcpm_dist_n{}").iloc[0]
    assert not row["paper_rule_walled"]
    assert row["verdict"] == "alive"
    late["ev"] = [[t, ms, 1] for t, ms, _ in late["ev"]]
    row = _judge(tmp_path, late, name="svmcpm_dist_n{}").iloc[0]
    assert (row["verdict"], row["num_missed"]) == ("overloaded", 600)
