"""The schema that Hydra checks against, and one composition of conf/."""

from __future__ import annotations

import copy
import dataclasses
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from harness.config import Invocation

CONFIG_DIR = Path(__file__).resolve().parents[2] / "conf"
CONFIG_NAME = "config"


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


def compose_config(overrides: Sequence[str]) -> DictConfig:
    """The configuration of a command line, before it is typed; as Hydra raises."""
    if GlobalHydra.instance().is_initialized():
        return hydra.compose(CONFIG_NAME, overrides=list(overrides))
    # Outside `hydra.main`, and in the worker processes of a launcher.
    register_schema()
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return hydra.compose(CONFIG_NAME, overrides=list(overrides))


def with_keys(config: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """A copy with some keys set; `overrides` as on the command line."""
    changed = copy.deepcopy(config)
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        OmegaConf.update(changed, override.key_or_group, override.value())
    return changed


def keys_of(node: DictConfig, prefix: str = "") -> list[str]:
    """Every key of a config by its dotted name, sections included."""
    names = []
    for key in map(str, node):
        names.append(f"{prefix}{key}")
        child = node._get_node(key)
        if isinstance(child, DictConfig):
            names += keys_of(child, f"{prefix}{key}.")
    return names
