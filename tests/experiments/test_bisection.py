"""The search for N*: right bracket, few tries, whatever the true number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config import SearchConfig
from harness.core.errors import ConfigError
from harness.experiments.bisection import Bracket, bracket, next_try

SEARCH = SearchConfig(lowest=16, highest=512, resolution=0.05)


def _search(true: int, near: Bracket | None = None) -> tuple[Bracket, int]:
    tries: dict[int, bool] = {}
    while (chosen := next_try(tries, SEARCH, near=near)) is not None:
        assert chosen not in tries
        assert SEARCH.lowest <= chosen <= SEARCH.highest
        tries[chosen] = chosen <= true
        assert len(tries) < 30
    return bracket(tries), len(tries)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 700), st.none() | st.tuples(st.integers(16, 480), st.integers(1, 30)))
def test_the_bracket_holds_the_true_number_as_narrowly_as_asked(
    true: int, neighbour: tuple[int, int] | None
) -> None:
    near = Bracket(served=neighbour[0], failed=sum(neighbour)) if neighbour else None
    found, _ = _search(true, near)
    if true < SEARCH.lowest:
        assert found == Bracket(served=None, failed=SEARCH.lowest)
    elif true >= SEARCH.highest:
        assert found == Bracket(served=SEARCH.highest, failed=None)
    else:
        assert found.served is not None
        assert found.failed is not None
        assert found.served <= true < found.failed
        assert found.failed - found.served <= max(1, 0.05 * found.served)


def test_a_search_that_starts_where_another_ended_needs_two_tries() -> None:
    first, num_tries = _search(250)
    assert num_tries > 4
    assert _search(250, near=first) == (first, 2)


def test_a_failed_try_below_a_served_one_does_not_close_the_bracket() -> None:
    assert bracket({100: False, 120: True, 140: False}) == Bracket(served=120, failed=140)


def test_an_impossible_range_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"search\.lowest=9"):
        SearchConfig(lowest=9, highest=9)
