"""The points of a grid, and what the user names of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from omegaconf import DictConfig

from harness.composition.hydra_config import compose_config, with_keys
from harness.composition.overrides import is_group, key_of, value_of

# One point of a grid: swept key or config group -> its choice, as on the command line.
Point = dict[str, str]


def points_of(grids: Sequence[DictConfig]) -> list[Point]:
    """Every point of the grids, in order."""
    return [
        {
            str(key): "null" if choice is None else str(choice)
            for key, choice in zip(grid, choices, strict=True)
        }
        for grid in grids
        for choices in itertools.product(*grid.values())
    ]


def selected(points: list[Point], override: str, overrides: Sequence[str]) -> list[Point]:
    """The points that have what an override names, or all if none has; it is not varied in them."""
    key = key_of(override)
    others = [other for other in overrides if other != override]
    composed = functools.cache(lambda groups: compose_config([*others, *groups]))
    named = functools.cache(lambda: compose_config(overrides))

    def has_it(point: Point) -> bool:
        if key in point:
            return bool(value_of(f"{key}={point[key]}") == value_of(override))
        if is_group(key):
            # It is the default if naming it changes nothing.
            return bool(composed(()) == named())
        groups, keys = groups_and_keys(point)
        unnamed = with_keys(composed(groups), keys)
        return bool(unnamed == with_keys(unnamed, [override]))

    chosen = [point for point in points if has_it(point)] or points
    return [{name: choice for name, choice in point.items() if name != key} for point in chosen]


def groups_and_keys(point: Point) -> tuple[tuple[str, ...], list[str]]:
    """A point as overrides: the config groups, and the keys."""
    texts = [f"{key}={choice}" for key, choice in point.items()]
    groups = tuple(text for text in texts if is_group(key_of(text)))
    return groups, [text for text in texts if text not in groups]
