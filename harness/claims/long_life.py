"""Rule of H1: a bounded pool is not enough for a long call; the host has to be bounded too."""

from __future__ import annotations

import pandas as pd

from harness.analysis.long_life import growth
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

# Over the run, after its warm-up.
FLAT_LATENCY = 1.10
FLAT_MEMORY = 1.05


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
    alone = bounded[~bounded["host_bound"].astype(bool)].iloc[0]
    both = bounded[bounded["host_bound"].astype(bool)].iloc[0]
    latency = {run["run_digest"]: _growth(ages, run, "first_token_p50_s") for run in (alone, both)}
    memory = {run["run_digest"]: _growth(ages, run, "host_bytes") for run in (alone, both)}
    grown_alone, grown_both = latency[alone["run_digest"]], latency[both["run_digest"]]
    fat_alone, fat_both = memory[alone["run_digest"]], memory[both["run_digest"]]
    return from_parts(
        {
            "with a bounded pool alone the wait for a token grows with age": (
                grown_alone > FLAT_LATENCY
            ),
            f"with both it stays within {FLAT_LATENCY:.2f} of its start": (
                grown_both <= FLAT_LATENCY
            ),
            f"and host memory within {FLAT_MEMORY:.2f}": fat_both <= FLAT_MEMORY,
            "and no frame is missed": both["deadline_miss_share"] == 0,
        },
        ours=(
            f"first token, last fifth over first: {grown_alone:.2f} with the pool alone, "
            f"{grown_both:.2f} with both; host memory {fat_alone:.3f} and {fat_both:.3f}; "
            f"{both['duration_s']:.0f} s"
        ),
    )


def _growth(ages: pd.DataFrame, run: pd.Series, column: str) -> float:
    return growth(ages[ages["run_digest"] == run["run_digest"]], column)
