"""Any attention backend, bounded: its metadata builder is handed compacted metadata.

No kernel changes. Leans on `subclass_attention_backend`, `AttentionMetadataBuilder` and
`CommonAttentionMetadata` of vllm/v1/attention/backend.py (0.32), and follows
vllm/model_executor/layers/attention/static_sink_attention.py, vLLM's own wrapper of this kind.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import torch
from torch import Tensor
from vllm.v1.attention.backend import (
    AttentionBackend,
    CommonAttentionMetadata,
    subclass_attention_backend,
)

from harness.vllm_plugin.compaction import (
    NULL_BLOCK_ID,
    HostRows,
    compact_block_table,
    compact_seq_lens,
    dropped_blocks,
    max_compacted_seq_len,
    may_have_dropped,
)
from harness.vllm_plugin.spec import SinkWindowSpec


class Compactor:
    """Compacts the metadata of every step into the same two tensors.

    A captured CUDA graph reads from the addresses it saw at capture, so results are copied into
    buffers that live as long as the builder. Of a row only the places that a bounded session can
    fill are compacted; behind them the buffer holds the null block.

    max_num_reqs: rows of the buffers. Their width is that of the first block table.
    on_host: the metadata lie in host memory. Work there is in numpy, whose calls cost a fifth of
    torch's, and a batch that has lost nothing yet is handed on as it is: there are no graphs.
    """

    def __init__(self, spec: SinkWindowSpec, *, max_num_reqs: int, on_host: bool) -> None:
        # A builder's spec counts in blocks of the kernel, which may be a fraction of the manager's:
        # what is skipped is then cut finer, and still contains all that was freed.
        self._block_size_tokens: int = spec.block_size
        self._bound = {
            "window_tokens": spec.sliding_window,
            "num_sink_blocks": spec.num_sink_blocks,
            "block_size_tokens": spec.block_size,
        }
        self._num_sink_blocks = spec.num_sink_blocks
        self._max_num_reqs = max_num_reqs
        self._on_host = on_host
        self._host_rows = HostRows(spec.num_sink_blocks)
        self._num_places = 0

    def compact(self, metadata: CommonAttentionMetadata) -> CommonAttentionMetadata:
        """Restrict a batch to resident blocks; slot mapping and positions stay as they are."""
        has_dropped = may_have_dropped(metadata.max_seq_len, **self._bound)
        if self._on_host and not has_dropped:
            return metadata
        max_seq_len = max_compacted_seq_len(
            metadata.max_seq_len, metadata.max_query_len, **self._bound
        )
        num_reqs, width = metadata.block_table_tensor.shape
        num_places = min(-(-max_seq_len // self._block_size_tokens), width)
        self._make_room(metadata, num_places)
        compacted = copy.copy(metadata)
        compacted.seq_lens = self._seq_lens[:num_reqs]
        compacted.block_table_tensor = self._block_table[:num_reqs]
        compacted.max_seq_len = max_seq_len
        # Derived from the lengths that are replaced.
        compacted._num_computed_tokens_cache = None
        compacted._token_to_req_indices_cache = None
        if self._on_host:
            self._fill_on_host(metadata, num_places)
            if metadata.seq_lens_cpu_upper_bound is not None:
                compacted.seq_lens_cpu_upper_bound = compacted.seq_lens
        elif has_dropped:
            self._fill_on_device(metadata, num_places)
            compacted.seq_lens_cpu_upper_bound = self._host_seq_lens(metadata)
        else:
            compacted.seq_lens.copy_(metadata.seq_lens)
            compacted.block_table_tensor.copy_(metadata.block_table_tensor)
            self._num_places = width
        return compacted

    def _make_room(self, metadata: CommonAttentionMetadata, num_places: int) -> None:
        if not self._num_places:
            num_reqs, width = metadata.block_table_tensor.shape
            num_rows = max(self._max_num_reqs, num_reqs)
            self._seq_lens: Tensor = metadata.seq_lens.new_zeros(num_rows)
            self._block_table: Tensor = metadata.block_table_tensor.new_zeros(num_rows, width)
        if num_places < self._num_places:
            self._block_table[:, num_places : self._num_places] = NULL_BLOCK_ID
        self._num_places = num_places

    def _fill_on_host(self, metadata: CommonAttentionMetadata, num_places: int) -> None:
        seq_lens, starts = metadata.seq_lens.numpy(), metadata.query_start_loc.numpy()
        num_reqs = len(seq_lens)
        dropped = dropped_blocks(seq_lens, starts[1:] - starts[:-1], **self._bound)
        rows = self._host_rows.compact(metadata.block_table_tensor.numpy(), dropped, num_places)
        self._block_table.numpy()[:num_reqs, :num_places] = rows
        self._seq_lens.numpy()[:num_reqs] = compact_seq_lens(
            seq_lens, dropped, self._block_size_tokens
        )

    def _fill_on_device(self, metadata: CommonAttentionMetadata, num_places: int) -> None:
        seq_lens, starts = metadata.seq_lens, metadata.query_start_loc
        num_reqs = len(seq_lens)
        dropped = dropped_blocks(seq_lens, starts[1:] - starts[:-1], **self._bound)
        rows = compact_block_table(
            metadata.block_table_tensor, dropped, self._num_sink_blocks, num_places
        )
        self._block_table[:num_reqs, :num_places].copy_(rows)
        self._seq_lens[:num_reqs].copy_(
            compact_seq_lens(seq_lens, dropped, self._block_size_tokens)
        )

    def _host_seq_lens(self, metadata: CommonAttentionMetadata) -> Tensor | None:
        # Exact wherever the bound runs: only speculative decoding makes it an estimate, and that is
        # refused. A compacted estimate would not even be an upper bound.
        if metadata.seq_lens_cpu_upper_bound is None:
            return None
        seq_lens = metadata.seq_lens_cpu_upper_bound.numpy()
        starts = metadata.query_start_loc_cpu.numpy()
        dropped = dropped_blocks(seq_lens, starts[1:] - starts[:-1], **self._bound)
        return torch.from_numpy(compact_seq_lens(seq_lens, dropped, self._block_size_tokens))


class BoundedBuilder:
    """Mixin in front of a backend's metadata builder; all build variants of vLLM end in `build`."""

    # Both would put a block table that was not compacted into finished metadata.
    supports_update_block_table = False
    supports_draft_decode_metadata_update = False

    def __init__(
        self,
        kv_cache_spec: SinkWindowSpec,
        layer_names: list[str],
        vllm_config: Any,
        device: torch.device,
        **kwargs: Any,
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device, **kwargs)  # type: ignore[call-arg]
        self._compactor = Compactor(
            kv_cache_spec,
            max_num_reqs=vllm_config.scheduler_config.max_num_seqs,
            on_host=device.type == "cpu",
        )

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Build the backend's metadata over what a session kept.

        `common_prefix_len` becomes 0: a shared prefix counts places that compaction removes.
        """
        compacted = self._compactor.compact(common_attn_metadata)
        return super().build(0, compacted, fast_build, **kwargs)  # type: ignore[misc]


def is_bounded(backend: type[AttentionBackend]) -> bool:
    """Tell whether a backend was derived by `bounded`."""
    return issubclass(backend.get_builder_cls(), BoundedBuilder)


@functools.lru_cache
def bounded(backend: type[AttentionBackend]) -> type[AttentionBackend]:
    """Derive the backend that differs from `backend` in its metadata builder alone.

    Cached, so that all layers of one backend share a class, by which vLLM groups them.
    """
    if is_bounded(backend):
        return backend
    parent = backend.get_builder_cls()
    builder = type(f"Bounded{parent.__name__}", (BoundedBuilder, parent), {})
    derived: type[AttentionBackend] = subclass_attention_backend("Bounded", backend, builder)
    return derived
