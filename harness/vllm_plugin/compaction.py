"""Tensor arithmetic that hides freed blocks from any attention kernel.

A request's row of the block table still has places for the blocks freed between its sinks and its
window. Compaction moves the window's blocks up to the sinks and takes the dropped tokens off the
sequence length, so that a kernel without any window sees sinks and window as one short sequence:

    W=8, S=4, block 4, 20 computed tokens, 3 new
    row      s0  --  --  b3  b4  b5  ..     seq_len 23
    compact  s0  b3  b4  b5  0   0   ..     seq_len 15

The result is exactly attention over sinks and window: softmax has no order, keys were rotated by
their original position when they were written, and a chunk still ends its sequence, so that
causality holds within it. The functions are pure, branch on no tensor value and so need no device
synchronisation; `HostRows` does the same for tables in host memory. Shapes: B requests, N places in
a row.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

Integers = TypeVar("Integers", Tensor, np.ndarray)

# vLLM keeps block 0 unused and pads rows with it (vllm/v1/core/block_pool.py).
NULL_BLOCK_ID = 0


def dropped_blocks(
    seq_lens: Integers,
    query_lens: Integers,
    *,
    window_tokens: int,
    num_sink_blocks: int,
    block_size_tokens: int,
) -> Integers:
    """Count the blocks missing between the sinks and the window of each request, (B,).

    seq_lens: tokens after this step, (B,); 0 in padding rows. query_lens: of them, new ones, (B,).
    Both on the device, or both as numpy arrays.

    Example: W=8, block 4, 1 sink block, seq_len 23 with 3 new -> the window starts in block 3 -> 2.
    Source: harness.kv.retention.evicted_blocks, for a batch.
    """
    # floor(x / b) - s is floor((x - s b) / b): one subtraction for the window and the sinks, and
    # one lower bound for both.
    kept_tokens = window_tokens - 1 + num_sink_blocks * block_size_tokens
    dropped: Integers = ((seq_lens - query_lens - kept_tokens) // block_size_tokens).clip(0)
    return dropped


def compact_seq_lens(seq_lens: Integers, dropped: Integers, block_size_tokens: int) -> Integers:
    """Return the tokens that are left of each sequence, (B,).

    Example: seq_len 23, 2 blocks of 4 dropped -> 15.
    """
    left: Integers = seq_lens - dropped * block_size_tokens
    return left


def compact_block_table(
    block_table: Tensor, dropped: Tensor, num_sink_blocks: int, num_places: int | None = None
) -> Tensor:
    """Return the rows without their dropped places, padded with the null block, (B, num_places).

    block_table: (B, N). dropped: (B,). num_places: of the result that are wanted; by default N.
    """
    width = block_table.shape[1]
    place = torch.arange(width if num_places is None else num_places, device=block_table.device)
    source = place + dropped[:, None] * (place >= num_sink_blocks)
    rows = block_table.gather(1, source.clamp(max=width - 1))
    return rows.masked_fill_(source >= width, NULL_BLOCK_ID)


class HostRows:
    """`compact_block_table` in numpy, which remembers where each place of the result comes from.

    For block tables in host memory. That changes when a window passes a block's end, once in many
    steps; between, a step gathers a few numbers: about 3 us, where the tensor operations of
    `compact_block_table` take 50.
    """

    def __init__(self, num_sink_blocks: int) -> None:
        self._num_sink_blocks = num_sink_blocks
        self._key: tuple[Any, ...] = ()
        self._index = np.zeros((0, 0), dtype=np.intp)
        self._beyond: np.ndarray | None = None

    def compact(self, block_table: np.ndarray, dropped: np.ndarray, num_places: int) -> np.ndarray:
        """Return the first `num_places` of the compacted rows, (B, num_places).

        block_table: (B, N). dropped: (B,).
        """
        key = (block_table.shape, num_places, dropped.tobytes())
        if key != self._key:
            self._key = key
            self._remember(block_table.shape, dropped, num_places)
        rows: np.ndarray = block_table.reshape(-1).take(self._index)
        if self._beyond is not None:
            rows[self._beyond] = NULL_BLOCK_ID
        return rows

    def _remember(self, shape: tuple[int, ...], dropped: np.ndarray, num_places: int) -> None:
        num_rows, width = shape
        place = np.arange(num_places)
        source = place + dropped[:, None] * (place >= self._num_sink_blocks)
        beyond = source >= width
        self._beyond = beyond if beyond.any() else None
        self._index = np.minimum(source, width - 1) + width * np.arange(num_rows)[:, None]


def may_have_dropped(
    max_seq_len: int, *, window_tokens: int, num_sink_blocks: int, block_size_tokens: int
) -> bool:
    """Tell whether any request of a batch can have lost a block, without looking at a tensor.

    max_seq_len: longest sequence after this step, or more.

    Example: W=8, block 4, 1 sink block -> block 1 is lost once 15 tokens are computed, so from 16.
    """
    return max_seq_len > window_tokens - 1 + (num_sink_blocks + 1) * block_size_tokens


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
