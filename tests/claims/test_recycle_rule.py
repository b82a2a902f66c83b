"""C8: a recycled run without a wall and with a longer tail; every part can fail by itself."""

import pandas as pd
import pytest

from harness.claims.judgement import ClaimVerdict
from harness.claims.recycle import re_encodes

RUN = {
    "num_sessions": 8,
    "schedule_digest": "s",
    "frame_budget_s": 1.0,
    "completeness": 1.0,
    "deadline_miss_share": 0.0,
    "pool_full_s": None,
    "cause": "",
    "answer_early_s": 0.1,
    "answer_late_s": 0.1,
    "verdict": "alive",
}
ROWS = {
    "unbounded": RUN | {"verdict": "stalled", "pool_full_s": 9.0, "completeness": 0.5},
    "sink_window": RUN,
    "recycle": RUN,
}
P99_S = {
    ("unbounded", "all"): None,
    ("sink_window", "all"): 0.2,
    ("recycle", "all"): 0.5,
    ("recycle", "begins_request"): 0.6,
}


def _judged(changed: dict[str, dict[str, object]], p99_s: dict[tuple[str, str], float]):
    runs = [
        row | {"retention_kind": kind, "variant": kind} | changed.get(kind, {})
        for kind, row in ROWS.items()
    ]
    latency = [
        {"retention_kind": kind, "kind": which, "p50_s": 0.1, "p90_s": 0.1, "p99_s": value}
        for (kind, which), value in (P99_S | p99_s).items()
    ]
    return re_encodes({"": pd.DataFrame(runs), "latency": pd.DataFrame(latency)})


def test_no_wall_and_a_longer_tail_is_reproduced():
    judged = _judged({}, {})
    assert judged.verdict is ClaimVerdict.REPRODUCED
    assert "p99 500 ms, of frames that begin a request p50 100" in judged.ours


@pytest.mark.parametrize(
    ("changed", "p99_s", "words"),
    [
        ({"unbounded": {"verdict": "alive"}}, {}, "unbounded collapses"),
        ({"recycle": {"pool_full_s": 5.0}}, {}, "recycled, the pool is never full"),
        ({"recycle": {"completeness": 0.99}}, {}, "every token comes"),
        ({}, {("recycle", "all"): 0.21}, "its p99 is over 1.1 times"),
        ({"sink_window": {"completeness": 0.9}}, {}, "the in-engine window is alive"),
        ({"sink_window": {"answer_late_s": 0.3}}, {}, "and flat"),
    ],
)
def test_a_part_that_fails_is_named(changed, p99_s, words):
    judged = _judged(changed, p99_s)
    assert judged.verdict is ClaimVerdict.PARTLY
    assert words in judged.why


@pytest.mark.parametrize(
    "changed",
    [
        {"recycle": {"verdict": "invalid"}},
        {"recycle": {"schedule_digest": "t"}},
        {"recycle": {"retention_kind": "window"}},
    ],
)
def test_what_is_no_comparison_is_not_measured(changed):
    assert _judged(changed, {}).verdict is ClaimVerdict.NOT_MEASURED
