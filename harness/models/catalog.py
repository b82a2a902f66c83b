"""What is known about a model; one entry each in conf/model/, with the source of every fact there.

The entry describes the real model. A tiny checkpoint (`scale=tiny`) keeps its architecture, tokens
a frame and audio path, and shrinks its layers: see harness/models/tiny.py.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.core.errors import ConfigError
from harness.kv.geometry import KVGeometry


class ModelKind(enum.Enum):
    """What an entry is for.

    voice: one of the real-time interaction models that this project is about.
    probe: a small text model with real weights, whose words mean something on any machine.
    """

    voice = "voice"
    probe = "probe"


# Not frozen, as the others are: OmegaConf cannot fill in an optional dataclass that is.
@dataclass(kw_only=True)
class PackagedFile:
    """Weights as one file of a package on the package index.

    package, version: the release, by the name that pip knows; filename, sha256: of its archive.
    member: path of the file in the archive; member_sha256: of that file.
    texts: manifest of what a probe is made to say, relative to audio_corpora/texts/.
    """

    package: str
    version: str
    filename: str
    sha256: str
    member: str
    member_sha256: str
    texts: str


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Where the real weights are, and how large.

    repo, revision: on the hub. licence: of the weights.
    num_parameters: of what the engine loads (the thinker, without a speech decoder).
    packaged: where a probe's weights come from instead of the hub.
    """

    repo: str
    revision: str
    licence: str
    num_parameters: float
    packaged: PackagedFile | None = None

    def size_bytes(self, bytes_per_parameter: int) -> float:
        """Memory that the loaded weights take."""
        return self.num_parameters * bytes_per_parameter


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A real-time interaction model, or a loop on a text model, as far as serving it is concerned.

    name: the entry's name, as in `model=name`.
    kind: one of the models that this project is about, or a probe.
    title: the name a reader knows.
    family: the front end that turns a frame of audio into a prompt; null if not served yet.
    sample_rate_hz: rate the model hears; null for a loop without audio, which is only simulated.
    frame_budget_s: B, period and deadline of a frame.
    audio_tokens_per_s, wrapper_tokens_per_frame: what a frame of audio becomes in the prompt.
    other_tokens_per_frame: what else a frame brings: an image, a tool's output, passages.
    output_tokens_per_frame: m, tokens decoded a frame.
    native_context_tokens: bound on context built into the model, if any.
    """

    name: str
    kind: ModelKind = ModelKind.voice
    title: str
    family: str | None
    sample_rate_hz: int | None
    frame_budget_s: float
    audio_tokens_per_s: float
    wrapper_tokens_per_frame: int
    output_tokens_per_frame: int
    native_context_tokens: int | None
    weights: Weights
    kv: KVGeometry
    other_tokens_per_frame: int = 0

    def __post_init__(self) -> None:
        if self.frame_budget_s <= 0:
            raise ConfigError(f"model.frame_budget_s={self.frame_budget_s} must be above 0")
        if self.sample_rate_hz is None and self.audio_tokens_per_s:
            raise ConfigError(
                f"model.audio_tokens_per_s={self.audio_tokens_per_s} needs model.sample_rate_hz: "
                "a loop without audio has other_tokens_per_frame"
            )
        if self.prompt_tokens_per_frame < 1:
            raise ConfigError(
                f"model={self.name} adds {self.prompt_tokens_per_frame} tokens a frame to its "
                "prompt, where vLLM needs at least 1: set audio_tokens_per_s or "
                "other_tokens_per_frame"
            )
        if self.output_tokens_per_frame < 1:
            raise ConfigError(
                f"model.output_tokens_per_frame={self.output_tokens_per_frame} must be at least 1: "
                "a frame without an output token can never be seen to be answered"
            )
        if (self.kind is ModelKind.probe) != (self.weights.packaged is not None):
            raise ConfigError(
                f"model.kind={self.kind.name} of model={self.name}: a probe, and nothing else, has "
                "model.weights.packaged"
            )

    @property
    def is_probe(self) -> bool:
        """Whether the entry is there to measure with, not one of the models that are measured."""
        return self.kind is ModelKind.probe

    @property
    def frame_samples(self) -> int:
        """Samples of one frame of audio. Raises: ConfigError for a loop without audio."""
        if self.sample_rate_hz is None:
            raise ConfigError(f"model={self.name} hears nothing: it is simulated, with engine=sim")
        return round(self.frame_budget_s * self.sample_rate_hz)

    @property
    def prompt_tokens_per_frame(self) -> int:
        """Tokens that one frame adds to the prompt."""
        audio = round(self.audio_tokens_per_s * self.frame_budget_s)
        return audio + self.wrapper_tokens_per_frame + self.other_tokens_per_frame

    @property
    def kv_tokens_per_frame(self) -> int:
        """KV positions that one frame adds to a session.

        The last sampled token of a frame is never computed: vLLM drops it when the next chunk
        extends the session. Example: 52 prompt tokens and 8 output tokens add 59.
        Source: vllm/v1/core/sched/scheduler.py `_update_request_as_session`, 0.32.
        """
        return self.prompt_tokens_per_frame + self.output_tokens_per_frame - 1
