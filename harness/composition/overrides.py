"""Words of a command line: what they name, and which nobody can mean."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from harness.composition.hydra_config import CONFIG_DIR, CONFIG_NAME
from harness.composition.wording import grid_wording, worded_errors
from harness.config import Invocation
from harness.core.errors import ConfigError


def check_overrides(words: Sequence[str]) -> None:
    """Refuse what Hydra takes without a word and nobody can mean: a group or section away or empty.

    words: of a command line; flags, Hydra's own keys and values to sweep are let pass.
    Raises: ConfigError.
    """
    for word in words:
        key = key_of(word)
        if key.startswith(("-", "hydra")):
            continue
        if word.startswith("~") and not _is_optional(key):
            raise ConfigError(_deletion_wording(word))
        if "=" in word and (is_group(key) or _is_section(key)):
            override = parsed(word)
            value = None if override.is_sweep_override() else override.value()
            if override.is_sweep_override() or isinstance(value, str if is_group(key) else dict):
                continue
            if is_group(key):
                raise ConfigError(f"{word} is no choice: choose {' or '.join(options_of(key))}")
            first = next(iter(_section(key)))
            raise ConfigError(
                f"{word} cannot be: {key} is a section, so set a key of it, as in "
                f"{key}.{first}=VALUE"
            )


def _deletion_wording(word: str) -> str:
    key = key_of(word)
    if key.partition(".")[0] == "grid":
        return grid_wording(None)
    if is_group(key):
        return f"{word}: a group cannot be taken away, only chosen: {' or '.join(options_of(key))}"
    return f"{word}: a key cannot be taken away with ~, only set to another value"


def key_of(override: str) -> str:
    """What an override names. Example: `+seed=3` -> seed."""
    return override.lstrip("+~").partition("=")[0]


def parsed(override: str) -> Override:
    """As Hydra reads it. Raises: ConfigError if it cannot."""
    with worded_errors():
        return OverridesParser.create().parse_override(override)


def value_of(override: str) -> Any:
    """The value that an override sets, typed. Raises: ConfigError if it cannot be read."""
    return parsed(override).value()


def is_group(key: str) -> bool:
    """Whether a key chooses a file of conf/<key>/."""
    return (CONFIG_DIR / key).is_dir()


def _is_optional(group: str) -> bool:
    """Whether conf/config.yaml composes without it, too."""
    defaults = OmegaConf.load(CONFIG_DIR / f"{CONFIG_NAME}.yaml").defaults
    return any(f"optional {group}" in entry for entry in defaults if isinstance(entry, DictConfig))


def options_of(group: str) -> list[str]:
    """The choices of a group."""
    return sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))


def _is_section(key: str) -> bool:
    return _section(key) is not None


def _section(key: str) -> Any:
    """A section's keys; None if the key is none, or holds a value."""
    kind: Any = Invocation
    for name in key.split("."):
        kind = typing.get_type_hints(kind).get(name) if dataclasses.is_dataclass(kind) else None
    return kind.__dataclass_fields__ if dataclasses.is_dataclass(kind) else None
