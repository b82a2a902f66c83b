"""Rule for C4: the bounded plateau is linear in N, and memory would allow about 500 calls."""

from __future__ import annotations

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.claims.pairs import spoiled

WINDOW_TOKENS = 1024
LINEAR_R_SQUARED = 0.99
# "About 0.2 % of the pool": what rounds to it.
PAPER_SHARE = (0.0015, 0.0025)
PAPER_CEILING = 498.0
CEILING_TOLERANCE = 0.1
PAPER_N_STAR = 209
# The paper's pools: 0.53 to 0.56 M tokens.
PAPER_POOL_TOKENS = 530_000


def plateau(tables: Tables) -> Judgement:
    """C4: rho0 + N s(W), s about 0.2 % a call at W = 1024, ceiling above N*."""
    if why := spoiled(tables[""]):
        return not_measured(why)
    lines = tables["lines"]
    found = lines[lines["window_tokens"] == WINDOW_TOKENS] if len(lines) else lines
    if found.empty:
        return not_measured(f"fewer than three settled plateaus at W = {WINDOW_TOKENS}")
    line = found.iloc[0]
    ceiling, low, high = line["ceiling_sessions"], line["ceiling_low"], line["ceiling_high"]
    share = line["share_per_session"]
    at_papers_pool = ceiling * PAPER_POOL_TOKENS / line["pool_tokens"]
    return from_parts(
        {
            "the plateau is linear in N": line["r_squared"] >= LINEAR_R_SQUARED,
            "a call holds about 0.2 % of the pool": PAPER_SHARE[0] <= share < PAPER_SHARE[1],
            f"the ceiling is within {CEILING_TOLERANCE:.0%} of {PAPER_CEILING:.0f}": (
                abs(ceiling - PAPER_CEILING) <= CEILING_TOLERANCE * PAPER_CEILING
            ),
            f"and above N* = {PAPER_N_STAR}": low > PAPER_N_STAR,
        },
        ours=(
            f"R2 {line['r_squared']:.4f} over {line['num_points']:.0f} sizes; {share:.3%} of the "
            f"pool a call ({line['share_low']:.3%} to {line['share_high']:.3%}); ceiling "
            f"{ceiling:.0f} ({low:.0f} to {high:.0f}) in {line['pool_tokens'] / 1e6:.3f} M tokens, "
            f"which would be {at_papers_pool:.0f} in the paper's {PAPER_POOL_TOKENS / 1e6:.2f} M"
        ),
        interval=(float(low), float(high)),
    )
