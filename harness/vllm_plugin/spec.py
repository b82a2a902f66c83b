"""The bounded KV cache on the scheduler's side: which blocks a session keeps and which go back.

Leans on vLLM's extension point vllm/v1/kv_cache_spec_registry.py (0.32) and extends its sliding
window (SlidingWindowSpec in v1/kv_cache_interface.py, SlidingWindowManager in
v1/core/single_type_kv_cache_manager.py) by pinned blocks; with S = 0 the two are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm.v1.core.single_type_kv_cache_manager import SlidingWindowManager
from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec, replace_as
from vllm.v1.kv_cache_spec_registry import KVCacheSpecRegistry

from harness.core.errors import ConfigError
from harness.kv.retention import Retention, num_sink_blocks, validate_for_block_size
from harness.vllm_plugin.refusals import PREFIX_CACHING_WITH_SINKS


@dataclass(frozen=True, kw_only=True)
class SinkWindowSpec(SlidingWindowSpec):  # type: ignore[misc]  # vLLM is untyped for mypy
    """Cache of a layer whose queries see the first `sink_tokens` and the last `sliding_window`."""

    sink_tokens: int = 0

    @property
    def retention(self) -> Retention:
        """W and S as the harness names them."""
        return Retention(window_tokens=self.sliding_window, sink_tokens=self.sink_tokens)

    @property
    def num_sink_blocks(self) -> int:
        """Blocks that are never freed while the session lives."""
        return num_sink_blocks(self.retention, self.block_size)

    def max_admission_blocks_per_request(
        self, max_in_flight_tokens: int, max_model_len: int
    ) -> int:
        """Return the most blocks a session holds; vLLM sizes the pool and admits by it.

        Equal to harness.kv.retention.plateau_blocks.
        """
        window_blocks: int = super().max_admission_blocks_per_request(
            max_in_flight_tokens, max_model_len
        )
        longest: int = -(-max_model_len // self.block_size) + 1
        return min(window_blocks + self.num_sink_blocks, longest)

    def is_uniform_with_collection(self, kv_cache_specs: dict[str, Any]) -> bool:
        """Tell whether all layers may share one block table: equal W and equal S."""
        return super().is_uniform_with_collection(kv_cache_specs) and all(
            getattr(spec, "sink_tokens", 0) == self.sink_tokens for spec in kv_cache_specs.values()
        )


class SinkWindowManager(SlidingWindowManager):  # type: ignore[misc]  # vLLM is untyped for mypy
    """Frees the blocks between the sinks and the window; freed places hold vLLM's null block.

    Raises: ConfigError if the window is smaller than the block size vLLM settled on, or if sinks
    meet prefix caching, whose hits know nothing of pinned blocks.
    """

    def __init__(self, kv_cache_spec: SinkWindowSpec, **kwargs: Any) -> None:
        super().__init__(kv_cache_spec, **kwargs)
        validate_for_block_size(kv_cache_spec.retention, self.block_size)
        if kv_cache_spec.sink_tokens and self.enable_caching:
            raise ConfigError(
                f"additional_config.metronome cannot be kept with {PREFIX_CACHING_WITH_SINKS}"
            )
        self._num_sink_blocks = kv_cache_spec.num_sink_blocks

    def remove_skipped_blocks(
        self,
        request_id: str,
        processed_computed_tokens: int,
        num_prompt_tokens: int | None = None,
    ) -> None:
        """Free what no later query sees, except the sinks; runs before each allocation."""
        num_skipped_blocks = (
            self.get_num_skipped_tokens(processed_computed_tokens) // self.block_size
        )
        # Clips itself to the blocks that exist, and stops at the first place freed earlier.
        self._remove_blocks_in_range(request_id, self._num_sink_blocks, num_skipped_blocks)


def bounded_spec(spec: FullAttentionSpec, retention: Retention) -> SinkWindowSpec:
    """Return the cache layout of `spec`, bounded to `retention`.

    spec: a causal full-attention spec without a window or chunk of its own.
    """
    if retention.window_tokens is None:
        raise ConfigError("retention.window_tokens is null: an unbounded layer keeps its own spec")
    bounded: SinkWindowSpec = replace_as(
        spec,
        SinkWindowSpec,
        drop=("attention_chunk_size", "non_causal"),
        sliding_window=retention.window_tokens,
        sink_tokens=retention.sink_tokens,
    )
    return bounded


def register_spec() -> None:
    """Tell vLLM which manager belongs to the spec; calling it again changes nothing."""
    # Else the built-in specs would never be registered: vLLM only asks if the registry is empty.
    KVCacheSpecRegistry._ensure_registered()
    KVCacheSpecRegistry.register(
        SinkWindowSpec, SinkWindowManager, uniform_type_base_spec=SlidingWindowSpec
    )
