"""The paper's wall matrix as numbers to compare with.

Source: arXiv 2607.02640, Fig 4b, Table 1 and Section 5; growth and pool are the ranges that its
published logs and set-up allow.
"""

from harness.analysis.proportions import Proportion

# Calls -> unbounded runs that its rule counts as walled by 300 s.
WALLED = {96: Proportion(k=4, n=10), 128: Proportion(k=10, n=10)}
ALL_WALLED = Proportion(k=14, n=20)
HORIZON_S = 300.0
# Tokens a second that a call grows by; tokens of the pool.
GROWTH_TOKENS_PER_S = (27.0, 31.0)
POOL_TOKENS = (0.53e6, 0.56e6)


def load_range(num_sessions: int) -> tuple[float, float]:
    """Least and most N r t / pool at the horizon. Example: 96 calls -> 1.39 .. 1.68."""
    offered = num_sessions * HORIZON_S
    return (
        offered * GROWTH_TOKENS_PER_S[0] / POOL_TOKENS[1],
        offered * GROWTH_TOKENS_PER_S[1] / POOL_TOKENS[0],
    )
