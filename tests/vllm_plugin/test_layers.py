"""The hook on vLLM's layer classes, with layers that hold only what a cache spec is made of."""

from types import SimpleNamespace

import pytest
import torch
from vllm.model_executor.layers.attention import Attention, MLAAttention
from vllm.model_executor.layers.attention.prefill_prefix_lm_attention import (
    PrefillPrefixLMAttention,
)
from vllm.model_executor.layers.attention.rswa_attention import RSWAAttention
from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
from vllm.v1.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    MambaSpec,
    SlidingWindowSpec,
)

import harness.vllm_plugin
from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.vllm_plugin.backend import bounded
from harness.vllm_plugin.spec import SinkWindowSpec
from tests.vllm_plugin.stand_ins import engine_config

MLA_FIELDS = {
    "kv_cache_dtype": "auto",
    "sliding_window": None,
    "indexer": None,
    "non_causal_multi_token_decode": False,
    "head_size": 576,
}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The plugin, for one test; monkeypatch puts vLLM's own methods back."""
    for layer_class in (Attention, MLAAttention):
        monkeypatch.setattr(layer_class, "get_kv_cache_spec", layer_class.get_kv_cache_spec)
    harness.vllm_plugin.register()


def attention(name, layer_class=Attention, **changes):
    """An attention layer without weights or kernel."""
    layer = layer_class.__new__(layer_class)
    torch.nn.Module.__init__(layer)
    fields = {
        "layer_name": name,
        "attn_type": AttentionType.DECODER,
        "attn_backend": CPUAttentionBackend,
        "impl": SimpleNamespace(alibi_slopes=None),
        "sliding_window": None,
        "kv_cache_dtype": "auto",
        "kv_cache_torch_dtype": torch.float32,
        "num_kv_heads": 2,
        "head_size": 32,
        "head_size_v": 32,
        "kv_sharing_target_layer_name": None,
    }
    for field, value in {**fields, **changes}.items():
        setattr(layer, field, value)
    return layer


class ForeignLayer(torch.nn.Module, AttentionLayerBase):
    """A model's own kind of layer, with the spec it is given."""

    def __init__(self, spec):
        super().__init__()
        self.spec = spec

    def get_attn_backend(self):
        return CPUAttentionBackend

    def get_kv_cache_spec(self, vllm_config):
        return self.spec


def model(*layers, bound=(64, 4), **foreign):
    """An engine configuration over a model of these layers."""
    config = engine_config(bound=bound)
    config.cache_config.skip_page_size_padded = None
    config.model_config.dtype = torch.float32
    named = {layer.layer_name: layer for layer in layers}
    config.compilation_config = SimpleNamespace(static_forward_context={**named, **foreign})
    return config


def test_a_full_attention_layer_reports_the_bound_and_builds_compacted_metadata():
    layer = attention("a")
    spec = layer.get_kv_cache_spec(model(layer))
    assert isinstance(spec, SinkWindowSpec)
    assert spec.retention == Retention(window_tokens=64, sink_tokens=4)
    assert spec.block_size == 32
    assert layer.get_attn_backend() is bounded(CPUAttentionBackend)
    # vLLM asks again when it profiles graphs.
    assert layer.get_kv_cache_spec(model(layer)) == spec
    assert layer.get_attn_backend() is bounded(CPUAttentionBackend)


def test_without_the_key_a_layer_is_as_it_was():
    layer = attention("a")
    spec = layer.get_kv_cache_spec(model(layer, bound=None))
    assert type(spec) is FullAttentionSpec
    assert layer.get_attn_backend() is CPUAttentionBackend


def test_registering_again_does_not_wrap_twice():
    hooks = [layer.get_kv_cache_spec for layer in (Attention, MLAAttention)]
    harness.vllm_plugin.register()
    assert [layer.get_kv_cache_spec for layer in (Attention, MLAAttention)] == hooks


def test_a_layer_that_reads_anothers_cache_is_bounded_with_it():
    layer = attention("a")
    reader = attention("b", kv_sharing_target_layer_name="a")
    stranger = attention("c", kv_sharing_target_layer_name="z")
    layer.get_kv_cache_spec(model(layer, reader, stranger))
    assert reader.get_attn_backend() is bounded(CPUAttentionBackend)
    assert stranger.get_attn_backend() is CPUAttentionBackend


