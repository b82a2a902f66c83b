import re

import pytest

from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.vllm_plugin.config import additional_config_for, retention_from


@pytest.mark.parametrize("additional_config", [{}, {"other": {"window_tokens": 8}}, None, object()])
def test_without_the_key_there_is_no_bound(additional_config):
    assert retention_from(additional_config) is None


@pytest.mark.parametrize(
    "retention",
    [Retention(window_tokens=64), Retention(window_tokens=64, sink_tokens=4)],
    ids=lambda retention: retention.kind.name,
)
def test_a_retention_survives_the_way_through_the_engine_arguments(retention):
    assert retention_from(additional_config_for(retention)) == retention


def test_an_unbounded_retention_adds_nothing():
    assert additional_config_for(Retention()) == {}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([64, 4], "metronome=[64, 4] must be a mapping"),
        ({"window": 64}, "additional_config.metronome.window is unknown: use window_tokens"),
        ({"sink_tokens": 4}, "additional_config.metronome.window_tokens is missing"),
        ({"window_tokens": "64"}, "window_tokens='64' must be a whole number"),
        ({"window_tokens": True}, "window_tokens=True must be a whole number"),
        ({"window_tokens": None}, "window_tokens=None must be a whole number"),
        ({"window_tokens": 0}, "retention.window_tokens=0 must be at least 1"),
    ],
)
def test_a_malformed_entry_is_refused_by_name(entry, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        retention_from({"metronome": entry})
