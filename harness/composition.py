"""From overrides to typed configurations: the schema, the composition, the grid, the wording of
errors.

This module and cli.py are the only ones that know Hydra.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import functools
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
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.config import Invocation
from harness.core.errors import ConfigError, HarnessError
from harness.models.hardware import read_hardware

CONFIG_DIR = Path(__file__).resolve().parents[1] / "conf"
CONFIG_NAME = "config"
# One point of a grid: swept key or config group -> its choice, as on the command line.
_Point = dict[str, str]
# How Hydra, a dataclass and OmegaConf begin to say that they do not know a key.
_UNKNOWN_KEY = ("Could not override", "cannot assign to field", "Key '")
_UNREADABLE = "Error parsing override"
# How Hydra says that a key was named as if it were new, or several values without a sweep.
_NOT_NEW = re.compile(r"An item is already at '([^']+)'|^Multiple values for (\S+)\.")
_SEVERAL = re.compile(r"^Ambiguous value for argument '([^']+)'")
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
        elif typing.get_origin(kind) is dict:
            # Its keys are checked when a point of the grid is composed.
            OmegaConf.set_struct(node[name], False)
    return node


def compose(overrides: Sequence[str]) -> Invocation:
    """One typed, validated configuration. Raises: ConfigError."""
    check_overrides(overrides)
    with _worded_errors():
        return _typed(_composed(overrides))


def expand(overrides: Sequence[str]) -> list[Invocation]:
    """The grid of an invocation as configurations, of which what the user names selects.

    A swept key that is named leaves the points that have its value, whether they sweep it or it is
    their default; if none has it, it takes the place of what is swept. Groups select first.

    Hydra takes a third of a second, so it composes once for each choice of config groups; keys are
    then set on copies, before interpolations are resolved.
    Raises: ConfigError.
    """
    check_overrides(overrides)
    with _worded_errors():
        base = _composed(overrides)
        grids = [base.grid, *base.more_grids]
        swept = {str(key) for grid in grids for key in grid}
        choices = _points(grids)
        named = [override for override in overrides if _key(override) in swept]
        for override in sorted(named, key=lambda override: not _is_group(_key(override))):
            choices = _selected(choices, override, overrides)
        composed: dict[tuple[str, ...], DictConfig] = {}
        points: list[Invocation] = []
        for point in choices:
            groups, keys = _groups_and_keys(point)
            if groups not in composed:
                composed[groups] = _composed([*overrides, *groups])
            typed = _typed(_with_keys(composed[groups], keys))
            # Parts of a grid that differ only in what is named are one.
            if not named or typed not in points:
                points.append(typed)
    if base.order_seed is not None:
        random.Random(base.order_seed).shuffle(points)
    return points


def check_overrides(words: Sequence[str]) -> None:
    """Refuse what Hydra takes without a word and nobody can mean: a group or section away or empty.

    words: of a command line; flags, Hydra's own keys and values to sweep are let pass.
    Raises: ConfigError.
    """
    for word in words:
        key = _key(word)
        if key.startswith(("-", "hydra")):
            continue
        if word.startswith("~") and not _is_optional(key):
            raise ConfigError(_deletion_wording(word))
        if "=" in word and (_is_group(key) or _is_section(key)):
            override = _parsed(word)
            value = None if override.is_sweep_override() else override.value()
            if override.is_sweep_override() or isinstance(value, str if _is_group(key) else dict):
                continue
            if _is_group(key):
                raise ConfigError(f"{word} is no choice: choose {' or '.join(_options(key))}")
            first = next(iter(_section(key)))
            raise ConfigError(
                f"{word} cannot be: {key} is a section, so set a key of it, as in "
                f"{key}.{first}=VALUE"
            )


def _deletion_wording(word: str) -> str:
    key = _key(word)
    if key.partition(".")[0] == "grid":
        return _grid_wording(None)
    if _is_group(key):
        return f"{word}: a group cannot be taken away, only chosen: {' or '.join(_options(key))}"
    return f"{word}: a key cannot be taken away with ~, only set to another value"


def _points(grids: Sequence[DictConfig]) -> list[_Point]:
    """Every point of the grids, in order."""
    return [
        {
            str(key): "null" if choice is None else str(choice)
            for key, choice in zip(grid, choices, strict=True)
        }
        for grid in grids
        for choices in itertools.product(*grid.values())
    ]


def _selected(points: list[_Point], override: str, overrides: Sequence[str]) -> list[_Point]:
    """The points that have what an override names, or all if none has; it is not varied in them."""
    key = _key(override)
    others = [other for other in overrides if other != override]
    composed = functools.cache(lambda groups: _composed([*others, *groups]))
    named = functools.cache(lambda: _composed(overrides))

    def has_it(point: _Point) -> bool:
        if key in point:
            return bool(_value(f"{key}={point[key]}") == _value(override))
        if _is_group(key):
            # It is the default if naming it changes nothing.
            return bool(composed(()) == named())
        groups, keys = _groups_and_keys(point)
        unnamed = _with_keys(composed(groups), keys)
        return bool(unnamed == _with_keys(unnamed, [override]))

    chosen = [point for point in points if has_it(point)] or points
    return [{name: choice for name, choice in point.items() if name != key} for point in chosen]


def _groups_and_keys(point: _Point) -> tuple[tuple[str, ...], list[str]]:
    """A point as overrides: the config groups, and the keys."""
    texts = [f"{key}={choice}" for key, choice in point.items()]
    groups = tuple(text for text in texts if _is_group(_key(text)))
    return groups, [text for text in texts if text not in groups]


def _composed(overrides: Sequence[str]) -> DictConfig:
    if GlobalHydra.instance().is_initialized():
        return hydra.compose(CONFIG_NAME, overrides=list(overrides))
    # Outside `hydra.main`, and in the worker processes of a launcher.
    register_schema()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return hydra.compose(CONFIG_NAME, overrides=list(overrides))


def _key(override: str) -> str:
    """What an override names. Example: `+seed=3` -> seed."""
    return override.lstrip("+~").partition("=")[0]


def _parsed(override: str) -> Override:
    """Raises: ConfigError if it cannot be read."""
    with _worded_errors():
        return OverridesParser.create().parse_override(override)


def _value(override: str) -> Any:
    return _parsed(override).value()


def _is_group(key: str) -> bool:
    return (CONFIG_DIR / key).is_dir()


def _is_optional(group: str) -> bool:
    """Whether conf/config.yaml composes without it, too."""
    defaults = OmegaConf.load(CONFIG_DIR / f"{CONFIG_NAME}.yaml").defaults
    return any(f"optional {group}" in entry for entry in defaults if isinstance(entry, DictConfig))


def _options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))


def _is_section(key: str) -> bool:
    return _section(key) is not None


def _section(key: str) -> Any:
    """A section's keys; None if the key is none, or holds a value."""
    kind: Any = Invocation
    for name in key.split("."):
        kind = typing.get_type_hints(kind).get(name) if dataclasses.is_dataclass(kind) else None
    return kind.__dataclass_fields__ if dataclasses.is_dataclass(kind) else None


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
    if known := _NOT_NEW.search(text):
        return ConfigError(f"{known[1] or known[2]} is named as if it were new: leave out the +")
    if several := _SEVERAL.search(text):
        return ConfigError(
            f"{several[1]} names several values: add -m, which runs one job for each"
        )
    quoted = text.split("'")
    if text.startswith(_UNKNOWN_KEY) and len(quoted) > 1:
        return ConfigError(f"{quoted[1]} is no key: {_suggestion(quoted[1])}")
    if text.startswith(_UNREADABLE):
        text += ": write key=value, in quotes where the value holds spaces or brackets"
    return ConfigError(text)


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


def _suggestion(key: str) -> str:
    """A known key that looks like the one that Hydra or a dataclass did not know."""
    near = difflib.get_close_matches(key, _keys(schema_node(Invocation)), n=1)
    return f"did you mean {near[0]}?" if near else "see harness/config/ for every key"


def _keys(node: DictConfig, prefix: str = "") -> list[str]:
    names = []
    for key in map(str, node):
        names.append(f"{prefix}{key}")
        child = node._get_node(key)
        if isinstance(child, DictConfig):
            names += _keys(child, f"{prefix}{key}.")
    return names
