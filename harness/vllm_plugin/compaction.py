"""Tensor arithmetic that hides freed blocks from any attention kernel.

A request's row of the block table still has places for the blocks freed between its sinks and its
window. Compaction moves the window's blocks up to the sinks and takes the dropped tokens off the
sequence length, so that a kernel without any window sees sinks and window as one short sequence:

    W=8, S=4, block 4, 20 computed tokens, 3 new
    row      s0  --  --  b3  b4  b5  ..     seq_len 23
    compact  s0  b3  b4  b5  0   0   ..     seq_len 15

The result is exactly attention over sinks and window: softmax has no order, keys were rotated by
their original position when they were written, and a chunk still ends its sequence, so that
causality holds within it. All functions are pure, branch on no tensor value and so need no device
synchronisation. Shapes: B requests, N places in a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

# vLLM keeps block 0 unused and pads rows with it (vllm/v1/core/block_pool.py).
NULL_BLOCK_ID = 0


def dropped_blocks(
    seq_lens: Tensor,
    query_lens: Tensor,
    *,
    window_tokens: int,
    num_sink_blocks: int,
    block_size_tokens: int,
) -> Tensor:
    """Count the blocks missing between the sinks and the window of each request, (B,).

    seq_lens: tokens after this step, (B,); 0 in padding rows. query_lens: of them, new ones, (B,).

    Example: W=8, block 4, 1 sink block, seq_len 23 with 3 new -> the window starts in block 3 -> 2.
    Source: harness.kv.retention.evicted_blocks, for a batch.
    """
    computed = seq_lens - query_lens
    first_window_block = torch.div(
        (computed - (window_tokens - 1)).clamp(min=0), block_size_tokens, rounding_mode="floor"
    )
    return (first_window_block - num_sink_blocks).clamp(min=0)


def compact_seq_lens(seq_lens: Tensor, dropped: Tensor, block_size_tokens: int) -> Tensor:
    """Return the tokens that are left of each sequence, (B,).

    Example: seq_len 23, 2 blocks of 4 dropped -> 15.
    """
    return seq_lens - dropped * block_size_tokens


def compact_block_table(block_table: Tensor, dropped: Tensor, num_sink_blocks: int) -> Tensor:
    """Return the rows without their dropped places, padded with the null block, (B, N).

    block_table: (B, N). dropped: (B,).
    """
    width = block_table.shape[1]
    place = torch.arange(width, device=block_table.device)
    source = torch.where(place < num_sink_blocks, place, place + dropped[:, None].long())
    rows = block_table.gather(1, source.clamp(max=width - 1))
    return rows.masked_fill_(source >= width, NULL_BLOCK_ID)


def max_compacted_seq_len(
    max_seq_len: int,
    max_query_len: int,
    *,
    window_tokens: int,
    num_sink_blocks: int,
    block_size_tokens: int,
) -> int:
    """Bound the compacted sequence lengths from above, without looking at a tensor.

    Example: W=8, block 4, 1 sink block, chunks of up to 3 -> 4 + 7 + 3 (unaligned start) + 3 = 17.
    """
    longest = (
        num_sink_blocks * block_size_tokens
        + (window_tokens - 1)
        + (block_size_tokens - 1)
        + max_query_len
    )
    return min(max_seq_len, longest)
