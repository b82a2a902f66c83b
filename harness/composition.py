"""From overrides to typed configurations: the schema, the composition, the grid, the wording of
errors.

This module and cli.py are the only ones that know Hydra.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.config import Invocation
from harness.core.errors import ConfigError, HarnessError

CONFIG_DIR = Path(__file__).resolve().parents[1] / "conf"
CONFIG_NAME = "config"
# What composing a configuration can raise; `as_harness_error` words any of them.
CONFIG_ERRORS = (HydraException, OmegaConfBaseException, dataclasses.FrozenInstanceError)


def register_schema() -> None:
    """Give Hydra the typed schema, so that a misspelt key or a wrong type is refused."""
    ConfigStore.instance().store(name="schema", node=schema_node(Invocation))


def schema_node(schema: Any) -> DictConfig:
    """A frozen dataclass as a config that Hydra can override, nested dataclasses included.

    OmegaConf makes frozen dataclasses read-only; the objects made from the config are frozen
    anyway.
    """
    node: DictConfig = OmegaConf.structured(schema)
    OmegaConf.set_readonly(node, None)
    for name, kind in typing.get_type_hints(schema).items():
        if dataclasses.is_dataclass(kind):
            node._set_item_impl(name, schema_node(kind))
    return node


def compose(overrides: Sequence[str]) -> Invocation:
    """One typed, validated configuration. Raises: ConfigError."""
    try:
        if GlobalHydra.instance().is_initialized():
            config = hydra.compose(CONFIG_NAME, overrides=list(overrides))
        else:
            # Outside `hydra.main`, and in the worker processes of a launcher.
            register_schema()
            with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
                config = hydra.compose(CONFIG_NAME, overrides=list(overrides))
        invocation = OmegaConf.to_object(config)
    except CONFIG_ERRORS as error:
        raise as_harness_error(error) from error
    assert isinstance(invocation, Invocation)
    return invocation


def expand(overrides: Sequence[str]) -> list[Invocation]:
    """The grid of an invocation as configurations; one that was named by the user is not varied."""
    base = compose(overrides)
    named = {override.lstrip("+~").split("=", 1)[0] for override in overrides}
    varied = {key: values for key, values in base.grid.items() if key not in named}
    points = itertools.product(*([f"{key}={v}" for v in values] for key, values in varied.items()))
    return [compose([*overrides, *point]) for point in points]


def as_harness_error(error: Exception) -> HarnessError:
    """The same error as one line that names what to change."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, HarnessError):
            return cause
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
        return ConfigError(f"{group}={choice} is unknown: choose {' or '.join(error.options)}")
    text = " ".join(dict.fromkeys(_first_line(e) for e in (error, error.__cause__) if e))
    return ConfigError(text + _suggestion(text))


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _suggestion(text: str) -> str:
    """A known key that looks like the one that Hydra or a dataclass did not know."""
    quoted = text.split("'")
    if len(quoted) < 2 or not text.startswith(("Could not override", "cannot assign to field")):
        return ""
    known = _keys(schema_node(Invocation))
    near = difflib.get_close_matches(quoted[1], known, n=1)
    return f": did you mean {near[0]}?" if near else ": see harness/config.py for every key"


def _keys(node: DictConfig, prefix: str = "") -> list[str]:
    names = []
    for key in map(str, node):
        names.append(f"{prefix}{key}")
        child = node._get_node(key)
        if isinstance(child, DictConfig):
            names += _keys(child, f"{prefix}{key}.")
    return names
