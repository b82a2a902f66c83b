"""Rule for F3: the simulator does what the live engine does."""

from __future__ import annotations

import pandas as pd

from harness.analysis.fidelity import SIGNIFICANCE
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

# Frames with as many tokens on both engines, of all frames of the staggered pairs.
EQUAL_FRAMES = 0.99
# Instants of the pool, in frame budgets: within one, no session's frame tells them apart.
INSTANTS_APART_BUDGETS = 1.0
LEAST_PAIRS = 4
LEAST_SAMPLES = 6


def simulator(tables: Tables) -> Judgement:
    """F3: run by run where live repeats itself, in distribution where it does not."""
    pairs, tests = tables["pairs"], tables["tests"]
    num_live = int(tests["num_live"].iloc[0])
    if len(pairs) < LEAST_PAIRS or num_live < LEAST_SAMPLES:
        return not_measured(
            f"{len(pairs)} staggered pairs and {num_live} synchronised live runs are valid; "
            f"{LEAST_PAIRS} and {LEAST_SAMPLES} are needed"
        )
    equal = (pairs["frames_equal_share"] * pairs["frames"]).sum() / pairs["frames"].sum()
    same_verdict = pairs["verdict_live"] == pairs["verdict_simulated"]
    apart = {
        name: (pairs[f"{name}_live"] - pairs[f"{name}_simulated"]).abs() / pairs["frame_budget_s"]
        for name in ("pool_full_s", "last_token_s")
    }
    # What happened on one engine alone has no distance.
    one_sided = pairs["pool_full_s_live"].isna() != pairs["pool_full_s_simulated"].isna()
    preemptions = (pairs["preemptions_live"] - pairs["preemptions_simulated"]).abs()
    told_apart = tests.loc[tests["p_corrected"] < SIGNIFICANCE, "quantity"]
    instants = pd.concat(list(apart.values()))
    return from_parts(
        {
            "staggered: every pair has one verdict": bool(same_verdict.all()),
            f"staggered: {EQUAL_FRAMES:.0%} of frames have as many tokens on both": bool(
                equal >= EQUAL_FRAMES
            ),
            "staggered: full pool and last token within one frame budget": bool(
                (instants.dropna() <= INSTANTS_APART_BUDGETS).all() and not one_sided.any()
            ),
            "staggered: as many preemptions": bool((preemptions == 0).all()),
            "synchronised: no quantity's distribution is told apart": told_apart.empty,
        },
        ours=(
            f"{len(pairs)} staggered pairs: {int(same_verdict.sum())} with one verdict, "
            f"{equal:.1%} of frames equal, instants at most {instants.max():.2f} B apart, "
            f"preemptions at most {preemptions.max():.0f}; synchronised, {num_live} live and "
            f"{int(tests['num_simulated'].iloc[0])} simulated: "
            f"{', '.join(told_apart) or 'nothing'} told apart, smallest corrected p "
            f"{tests['p_corrected'].min():.2f}"
        ),
    )
