"""From a frame of audio to the chunk that extends a session's prompt; one module a model family.

`ModelSpec.family` names the family. What reaches the model here is what reaches it in production.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from harness.core.errors import ConfigError
from harness.models.catalog import ModelSpec
from harness.models.front_ends.base import FrontEnd, SessionFrontEnd

__all__ = [
    "FrontEnd",
    "SessionFrontEnd",
    "check_is_served",
    "check_recycles",
    "load_front_end",
]

# Family -> module and class; loaded only when asked for, since some pull in torch.
_FAMILIES = {
    "qwen2_5_omni": "qwen2_5_omni:Qwen25OmniFrontEnd",
    "qwen3_omni": "qwen3_omni:Qwen3OmniFrontEnd",
    "minicpm_o": "minicpm_o:MiniCPMOFrontEnd",
    "moshi": "moshi:MoshiFrontEnd",
    "text": "text:TextFrontEnd",
}


def check_is_served(model: ModelSpec) -> None:
    """Refuse a model without a front end. Raises: ConfigError."""
    if model.family not in _FAMILIES:
        raise ConfigError(
            f"model.family={model.family} of model={model.name} has no front end: "
            f"choose {' or '.join(_FAMILIES)}, or add one (docs/add-a-model.md)"
        )


def check_recycles(model: ModelSpec) -> None:
    """Refuse to begin a new request with old frames where that is not known. Raises: ConfigError.

    Moshi hears itself: its streams and its codec's state would have to be taken over.
    """
    if model.family == "moshi":
        raise ConfigError(
            f"retention=recycle is not known for model={model.name} on a live engine: choose "
            "retention=sink_window or retention=native, or simulate it with engine=sim"
        )


def load_front_end(model: ModelSpec, checkpoint: Path) -> FrontEnd:
    """The model's front end. Raises: ConfigError if the model is catalogued but not served.

    checkpoint: directory or hub name of the weights that the engine runs.
    """
    check_is_served(model)
    module, _, name = _FAMILIES[str(model.family)].partition(":")
    front_end: FrontEnd = getattr(
        importlib.import_module(f"harness.models.front_ends.{module}"), name
    )(model, checkpoint)
    return front_end
