"""Any attention backend, bounded: its metadata builder is handed compacted metadata.

No kernel changes. Leans on `subclass_attention_backend`, `AttentionMetadataBuilder` and
`CommonAttentionMetadata` of vllm/v1/attention/backend.py (0.32), and follows
vllm/model_executor/layers/attention/static_sink_attention.py, vLLM's own wrapper of this kind.
"""

from __future__ import annotations

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
    compact_block_table,
    compact_seq_lens,
    dropped_blocks,
    max_compacted_seq_len,
)
from harness.vllm_plugin.spec import SinkWindowSpec


class Compactor:
    """Compacts the metadata of every step into the same two tensors.

    A captured CUDA graph reads from the addresses it saw at capture, so results are copied into
    buffers that live as long as the builder.

    max_num_reqs: rows of the buffers. Their width is that of the first block table.
    """

    def __init__(self, spec: SinkWindowSpec, *, max_num_reqs: int) -> None:
        # A builder's spec counts in blocks of the kernel, which may be a fraction of the manager's:
        # what is skipped is then cut finer, and still contains all that was freed.
        self._block_size_tokens: int = spec.block_size
        self._num_sink_blocks = spec.num_sink_blocks
        self._window_tokens: int = spec.sliding_window
        self._max_num_reqs = max_num_reqs
        self._seq_lens: Tensor | None = None
        self._block_table: Tensor | None = None

    def compact(self, metadata: CommonAttentionMetadata) -> CommonAttentionMetadata:
        """Restrict a batch to resident blocks; slot mapping and positions stay as they are."""
        dropped = self._dropped(metadata.seq_lens, metadata.query_start_loc)
        seq_lens = compact_seq_lens(metadata.seq_lens, dropped, self._block_size_tokens)
        block_table = compact_block_table(
            metadata.block_table_tensor, dropped, self._num_sink_blocks
        )
        return metadata.replace(
            seq_lens=self._kept_seq_lens(seq_lens),
            block_table_tensor=self._kept_block_table(block_table),
            seq_lens_cpu_upper_bound=self._compact_on_cpu(metadata),
            max_seq_len=max_compacted_seq_len(
                metadata.max_seq_len,
                metadata.max_query_len,
                window_tokens=self._window_tokens,
                num_sink_blocks=self._num_sink_blocks,
                block_size_tokens=self._block_size_tokens,
            ),
            # Derived from the lengths that were replaced.
            _num_computed_tokens_cache=None,
            _token_to_req_indices_cache=None,
        )

    def _dropped(self, seq_lens: Tensor, query_start_loc: Tensor) -> Tensor:
        return dropped_blocks(
            seq_lens,
            query_start_loc[1:] - query_start_loc[:-1],
            window_tokens=self._window_tokens,
            num_sink_blocks=self._num_sink_blocks,
            block_size_tokens=self._block_size_tokens,
        )

    def _compact_on_cpu(self, metadata: CommonAttentionMetadata) -> Tensor | None:
        # Exact wherever the bound runs: only speculative decoding makes it an estimate, and that is
        # refused. A compacted estimate would not even be an upper bound.
        seq_lens: Tensor | None = metadata.seq_lens_cpu_upper_bound
        if seq_lens is None:
            return None
        dropped = self._dropped(seq_lens, metadata.query_start_loc_cpu)
        return compact_seq_lens(seq_lens, dropped, self._block_size_tokens)

    def _kept_seq_lens(self, seq_lens: Tensor) -> Tensor:
        if self._seq_lens is None:
            self._seq_lens = seq_lens.new_zeros(max(self._max_num_reqs, len(seq_lens)))
        return self._seq_lens[: len(seq_lens)].copy_(seq_lens)

    def _kept_block_table(self, block_table: Tensor) -> Tensor:
        num_reqs, width = block_table.shape
        if self._block_table is None:
            self._block_table = block_table.new_zeros(max(self._max_num_reqs, num_reqs), width)
        return self._block_table[:num_reqs].copy_(block_table)


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
            kv_cache_spec, max_num_reqs=vllm_config.scheduler_config.max_num_seqs
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
