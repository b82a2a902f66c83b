"""C7 on hand-made probes: each part of the claim can fail the verdict."""

import pandas as pd
import pytest

from harness.analysis.tables import Tables
from harness.claims.audit_quality import sinks
from harness.claims.judgement import ClaimVerdict

UNBOUNDED = (None, 0, [8] * 10)
WINDOW_ONLY = (1024, 0, [10, 6, 4, 2, 0, 0, 0, 0, 0, 0])
WITH_SINKS = (1024, 16, [20] + [12] * 9)


def _tables(*probes: tuple[int | None, int, list[int]]) -> Tables:
    rows = [
        {
            "probe": f"p{number}",
            "window_tokens": window,
            "sink_tokens": sink,
            "segment": segment,
            "correct": hits,
            "answered": 30,
        }
        for number, (window, sink, correct) in enumerate(probes)
        for segment, hits in enumerate(correct)
    ]
    return {"probes": pd.DataFrame(rows)}


def test_load_bearing_sinks_reproduce_the_claim() -> None:
    judged = sinks(_tables(UNBOUNDED, WINDOW_ONLY, WITH_SINKS))
    assert judged.verdict is ClaimVerdict.REPRODUCED
    assert "W=1024,S=16 40%" in judged.ours


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ((2048, 0, [10] * 10), "without sinks every window decays"),
        ((512, 32, [20] + [5] * 9), r"at or above unbounded (not: W=512,S=32)"),
        ((1024, 64, [20, 20, 20, 20, 9, 9, 9, 9, 0, 0]), "age-independent (not: W=1024,S=64)"),
    ],
)
def test_a_probe_that_does_otherwise_is_named(
    probe: tuple[int, int, list[int]], words: str
) -> None:
    judged = sinks(_tables(UNBOUNDED, WINDOW_ONLY, WITH_SINKS, probe))
    assert judged.verdict is ClaimVerdict.PARTLY
    assert words in judged.why


@pytest.mark.parametrize("lacks", [0, 1, 2])
def test_nothing_is_claimed_when_a_kind_of_probe_lacks(lacks: int) -> None:
    probes = [UNBOUNDED, WINDOW_ONLY, WITH_SINKS]
    del probes[lacks]
    assert sinks(_tables(*probes)).verdict is ClaimVerdict.NOT_MEASURED
