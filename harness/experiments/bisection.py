"""Where does a growing load stop being served? The next try of a bisection on a ratio scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.config import SearchConfig


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """What the tries so far say of N*.

    served: largest N that was served, None if none was. failed: smallest one above it that was not,
    None if none was tried: then N* is at least `served`.
    """

    served: int | None
    failed: int | None


def bracket(tries: Mapping[int, bool]) -> Bracket:
    """The bracket of a set of tries, N -> whether it was served.

    Example: {100: True, 200: False, 140: True} -> served 140, failed 200.
    """
    served = max((n for n, ok in tries.items() if ok), default=None)
    failed = min((n for n, ok in tries.items() if not ok and n > (served or 0)), default=None)
    return Bracket(served=served, failed=failed)


def next_try(
    tries: Mapping[int, bool], search: SearchConfig, *, near: Bracket | None = None
) -> int | None:
    """The N to try next; None once the bracket is as narrow as asked, or at an end of the range.

    near: where another search ended: both its ends are tried before the range is halved.
    """
    known = bracket(tries)
    low, high = known.served, known.failed
    for candidate in (near.served, near.failed) if near else ():
        inside = candidate is not None and (low or 0) < candidate < (high or math.inf)
        if inside and candidate not in tries:
            return candidate
    if low is None and high is not None and high <= search.lowest:
        return None
    if high is None and low is not None and low >= search.highest:
        return None
    if low is not None and high is not None and high - low <= max(1, search.resolution * low):
        return None
    if near is not None and tries and (low is None or high is None):
        return _step_out(low, high, search, steps=len(tries))
    # One outside the range, so that its ends are tried before it is given up.
    below = low if low is not None else search.lowest / (1 + search.resolution)
    above = high if high is not None else search.highest * (1 + search.resolution)
    middle = round(math.sqrt(below * above))
    if low is not None:
        middle = max(middle, low + 1)
    if high is not None:
        middle = min(middle, high - 1)
    return min(max(middle, search.lowest), search.highest)


def _step_out(low: int | None, high: int | None, search: SearchConfig, *, steps: int) -> int:
    """Beyond the neighbour's bracket, on the side that is open, ever further."""
    factor = (1 + 2 * search.resolution) ** steps
    if low is None:
        assert high is not None, "there is a try"
        return max(search.lowest, min(high - 1, math.floor(high / factor)))
    return min(search.highest, max(low + 1, math.ceil(low * factor)))
