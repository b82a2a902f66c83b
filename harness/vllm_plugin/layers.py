"""The hook: full-attention layers report a bounded cache and build bounded metadata.

One method is wrapped, `get_kv_cache_spec` of vLLM's two decoder attention layers
(vllm/model_executor/layers/attention/{attention,mla_attention}.py, 0.32). It runs in each worker
after the model is built and before anything is made of its layers: cache groups, metadata builders,
graphs. vLLM has no official seam there: a backend may adjust a spec (`customize_spec`), but it sees
no configuration and is not chosen by it, and `register_backend` replaces a backend for every run.

    layer keeps                          then
    everything, causal                   bounded
    its own window, chunk or state       left alone
    anything else (MLA, R-SWA, ...)      ConfigError

Limit: a model none of whose layers is an `Attention` or `MLAAttention` never gets here. Such an
engine starts unbounded; harness.vllm_plugin.self_check tells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from vllm.config import get_layers_from_vllm_config
from vllm.model_executor.layers.attention import Attention, MLAAttention
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase

from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.vllm_plugin.config import bounds_host, retention_from
from harness.vllm_plugin.refusals import check_engine_config

_HOOK_MARK = "harness_hook"


def install_hook() -> None:
    """Wrap `get_kv_cache_spec` of vLLM's attention layers; calling it again changes nothing."""
    for layer_class in (Attention, MLAAttention):
        if not _is_hooked(layer_class):
            layer_class.get_kv_cache_spec = _hooked(layer_class.get_kv_cache_spec)


def _hooked(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(original)
    def get_kv_cache_spec(layer: Any, vllm_config: Any) -> Any:
        spec = original(layer, vllm_config)
        if bounds_host(vllm_config.additional_config):
            # Not in `register()`: it would import the model runner in every process of vLLM's.
            from harness.vllm_plugin.positions import install_positions

            install_positions()
        if retention_from(vllm_config.additional_config) is None:
            return spec
        return _spec_under_the_bound(layer, spec, vllm_config)

    setattr(get_kv_cache_spec, _HOOK_MARK, True)
    return get_kv_cache_spec


def _is_hooked(layer_class: type) -> bool:
    return hasattr(layer_class.get_kv_cache_spec, _HOOK_MARK)  # type: ignore[attr-defined]


def _spec_under_the_bound(layer: Any, spec: Any, vllm_config: Any) -> Any:
    """Return the spec that `layer` reports, after giving it the backend that goes with it."""
    retention = check_engine_config(vllm_config)
    assert retention is not None
    layers = get_layers_from_vllm_config(vllm_config, AttentionLayerBase)
    _survey_foreign_layers(layer, layers, vllm_config, retention)
    if _keeps_its_own(layer.layer_name, spec, retention):
        return spec
    _refuse_unboundable(layer.layer_name, layer, spec)

    from harness.vllm_plugin.spec import bounded_spec

    _bound_backend(layer.layer_name, layer)
    for name, other in layers.items():
        if _reads_another_cache(other) == layer.layer_name:
            _bound_backend(name, other)
    return bounded_spec(spec, retention)


def _reads_another_cache(layer: Any) -> str | None:
    """Return the name of the layer whose cache `layer` reads; such a layer is asked for no spec."""
    name: str | None = getattr(layer, "kv_sharing_target_layer_name", None)
    return name


def _survey_foreign_layers(
    asked: Any, layers: dict[str, Any], vllm_config: Any, retention: Retention
) -> None:
    """Refuse the model if a layer outside the hook would keep everything.

    Done once for a model, when its first hooked layer is asked.
    """
    hooked = (layer for layer in layers.values() if _is_hooked(type(layer)))
    if asked is not next((layer for layer in hooked if not _reads_another_cache(layer)), None):
        return
    for name, layer in layers.items():
        if not _is_hooked(type(layer)):
            spec = layer.get_kv_cache_spec(vllm_config)
            if not _keeps_its_own(name, spec, retention):
                raise ConfigError(_cannot_bound(name, type(layer).__name__))


def _keeps_its_own(name: str, spec: Any, retention: Retention) -> bool:
    """Tell whether a layer's cache is bounded or absent by design of the model."""
    from vllm.platforms import current_platform
    from vllm.v1.kv_cache_interface import (
        ChunkedLocalAttentionSpec,
        CrossAttentionSpec,
        EncoderOnlyAttentionSpec,
        MambaSpec,
        SlidingWindowSpec,
    )

    if isinstance(spec, MambaSpec) and current_platform.is_cpu():
        # v1/worker/cpu_model_runner.py zeroes recycled blocks of full-attention groups only, so
        # that bounded layers would read what a state left in theirs.
        raise ConfigError(
            f"additional_config.metronome cannot be kept on a CPU beside {name}, which has a state"
        )
    if isinstance(spec, SlidingWindowSpec):
        if retention.sink_tokens and spec.sliding_window == retention.window_tokens:
            # vLLM groups window layers by W alone and would free the sinks of such a group.
            raise ConfigError(
                f"retention.window_tokens={retention.window_tokens} is also the window of {name}, "
                "which keeps no sinks: choose another window"
            )
        return True
    own = (ChunkedLocalAttentionSpec, CrossAttentionSpec, EncoderOnlyAttentionSpec, MambaSpec)
    return spec is None or isinstance(spec, own)


def _refuse_unboundable(name: str, layer: Any, spec: Any) -> None:
    from vllm.v1.kv_cache_interface import FullAttentionSpec

    if not _is_hooked(type(layer)):
        # It asked its parent for a spec to change into something else.
        raise ConfigError(_cannot_bound(name, type(layer).__name__))
    # Subclasses of the spec (MLA, R-SWA, static sinks) give its fields another meaning.
    if type(spec) is not FullAttentionSpec or spec.non_causal:
        raise ConfigError(_cannot_bound(name, type(spec).__name__))


def _bound_backend(name: str, layer: Any) -> None:
    from harness.vllm_plugin.backend import bounded

    if getattr(layer.impl, "alibi_slopes", None) is not None:
        raise ConfigError(_cannot_bound(name, "ALiBi, which counts places between tokens"))
    layer.attn_backend = bounded(layer.attn_backend)


def _cannot_bound(name: str, what: str) -> str:
    return (
        f"additional_config.metronome cannot bound layer {name} ({what}): "
        "serve this model without the bound"
    )
