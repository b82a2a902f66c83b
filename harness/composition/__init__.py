"""From overrides to typed configurations; beside cli.py the only place that knows Hydra.

hydra_config  the typed schema, and one composition of conf/
overrides     words of a command line, and which are refused
grid          the points of a grid, and which of them the user selects
wording       errors as one line
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from harness.composition.grid import groups_and_keys, points_of, selected
from harness.composition.hydra_config import (
    CONFIG_DIR,
    CONFIG_NAME,
    compose_config,
    register_schema,
    schema_node,
    with_keys,
)
from harness.composition.overrides import check_overrides, is_group, key_of
from harness.composition.wording import CONFIG_ERRORS, as_harness_error, worded_errors
from harness.config import Invocation
from harness.models.hardware import read_hardware

__all__ = [
    "CONFIG_DIR",
    "CONFIG_ERRORS",
    "CONFIG_NAME",
    "as_harness_error",
    "check_overrides",
    "compose",
    "expand",
    "register_schema",
    "schema_node",
]


def compose(overrides: Sequence[str]) -> Invocation:
    """One typed, validated configuration. Raises: ConfigError."""
    check_overrides(overrides)
    with worded_errors():
        return _typed(compose_config(overrides))


def expand(overrides: Sequence[str]) -> list[Invocation]:
    """The grid of an invocation as configurations, of which what the user names selects.

    A swept key that is named leaves the points that have its value, whether they sweep it or it is
    their default; if none has it, it takes the place of what is swept. Groups select first.

    Hydra takes a third of a second, so it composes once for each choice of config groups; keys are
    then set on copies, before interpolations are resolved.
    Raises: ConfigError.
    """
    check_overrides(overrides)
    with worded_errors():
        base = compose_config(overrides)
        grids = [base.grid, *base.more_grids]
        swept = {str(key) for grid in grids for key in grid}
        choices = points_of(grids)
        named = [override for override in overrides if key_of(override) in swept]
        for override in sorted(named, key=lambda override: not is_group(key_of(override))):
            choices = selected(choices, override, overrides)
        composed: dict[tuple[str, ...], DictConfig] = {}
        points: list[Invocation] = []
        for point in choices:
            groups, keys = groups_and_keys(point)
            if groups not in composed:
                composed[groups] = compose_config([*overrides, *groups])
            typed = _typed(with_keys(composed[groups], keys))
            # Parts of a grid that differ only in what is named are one.
            if not named or typed not in points:
                points.append(typed)
    if base.order_seed is not None:
        random.Random(base.order_seed).shuffle(points)
    return points


def _typed(config: DictConfig) -> Invocation:
    invocation = OmegaConf.to_object(config)
    assert isinstance(invocation, Invocation)
    if invocation.hardware_file is not None:
        hardware = read_hardware(Path(invocation.hardware_file))
        return dataclasses.replace(invocation, hardware=hardware)
    return invocation
