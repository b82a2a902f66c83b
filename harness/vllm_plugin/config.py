"""The plugin's only configuration: the key `metronome` of vLLM's `additional_config`.

Leans on vllm/config/vllm.py (0.32): `VllmConfig.additional_config` reaches every process, and is
part of the hash under which compiled graphs are cached.
"""

from __future__ import annotations

from typing import Any

from harness.core.errors import ConfigError
from harness.kv.retention import Retention

CONFIG_KEY = "metronome"
_FIELDS = ("window_tokens", "sink_tokens")


def retention_from(additional_config: Any) -> Retention | None:
    """Read the retention that an engine's `additional_config` asks for; None without the key.

    Raises: ConfigError if the entry has an unknown or missing key or an impossible value.
    """
    # vLLM also accepts an opaque object here, for platforms of their own: that one is not ours.
    if not isinstance(additional_config, dict) or CONFIG_KEY not in additional_config:
        return None
    entry = additional_config[CONFIG_KEY]
    name = f"additional_config.{CONFIG_KEY}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{name}={entry!r} must be a mapping with the keys {', '.join(_FIELDS)}")
    unknown = sorted(str(key) for key in entry if key not in _FIELDS)
    if unknown:
        raise ConfigError(f"{name}.{unknown[0]} is unknown: use {' and '.join(_FIELDS)}")
    if "window_tokens" not in entry:
        raise ConfigError(f"{name}.window_tokens is missing: leave out {CONFIG_KEY} for no bound")
    for field, value in entry.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{name}.{field}={value!r} must be a whole number of tokens")
    return Retention(**entry)


def additional_config_for(retention: Retention) -> dict[str, dict[str, int]]:
    """Return what to merge into `additional_config` for `retention`; {} if it is not ours."""
    if retention.window_tokens is None or retention.native:
        return {}
    window, sinks = retention.window_tokens, retention.sink_tokens
    return {CONFIG_KEY: {"window_tokens": window, "sink_tokens": sinks}}
