"""What is known about a GPU, and how long one engine step takes on it; one entry in conf/hardware/.

Only the simulator asks for step times. A live engine takes the time it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from harness.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Cost of one engine step of one model, in seconds: a sum over what the step computes.

    scale: tiny or full, the checkpoint that the numbers are for.
    base_s: the step itself. request_s: each request in it.
    prefill_step_s: once, if the step computes any prompt token: the audio encoder is launched and
        the CUDA graph is left.
    prefill_token_s: each prompt token. frame_s: each frame whose audio or image is encoded in the
        step.
    context_byte_s: each byte of KV cache that is read; what a bound saves.
    ingest_frame_s: each frame, one at a time, before the engine sees it: the front end's work.
    spread: standard deviation of the logarithm of a step's and a front end's real duration around
        these; 0: every one takes exactly as long.
    evidence: class of the numbers (paper, live-tiny, live-full), or `simulated` if derived.
    source: where each number comes from, and with what error.
    """

    scale: str
    evidence: str
    source: str
    base_s: float
    request_s: float = 0.0
    prefill_step_s: float = 0.0
    prefill_token_s: float = 0.0
    frame_s: float = 0.0
    context_byte_s: float = 0.0
    ingest_frame_s: float = 0.0
    spread: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if (item.name.endswith("_s") or item.name == "spread") and not value >= 0:
                raise ConfigError(f"{item.name}={value} must be 0 or more")
        if not self.base_s:
            raise ConfigError(f"base_s={self.base_s} must be above 0: every step takes time")


@dataclass(frozen=True, kw_only=True)
class HardwareSpec:
    """The GPU that a run is planned for or simulated on.

    name: the entry's name, as in `hardware=name`; title: the name a reader knows.
    memory_bytes: that the driver reports; null if there is no GPU.
    memory_bytes_per_s: bandwidth of that memory.
    step_times: model's name -> what a step costs, the fields of StepTime.
    """

    name: str
    title: str
    memory_bytes: int | None
    memory_bytes_per_s: float | None = None
    step_times: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for model_name in self.step_times:
            self.step_time(model_name)

    def step_time(self, model_name: str) -> StepTime | None:
        """What a step of a model costs here; None if nobody has said.

        Raises: ConfigError if the entry has an unknown or missing field or an impossible value.
        """
        entry = self.step_times.get(model_name)
        try:
            return None if entry is None else StepTime(**entry)
        except (TypeError, ConfigError) as error:
            reason = str(error).replace("StepTime.__init__()", "it")
            raise ConfigError(
                f"hardware.step_times.{model_name} of {self.name}: {reason}"
            ) from error

    def knowing_only(self, model_name: str | None) -> HardwareSpec:
        """The same GPU with the step time of one model, or of none.

        A run is named after its configuration: what it does not use must not rename it.
        """
        kept = {name: cost for name, cost in self.step_times.items() if name == model_name}
        return replace(self, step_times=kept)


def read_hardware(path: Path) -> HardwareSpec:
    """Read an entry from a file. Raises: ConfigError if it is no such entry."""
    try:
        return HardwareSpec(**yaml.safe_load(path.read_text()))
    except OSError as error:
        raise ConfigError(f"hardware file {path} cannot be read: {error.strerror}") from error
    except (TypeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"hardware file {path}: {error}: write it like those in conf/hardware/"
        ) from error
