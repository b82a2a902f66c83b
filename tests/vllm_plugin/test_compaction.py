"""Tensor compaction against a reference that walks one row at a time."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.kv.retention import Retention, is_visible
from harness.vllm_plugin.compaction import (
    NULL_BLOCK_ID,
    HostRows,
    compact_block_table,
    compact_seq_lens,
    dropped_blocks,
    max_compacted_seq_len,
    may_have_dropped,
)


def compact(rows, seq_lens, query_lens, *, window, sink_blocks, block):
    """(block table, sequence lengths) after compaction."""
    seq_lens = torch.tensor(seq_lens, dtype=torch.int32)
    query_lens = torch.tensor(query_lens, dtype=torch.int32)
    dropped = dropped_blocks(
        seq_lens,
        query_lens,
        window_tokens=window,
        num_sink_blocks=sink_blocks,
        block_size_tokens=block,
    )
    tensor = torch.tensor(rows, dtype=torch.int32)
    table = compact_block_table(tensor, dropped, sink_blocks)
    on_host = HostRows(sink_blocks)
    for num_places in (tensor.shape[1], 1, tensor.shape[1]):
        wanted = table[:, :num_places]
        assert torch.equal(compact_block_table(tensor, dropped, sink_blocks, num_places), wanted)
        rows_on_host = on_host.compact(tensor.numpy(), dropped.numpy(), num_places)
        assert rows_on_host.tolist() == wanted.tolist()
    return table.tolist(), compact_seq_lens(seq_lens, dropped, block).tolist()


def slots(row, seq_len, block):
    """(block id, offset) of every token of a sequence, in order."""
    return [(row[token // block], token % block) for token in range(seq_len)]


def test_the_worked_example_of_the_module_holds():
    row = [9, 0, 0, 3, 4, 5, 0, 0]
    table, lengths = compact([row], [23], [3], window=8, sink_blocks=1, block=4)
    assert lengths == [15]
    assert table == [[9, 3, 4, 5, 0, 0, NULL_BLOCK_ID, NULL_BLOCK_ID]]


def test_a_session_younger_than_the_window_is_handed_on_as_it_was():
    row = [7, 8, 9, 0]
    table, lengths = compact([row], [11], [4], window=8, sink_blocks=1, block=4)
    assert lengths == [11]
    assert table == [row]


def test_a_query_longer_than_the_window_keeps_all_of_its_own_chunk():
    row = [1, 2, 3, 4, 5, 6, 7, 8]
    # 9 computed tokens; the chunk of 20 starts inside block 2, and the window of 4 at token 6.
    table, lengths = compact([row], [29], [20], window=4, sink_blocks=0, block=4)
    assert lengths == [25]
    assert table[0][:7] == [2, 3, 4, 5, 6, 7, 8]


def test_padding_rows_stay_empty_beside_old_and_young_sessions():
    rows = [[1, 0, 0, 4, 5, 6], [7, 8, 0, 0, 0, 0], [0] * 6]
    table, lengths = compact(rows, [21, 5, 0], [1, 5, 0], window=8, sink_blocks=1, block=4)
    # Query 20 sees keys 13 and later: the window starts in block 3, and blocks 1 and 2 are gone.
    assert lengths == [13, 5, 0]
    assert table == [[1, 4, 5, 6, 0, 0], rows[1], rows[2]]


@pytest.mark.parametrize("sink_blocks", [0, 1, 2])
def test_without_anything_behind_the_window_nothing_is_dropped(sink_blocks):
    dropped = dropped_blocks(
        torch.tensor([8, 8 + 3]),
        torch.tensor([1, 1]),
        window_tokens=8,
        num_sink_blocks=sink_blocks,
        block_size_tokens=4,
    )
    assert dropped.tolist() == [0, 0]


def test_rows_on_the_host_follow_new_blocks_and_new_gaps_between_steps():
    rows = HostRows(num_sink_blocks=1)
    table = np.arange(12, dtype=np.int32).reshape(2, 6)
    gone = np.array([2, 0], dtype=np.int32)
    assert rows.compact(table, gone, 3).tolist() == [[0, 3, 4], [6, 7, 8]]
    table[0, 4] = 99
    assert rows.compact(table, gone, 3).tolist() == [[0, 3, 99], [6, 7, 8]]
    gone = np.array([3, 1], dtype=np.int32)
    assert rows.compact(table, gone, 3).tolist() == [[0, 99, 5], [6, 8, 9]]
    assert rows.compact(table[:1], gone[:1], 4).tolist() == [[0, 99, 5, NULL_BLOCK_ID]]


@st.composite
def batches(draw):
    block = draw(st.integers(1, 6))
    window = draw(st.integers(block, 5 * block))
    sinks = draw(st.integers(0, 2 * block))
    computed = draw(st.lists(st.integers(0, 60), min_size=1, max_size=4))
    queries = [draw(st.integers(1, 25)) for _ in computed]
    return block, Retention(window_tokens=window, sink_tokens=sinks), computed, queries


@settings(deadline=None)
@given(batch=batches())
def test_compaction_lists_exactly_the_visible_tokens_in_order_for_any_batch(batch):
    block, retention, computed, queries = batch
    sink_blocks = -(-retention.sink_tokens // block)
    seq_lens = [c + q for c, q in zip(computed, queries, strict=True)]
    width = max(-(-length // block) for length in seq_lens) + 1
    # Distinct blocks: a wrong gather cannot go unseen. Freed places are 0, as vLLM leaves them.
    rows, expected = [], []
    for index, (start, length) in enumerate(zip(computed, seq_lens, strict=True)):
        row = [1000 * (index + 1) + place for place in range(width)]
        last = length - 1
        seen = [k for k in range(length) if is_visible(k, last, start, retention, block)]
        kept = {k // block for k in seen}
        expected.append([(row[k // block], k % block) for k in seen])
        rows.append([entry if place in kept else 0 for place, entry in enumerate(row)])
    table, lengths = compact(
        rows,
        seq_lens,
        queries,
        window=retention.window_tokens,
        sink_blocks=sink_blocks,
        block=block,
    )
    can_drop = may_have_dropped(
        max(seq_lens),
        window_tokens=retention.window_tokens,
        num_sink_blocks=sink_blocks,
        block_size_tokens=block,
    )
    assert can_drop or lengths == seq_lens
    for index, wanted in enumerate(expected):
        found = slots(table[index], lengths[index], block)
        assert found == wanted
        assert NULL_BLOCK_ID not in {entry for entry, _ in found}
        # The chunk still ends the sequence, so causality within it is unchanged.
        assert lengths[index] >= queries[index]
    limit = max_compacted_seq_len(
        max(seq_lens),
        max(queries),
        window_tokens=retention.window_tokens,
        num_sink_blocks=sink_blocks,
        block_size_tokens=block,
    )
    assert max(lengths) <= limit <= max(seq_lens)
