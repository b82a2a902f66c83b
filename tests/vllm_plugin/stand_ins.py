"""Pieces of an engine: the settings that decide, and vLLM's real cache manager without one."""

from types import SimpleNamespace

import torch
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.kv_cache_interface import KVCacheConfig, KVCacheGroupSpec

from harness.vllm_plugin.spec import SinkWindowSpec, register_spec

BLOCK = 4
LAYOUT = {"num_kv_heads": 2, "head_size": 32, "dtype": torch.float32}


def spec(window, sinks, block=BLOCK):
    return SinkWindowSpec(block_size=block, sliding_window=window, sink_tokens=sinks, **LAYOUT)


def cache_manager(kv_spec, *, num_blocks=64, max_model_len=10_000, in_flight=16, caching=False):
    register_spec()
    config = KVCacheConfig(
        num_blocks=num_blocks,
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec(["layer.0"], kv_spec)],
    )
    return KVCacheManager(
        config,
        max_model_len=max_model_len,
        scheduler_block_size=kv_spec.block_size,
        hash_block_size=kv_spec.block_size,
        max_in_flight_tokens=in_flight,
        enable_caching=caching,
    )


def engine_config(bound=(64, 4), **changes):
    """The fields of a VllmConfig that decide, all harmless; `changes` by dotted name."""
    entry = {"metronome": {"window_tokens": bound[0], "sink_tokens": bound[1]}} if bound else {}
    config = SimpleNamespace(
        additional_config=entry,
        cache_config=SimpleNamespace(
            block_size=32, enable_prefix_caching=False, kv_sharing_fast_prefill=False
        ),
        parallel_config=SimpleNamespace(
            decode_context_parallel_size=1, prefill_context_parallel_size=1
        ),
        model_config=SimpleNamespace(is_mm_prefix_lm=False, rswa_window=None),
        attention_config=SimpleNamespace(hisparse_config=None),
        speculative_config=None,
        diffusion_config=None,
        kv_transfer_config=None,
    )
    for name, value in changes.items():
        *path, field = name.split("__")
        target = config
        for part in path:
            target = getattr(target, part)
        setattr(target, field, value)
    return config
