"""The plugin's configuration: two keys of vLLM's `additional_config`.

    metronome             {"window_tokens": W, "sink_tokens": S}: the bound on a session's cache
    metronome_host_bound  true or false: the bound on its host work; by default with `metronome`

Leans on vllm/config/vllm.py (0.32): `VllmConfig.additional_config` reaches every process, and is
part of the hash under which compiled graphs are cached.
"""

from __future__ import annotations

from typing import Any

from harness.core.errors import ConfigError
from harness.kv.retention import Retention

CONFIG_KEY = "metronome"
HOST_KEY = "metronome_host_bound"
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


def bounds_host(additional_config: Any) -> bool:
    """Tell whether an engine's host work a session is to be bounded: by default with its cache.

    Raises: ConfigError if the entry is not a boolean.
    """
    if not isinstance(additional_config, dict):
        return False
    wanted = additional_config.get(HOST_KEY, CONFIG_KEY in additional_config)
    if not isinstance(wanted, bool):
        raise ConfigError(f"additional_config.{HOST_KEY}={wanted!r} must be True or False")
    return wanted


def additional_config_for(retention: Retention) -> dict[str, dict[str, int]]:
    """Return what to merge into `additional_config` for `retention`; {} if it is not ours."""
    if retention.window_tokens is None or retention.native or not retention.is_evicting:
        return {}
    window, sinks = retention.window_tokens, retention.sink_tokens
    return {CONFIG_KEY: {"window_tokens": window, "sink_tokens": sinks}}
