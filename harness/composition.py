"""From overrides to typed configurations: the schema, the composition, the grid, the wording of
errors.

This module and cli.py are the only ones that know Hydra.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import itertools
import random
import re
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.config import Invocation
from harness.core.errors import ConfigError, HarnessError
from harness.models.hardware import read_hardware

CONFIG_DIR = Path(__file__).resolve().parents[1] / "conf"
CONFIG_NAME = "config"
# How Hydra, a dataclass and OmegaConf begin to say that they do not know a key.
_UNKNOWN_KEY = ("Could not override", "cannot assign to field", "Key '")
_UNREADABLE = "Error parsing override"
# How they name the grid, or one of its keys, as what was overridden.
_GRID_OVERRIDE = re.compile(r"(?:override '?|^Key ')grid\b(?:\.([\w.]+))?")
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
    with _worded_errors():
        return _typed(_composed(overrides))


def expand(overrides: Sequence[str]) -> list[Invocation]:
    """The grid of an invocation as configurations; what the user has named is not varied.

    Hydra takes a third of a second, so it composes once for each choice of config groups; keys are
    then set on copies, before interpolations are resolved.
    Raises: ConfigError.
    """
    with _worded_errors():
        base = _composed(overrides)
        named = {override.lstrip("+~").split("=", 1)[0] for override in overrides}
        composed: dict[tuple[str, ...], DictConfig] = {}
        points = []
        for assigned in _assignments([base.grid, *base.more_grids], named):
            groups = tuple(text for text in assigned if _is_group(text.partition("=")[0]))
            if groups not in composed:
                composed[groups] = _composed([*overrides, *groups])
            keys = [text for text in assigned if text not in groups]
            points.append(_typed(_with_keys(composed[groups], keys)))
    if base.order_seed is not None:
        random.Random(base.order_seed).shuffle(points)
    return points


def _assignments(grids: Sequence[DictConfig], named: set[str]) -> list[tuple[str, ...]]:
    """Every point of the grids as overrides; grids that differ only in what is named are one."""
    points: dict[tuple[str, ...], None] = {}
    for grid in grids:
        axes = ([f"{key!s}={choice}" for choice in grid[key]] for key in grid if key not in named)
        points |= dict.fromkeys(itertools.product(*axes))
    return list(points)


def _composed(overrides: Sequence[str]) -> DictConfig:
    if GlobalHydra.instance().is_initialized():
        return hydra.compose(CONFIG_NAME, overrides=list(overrides))
    # Outside `hydra.main`, and in the worker processes of a launcher.
    register_schema()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return hydra.compose(CONFIG_NAME, overrides=list(overrides))


def _is_group(key: str) -> bool:
    return (CONFIG_DIR / key).is_dir()


def _with_keys(config: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """A copy with some keys set; `overrides` as on the command line."""
    changed = copy.deepcopy(config)
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        OmegaConf.update(changed, override.key_or_group, override.value())
    return changed


def _typed(config: DictConfig) -> Invocation:
    invocation = OmegaConf.to_object(config)
    assert isinstance(invocation, Invocation)
    if invocation.hardware_file is not None:
        hardware = read_hardware(Path(invocation.hardware_file))
        return dataclasses.replace(invocation, hardware=hardware)
    return invocation


@contextmanager
def _worded_errors() -> Iterator[None]:
    """Whatever goes wrong with a configuration is one line that names what to change."""
    try:
        yield
    except CONFIG_ERRORS as error:
        raise as_harness_error(error) from error


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
    lines = list(dict.fromkeys(_first_line(e).rstrip(".") for e in (error, error.__cause__) if e))
    if grid := _GRID_OVERRIDE.search(" ".join(lines)):
        return ConfigError(_grid_wording(grid[1]))
    text = ": ".join(lines).removeprefix("Error merging override ")
    return ConfigError(text + _suggestion(text))


def _grid_wording(key: str | None) -> str:
    """How a swept key is varied, for who wanted to change the grid itself."""
    refused = f"grid.{key} cannot be set so" if key else "grid cannot be taken away or replaced"
    name = key or "KEY"
    return (
        f"{refused}: name the swept key itself, {name}=VALUE, and only that is run; "
        f"'grid={{{name}:[VALUE,VALUE]}}' varies it over others"
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _suggestion(text: str) -> str:
    """A known key that looks like the one that Hydra or a dataclass did not know."""
    if text.startswith(_UNREADABLE):
        return ": write key=value, in quotes where the value holds spaces or brackets"
    quoted = text.split("'")
    if len(quoted) < 2 or not text.startswith(_UNKNOWN_KEY):
        return ""
    known = _keys(schema_node(Invocation))
    if quoted[1] in known:
        return ": a key cannot be taken away with ~, only set to another value"
    near = difflib.get_close_matches(quoted[1], known, n=1)
    return f": did you mean {near[0]}?" if near else ": see harness/config/ for every key"


def _keys(node: DictConfig, prefix: str = "") -> list[str]:
    names = []
    for key in map(str, node):
        names.append(f"{prefix}{key}")
        child = node._get_node(key)
        if isinstance(child, DictConfig):
            names += _keys(child, f"{prefix}{key}.")
    return names
