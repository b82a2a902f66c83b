import re
from types import SimpleNamespace

import pytest

from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.vllm_plugin.refusals import check_engine_config, is_supported
from tests.vllm_plugin.stand_ins import engine_config

CONNECTOR = SimpleNamespace(kv_connector="NixlConnector")
CONFLICTS = [
    ({"cache_config__enable_prefix_caching": True}, "set enable_prefix_caching=False"),
    ({"speculative_config": object()}, "speculative decoding"),
    ({"diffusion_config": object()}, "block diffusion"),
    ({"kv_transfer_config": CONNECTOR}, "kv_connector=NixlConnector"),
    ({"parallel_config__decode_context_parallel_size": 2}, "decode_context_parallel_size=2"),
    ({"parallel_config__prefill_context_parallel_size": 2}, "prefill_context_parallel_size=2"),
    ({"cache_config__kv_sharing_fast_prefill": True}, "kv_sharing_fast_prefill=True"),
    ({"model_config__is_mm_prefix_lm": True}, "bidirectional multimodal prefixes"),
    ({"model_config__rswa_window": 128}, "rswa_window=128"),
    ({"attention_config__hisparse_config": object()}, "HiSparse"),
]


def test_a_harmless_engine_keeps_what_it_is_asked_for():
    wanted = Retention(window_tokens=64, sink_tokens=4)
    assert check_engine_config(engine_config(), "0.32.1+cpu") == wanted


@pytest.mark.parametrize(("changes", "message"), CONFLICTS, ids=[name for _, name in CONFLICTS])
def test_a_setting_that_would_make_the_bound_wrong_is_refused(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        check_engine_config(engine_config(**changes), "0.32.0")


@pytest.mark.parametrize("changes", [changes for changes, _ in CONFLICTS])
def test_without_the_key_no_setting_is_refused_and_no_version(changes):
    assert check_engine_config(engine_config(bound=None, **changes), "0.99.0") is None


def test_two_conflicts_are_named_in_one_error():
    config = engine_config(speculative_config=object(), kv_transfer_config=CONNECTOR)
    with pytest.raises(ConfigError, match=r"speculative decoding.*; kv_connector=NixlConnector"):
        check_engine_config(config, "0.32.0")


def test_a_window_without_sinks_may_share_prefixes():
    config = engine_config(bound=(64, 0), cache_config__enable_prefix_caching=True)
    assert check_engine_config(config, "0.32.0") == Retention(window_tokens=64)


def test_a_window_below_the_block_size_is_refused():
    with pytest.raises(
        ConfigError, match=r"window_tokens=16 must be at least block_size_tokens=32"
    ):
        check_engine_config(engine_config(bound=(16, 0)), "0.32.0")


@pytest.mark.parametrize("version", ["0.31.9", "0.33.0", "1.0.0", "0.320.0"])
def test_another_minor_version_of_vllm_is_refused(version):
    assert not is_supported(version)
    with pytest.raises(ConfigError, match=re.escape(f"vllm=={version} is not bounded")):
        check_engine_config(engine_config(), version)
