"""Recycling: whole frames, a sawtooth between what is kept and the limit, and what is refused."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import ConfigError
from harness.kv.retention import (
    Recycling,
    Retention,
    RetentionKind,
    evicted_blocks,
    is_visible,
    most_read_tokens,
    plateau_blocks,
    recycling_of,
)

RECYCLED = Retention(window_tokens=8, kept_share=0.5)


def test_a_recycled_session_is_bounded_and_not_by_the_engine():
    assert RECYCLED.kind is RetentionKind.recycle
    assert RECYCLED.is_bounded
    assert not RECYCLED.is_evicting
    assert Retention(window_tokens=8).is_evicting
    assert evicted_blocks(8, RECYCLED, 4) == 0
    assert is_visible(0, 7, 7, RECYCLED, 4)
    assert (plateau_blocks(RECYCLED, 4, 3), most_read_tokens(RECYCLED, 4)) == (2, 8)


def test_the_worked_example_of_a_sawtooth_holds():
    recycling = recycling_of(RECYCLED, 2)
    assert recycling == Recycling(frames_per_request=4, kept_frames=2)
    assert [recycling.request_frames(count) for count in range(1, 9)] == [1, 2, 3, 4, 3, 4, 3, 4]
    assert recycling.encoded_again == 1.0
    assert recycling_of(Retention(window_tokens=8), 2) is None


@settings(deadline=None)
@given(
    window=st.integers(4, 200),
    share=st.floats(0, 0.99),
    frame=st.integers(1, 40),
    num_frames=st.integers(1, 100),
)
def test_a_request_never_holds_more_than_the_window_and_restarts_with_what_is_kept(
    window, share, frame, num_frames
):
    retention = Retention(window_tokens=window, kept_share=share)
    if window - retention.kept_tokens < frame:
        with pytest.raises(ConfigError, match=r"leaves \d+ tokens for new frames"):
            recycling_of(retention, frame)
        return
    recycling = recycling_of(retention, frame)
    held = [recycling.request_frames(count) for count in range(num_frames + 1)]
    assert max(held) * frame <= window
    assert max(held) <= plateau_blocks(retention, 1, 1)
    for index in range(num_frames):
        grown = held[index + 1] - held[index]
        if recycling.begins_request(index):
            assert held[index] == recycling.frames_per_request
            assert held[index + 1] == recycling.kept_frames + 1
        else:
            assert grown == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"window_tokens": 8, "kept_share": 1.0}, "retention.kept_share=1.0 must be at least 0"),
        ({"kept_share": 0.5}, "needs retention.window_tokens"),
        ({"window_tokens": 8, "kept_share": 0.5, "sink_tokens": 1}, "neither retention.sink"),
        ({"window_tokens": 8, "kept_share": 0.5, "native": True}, "neither retention.sink"),
    ],
)
def test_an_impossible_recycling_is_refused(fields, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        Retention(**fields)
