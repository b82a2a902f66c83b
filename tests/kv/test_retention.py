import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import ConfigError
from harness.kv.retention import (
    Retention,
    RetentionKind,
    evicted_blocks,
    first_window_block,
    is_visible,
    live_blocks,
    num_sink_blocks,
    plateau_blocks,
    validate_for_block_size,
)

UNBOUNDED = Retention()
EXAMPLE = Retention(window_tokens=8, sink_tokens=4)

blocks = st.integers(1, 9)


@st.composite
def bounds(draw, block):
    return Retention(
        window_tokens=draw(st.integers(block, 6 * block)),
        sink_tokens=draw(st.integers(0, 3 * block)),
    )


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, RetentionKind.unbounded),
        ({"window_tokens": 8}, RetentionKind.window),
        ({"window_tokens": 8, "sink_tokens": 1}, RetentionKind.sink_window),
        ({"window_tokens": 8, "native": True}, RetentionKind.window),
    ],
)
def test_the_kind_follows_from_window_and_sinks(fields, kind):
    retention = Retention(**fields)
    assert retention.kind is kind
    assert retention.is_bounded is (kind is not RetentionKind.unbounded)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sink_tokens": 4}, "needs retention.window_tokens"),
        ({"window_tokens": 0}, "retention.window_tokens=0 must be at least 1"),
        ({"window_tokens": 8, "sink_tokens": -1}, "retention.sink_tokens=-1 must be 0 or more"),
        (
            {"window_tokens": 8, "sink_tokens": 4, "native": True},
            "retention.sink_tokens=4 cannot be kept by retention=native",
        ),
    ],
)
def test_an_impossible_retention_is_refused(fields, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Retention(**fields)


def test_a_window_below_the_block_size_is_refused_with_what_to_change():
    message = (
        "retention.window_tokens=16 must be at least block_size_tokens=32: "
        "raise the window or choose a smaller block"
    )
    with pytest.raises(ConfigError, match=re.escape(message)):
        validate_for_block_size(Retention(window_tokens=16), 32)
    validate_for_block_size(Retention(window_tokens=32), 32)
    validate_for_block_size(UNBOUNDED, 32)


def test_the_worked_example_of_the_module_holds():
    assert num_sink_blocks(EXAMPLE, 4) == 1
    assert num_sink_blocks(Retention(window_tokens=8, sink_tokens=5), 4) == 2
    assert first_window_block(20, EXAMPLE, 4) == 3
    assert evicted_blocks(20, EXAMPLE, 4) == 2
    assert live_blocks(20, EXAMPLE, 4) == 3
    assert live_blocks(20, EXAMPLE, 4, num_new_tokens=3) == 4
    assert plateau_blocks(EXAMPLE, 4, 3) == 5
    seen = [key for key in range(30) if is_visible(key, 22, 20, EXAMPLE, 4)]
    assert seen == [0, 1, 2, 3, *range(12, 23)]


def test_an_unbounded_session_keeps_everything_and_has_no_plateau():
    assert live_blocks(1000, UNBOUNDED, 32) == 32
    assert evicted_blocks(1000, UNBOUNDED, 32) == 0
    assert plateau_blocks(UNBOUNDED, 32, 64) is None
    assert plateau_blocks(UNBOUNDED, 32, 64, max_model_len=1000) == 32
    assert all(is_visible(key, 999, 990, UNBOUNDED, 32) for key in (0, 500, 999))


@settings(deadline=None)
@given(data=st.data(), block=blocks, computed=st.integers(0, 120), new=st.integers(1, 40))
def test_the_live_blocks_are_those_that_a_query_of_the_step_sees_or_writes(
    data, block, computed, new
):
    retention = data.draw(bounds(block))
    queries = range(computed, computed + new)
    needed = {
        key // block
        for key in range(computed + new)
        if key >= computed
        or any(is_visible(key, query, computed, retention, block) for query in queries)
    }
    assert live_blocks(computed, retention, block, num_new_tokens=new) == len(needed)


@settings(deadline=None)
@given(data=st.data(), block=blocks, computed=st.integers(0, 120), new=st.integers(1, 40))
def test_a_query_sees_its_window_and_at_most_its_chunk_offset_and_a_block_more(
    data, block, computed, new
):
    retention = data.draw(bounds(block))
    window = retention.window_tokens
    pinned = num_sink_blocks(retention, block) * block
    for offset in range(new):
        query = computed + offset
        seen = [
            key for key in range(query + 1) if is_visible(key, query, computed, retention, block)
        ]
        assert set(range(min(pinned, query + 1))) <= set(seen)
        assert set(range(max(0, query - window + 1), query + 1)) <= set(seen)
        oldest_recent = min(key for key in seen if key >= pinned or key == query)
        assert query - oldest_recent + 1 <= window + offset + block - 1


@settings(deadline=None)
@given(data=st.data(), block=blocks, in_flight=st.integers(1, 40), longest=st.integers(1, 160))
def test_no_session_ever_holds_more_than_the_plateau(data, block, in_flight, longest):
    retention = data.draw(bounds(block))
    held = [
        live_blocks(computed, retention, block, num_new_tokens=new)
        for computed in range(longest)
        for new in range(1, min(in_flight, longest - computed) + 1)
    ]
    assert max(held) <= plateau_blocks(retention, block, in_flight, max_model_len=longest)
    assert max(held) <= plateau_blocks(retention, block, in_flight)


def test_a_models_own_context_is_seen_to_the_token_and_held_in_blocks():
    own = Retention(window_tokens=8, native=True)
    ours = Retention(window_tokens=8)
    assert [key for key in range(30) if is_visible(key, 22, 20, own, 4)] == list(range(15, 23))
    assert [key for key in range(30) if is_visible(key, 22, 20, ours, 4)] == list(range(12, 23))
    assert live_blocks(20, own, 4, num_new_tokens=3) == live_blocks(20, ours, 4, num_new_tokens=3)
    assert plateau_blocks(own, 4, 3) == plateau_blocks(ours, 4, 3) == 4


def test_an_old_session_reaches_the_plateau():
    held = {live_blocks(computed, EXAMPLE, 4, num_new_tokens=4) for computed in range(40, 60)}
    assert max(held) == plateau_blocks(EXAMPLE, 4, 4)