def test_layers_with_a_bound_of_their_own_are_left_alone(monkeypatch):
    from vllm.platforms import current_platform

    monkeypatch.setattr(type(current_platform), "is_cpu", lambda self: False)
    layer, windowed = attention("a"), attention("w", sliding_window=128)
    encoder = attention("e", attn_type=AttentionType.ENCODER_ONLY)
    chunked = ForeignLayer(
        ChunkedLocalAttentionSpec(
            block_size=32,
            num_kv_heads=2,
            head_size=32,
            dtype=torch.float32,
            attention_chunk_size=64,
        )
    )
    state = ForeignLayer(MambaSpec(block_size=32, shapes=((4,),), dtypes=(torch.float32,)))
    config = model(layer, windowed, encoder, chunked=chunked, state=state)
    assert isinstance(layer.get_kv_cache_spec(config), SinkWindowSpec)
    assert type(windowed.get_kv_cache_spec(config)) is SlidingWindowSpec
    assert windowed.get_attn_backend() is CPUAttentionBackend
    assert encoder.get_kv_cache_spec(config) is None


def test_a_state_space_layer_is_refused_on_a_cpu():
    layer = attention("a")
    state = ForeignLayer(MambaSpec(block_size=32, shapes=((4,),), dtypes=(torch.float32,)))
    with pytest.raises(ConfigError, match="on a CPU beside state, which has a state"):
        layer.get_kv_cache_spec(model(layer, state=state))


def test_an_mla_layer_is_refused_by_name():
    layer = attention("model.layers.0.attn", MLAAttention, **MLA_FIELDS)
    with pytest.raises(ConfigError, match=r"layer model\.layers\.0\.attn \(MLAAttentionSpec\)"):
        layer.get_kv_cache_spec(model(layer))


def test_an_mla_layer_without_the_key_is_as_it_was():
    layer = attention("a", MLAAttention, **MLA_FIELDS)
    assert layer.get_kv_cache_spec(model(layer, bound=None)).num_kv_heads == 1


@pytest.mark.parametrize("layer_class", [RSWAAttention, PrefillPrefixLMAttention])
def test_a_layer_class_that_changes_its_parents_spec_is_refused(layer_class):
    plain, special = attention("a"), attention("r", layer_class, _rswa_window=64)
    message = rf"cannot bound layer r \({layer_class.__name__}\)"
    with pytest.raises(ConfigError, match=message):
        special.get_kv_cache_spec(model(special))
    with pytest.raises(ConfigError, match=message):
        plain.get_kv_cache_spec(model(plain, special))


def test_a_models_own_layer_that_keeps_everything_is_refused():
    layer = attention("a")
    own = ForeignLayer(
        FullAttentionSpec(block_size=32, num_kv_heads=2, head_size=32, dtype=torch.float32)
    )
    with pytest.raises(ConfigError, match=r"cannot bound layer own \(ForeignLayer\)"):
        layer.get_kv_cache_spec(model(layer, own=own))


def test_alibi_is_refused_since_it_counts_places():
    layer = attention("a", impl=SimpleNamespace(alibi_slopes=torch.ones(2)))
    with pytest.raises(ConfigError, match="ALiBi"):
        layer.get_kv_cache_spec(model(layer))


def test_sinks_are_refused_where_a_layer_has_the_same_window_of_its_own():
    layer, windowed = attention("a"), attention("w", sliding_window=64)
    config = model(layer, windowed)
    with pytest.raises(ConfigError, match="is also the window of w"):
        windowed.get_kv_cache_spec(config)
    config = model(layer, windowed, bound=(64, 0))
    assert type(windowed.get_kv_cache_spec(config)) is SlidingWindowSpec


def test_another_vllm_is_refused_only_when_the_bound_is_asked_for(monkeypatch):
    import vllm

    monkeypatch.setattr(vllm, "__version__", "0.33.0")
    harness.vllm_plugin.register()
    layer = attention("a")
    assert type(layer.get_kv_cache_spec(model(layer, bound=None))) is FullAttentionSpec
    with pytest.raises(ConfigError, match=r"vllm==0\.33\.0 is not bounded"):
        layer.get_kv_cache_spec(model(layer))
