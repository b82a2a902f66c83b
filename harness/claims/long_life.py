"""Rule of H1: a bounded pool is not enough for a long call; the host has to be bounded too."""

from __future__ import annotations

import pandas as pd

from harness.analysis.long_life import Growth, growth
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

# Over the run, after its warm-up. A wait is counted in gaps between tokens, which the machine's own
# drift makes longer as well.
FLAT_LATENCY = 1.10
FLAT_MEMORY = 1.05
SLOWER = 0.5


def host_is_bounded(tables: Tables) -> Judgement:
    """H1: the wait for a token grows with age under a bounded pool alone, and not with both."""
    runs, ages = tables[""], tables["ages"]
    bounded = runs[runs["retention_kind"] != "unbounded"]
    if ages.empty or set(bounded["host_bound"]) != {True, False}:
        return not_measured(
            "the table holds no pair of bounded runs with and without a bounded host"
        )
    if (spoiled := bounded[bounded["verdict"] == Verdict.invalid.name]).shape[0]:
        return not_measured(f"a run is invalid: {spoiled.iloc[0]['cause']}")
    has_both = bounded["host_bound"].astype(bool)
    pair = {"alone": bounded[~has_both].iloc[0], "both": bounded[has_both].iloc[0]}
    waits = {name: _growth(ages, run, "wait_in_gaps") for name, run in pair.items()}
    memory = {name: _growth(ages, run, "host_bytes") for name, run in pair.items()}
    plain = {name: _growth(ages, run, "first_token_p50_s").factor for name, run in pair.items()}
    taken = {name: found.factor - 1 for name, found in memory.items()}
    return from_parts(
        {
            "with a bounded pool alone the wait for a token grows with age": (
                waits["alone"].factor > FLAT_LATENCY
            ),
            f"with both it stays within {FLAT_LATENCY:.2f} of its start": (
                waits["both"].factor <= FLAT_LATENCY
            ),
            f"host memory grows at most {SLOWER:.1f} times as fast with both": (
                taken["both"] <= SLOWER * taken["alone"]
            ),
            f"and stays within {FLAT_MEMORY:.2f}": memory["both"].factor <= FLAT_MEMORY,
            "and no frame is missed": pair["both"]["deadline_miss_share"] == 0,
        },
        ours=(
            "first token, in gaps between tokens, over the run: "
            f"{_said(waits['alone'])} with the pool alone, {_said(waits['both'])} with both "
            f"(in seconds x {plain['alone']:.2f} and {plain['both']:.2f}); "
            f"host memory {taken['alone']:+.1%} and {taken['both']:+.1%}; "
            f"{pair['both']['duration_s']:.0f} s"
        ),
    )


def _said(found: Growth) -> str:
    return f"x {found.factor:.2f} ({found.low:.2f} to {found.high:.2f})"


def _growth(ages: pd.DataFrame, run: pd.Series, column: str) -> Growth:
    return growth(ages[ages["run_digest"] == run["run_digest"]], column)
