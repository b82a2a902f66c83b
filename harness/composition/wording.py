"""Whatever goes wrong with a configuration, as one line that names what to change."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager

from hydra.errors import HydraException, MissingConfigException
from omegaconf.errors import OmegaConfBaseException

from harness.composition.hydra_config import keys_of, schema_node
from harness.config import Invocation
from harness.core.errors import ConfigError, HarnessError

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


@contextmanager
def worded_errors() -> Iterator[None]:
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
        return ConfigError(grid_wording(grid[1]))
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


def grid_wording(key: str | None) -> str:
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
    near = difflib.get_close_matches(key, keys_of(schema_node(Invocation)), n=1)
    return f"did you mean {near[0]}?" if near else "see harness/config/ for every key"
