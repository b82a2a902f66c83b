"""Engine settings under which the bound would be silently wrong, refused before the first step.

Leans on the fields of vllm/config/*.py (0.32); imports nothing of vLLM but its version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.core.errors import ConfigError
from harness.kv.retention import Retention, validate_for_block_size
from harness.vllm_plugin.config import retention_from

SUPPORTED_VLLM = "0.32"
PREFIX_CACHING_WITH_SINKS = (
    "enable_prefix_caching=True with sink_tokens above 0 (a preempted session would resume without "
    "its sinks): set enable_prefix_caching=False"
)


def vllm_version() -> str:
    """Return the version of the vLLM that this process imported."""
    import vllm

    return str(vllm.__version__)


def installed_vllm_is_supported() -> bool:
    """Tell whether the plugin's hooks were written for the installed minor version."""
    return is_supported(vllm_version())


def is_supported(version: str) -> bool:
    """Tell whether `version` has the supported minor version.

    Example: 0.32.1+cpu -> True, 0.33.0 -> False.
    """
    return version.split(".")[:2] == SUPPORTED_VLLM.split(".")


def check_engine_config(vllm_config: Any, version: str | None = None) -> Retention | None:
    """Return the retention that an engine configuration asks for, if it can be kept.

    vllm_config: a vllm.config.VllmConfig; also of use before an engine is started.
    version: of vLLM; None for the installed one.

    Raises: ConfigError naming every setting in conflict with the bound.
    """
    retention = retention_from(vllm_config.additional_config)
    if retention is None:
        return None
    version = version or vllm_version()
    if not is_supported(version):
        raise ConfigError(
            f"vllm=={version} is not bounded by additional_config.metronome, which is written for "
            f"vllm=={SUPPORTED_VLLM}.*: install that, or leave the key out"
        )
    block_size_tokens = vllm_config.cache_config.block_size
    if block_size_tokens is not None:
        validate_for_block_size(retention, block_size_tokens)
    conflicts = list(_conflicts(vllm_config, retention))
    if conflicts:
        raise ConfigError(f"additional_config.metronome cannot be kept with {'; '.join(conflicts)}")
    return retention


def _conflicts(vllm_config: Any, retention: Retention) -> Iterator[str]:
    cache, parallel, model = (
        vllm_config.cache_config,
        vllm_config.parallel_config,
        vllm_config.model_config,
    )
    if retention.sink_tokens and cache.enable_prefix_caching:
        yield PREFIX_CACHING_WITH_SINKS
    if vllm_config.speculative_config is not None:
        yield "speculative decoding (drafts are built on uncompacted metadata): remove it"
    if vllm_config.diffusion_config is not None:
        yield "block diffusion (its queries are not causal): choose another model"
    transfer = vllm_config.kv_transfer_config
    if transfer is not None and transfer.kv_connector is not None:
        yield f"kv_connector={transfer.kv_connector} (it would move freed blocks): remove it"
    for name in ("decode_context_parallel_size", "prefill_context_parallel_size"):
        if (size := getattr(parallel, name)) > 1:
            yield f"{name}={size} (blocks are sharded by position): set it to 1"
    if cache.kv_sharing_fast_prefill:
        yield "kv_sharing_fast_prefill=True (it hides a chunk's start): set it to False"
    if model.is_mm_prefix_lm:
        yield "a model with bidirectional multimodal prefixes (their positions are absolute)"
    if model.rswa_window is not None:
        yield f"rswa_window={model.rswa_window} (the model has its own bound)"
    if vllm_config.attention_config.hisparse_config is not None:
        yield "HiSparse attention (it picks its own tokens): remove it"
