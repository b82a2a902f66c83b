"""One run, complete: the sections, and what follows from them together."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field

from harness.config.admission import AdmissionConfig, AdmissionKind
from harness.config.diagnosis import DiagnosisConfig
from harness.config.engine import EngineConfig, EngineKind
from harness.config.workload import AnswerKind, WorkloadConfig
from harness.core.digests import digest
from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.models.catalog import ModelSpec
from harness.models.hardware import HardwareSpec


class ScaleName(enum.Enum):
    """Tiny random weights of the true architecture, or the real weights."""

    tiny = "tiny"
    full = "full"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run, complete: what its results directory is named after.

    seed: of everything that is drawn: streams, answers, the engine's own.
    repetition: tells runs of one and the same offer apart; nothing is drawn from it but the jitter
        of a simulated engine, if its step time has any.
    """

    experiment: str
    model: ModelSpec
    hardware: HardwareSpec
    seed: int = 0
    repetition: int = 0
    scale: ScaleName = ScaleName.tiny
    engine: EngineConfig = field(default_factory=EngineConfig)
    retention: Retention = field(default_factory=Retention)
    workload: WorkloadConfig = field(default_factory=WorkloadConfig)
    admission: AdmissionConfig = field(default_factory=AdmissionConfig)
    diagnosis: DiagnosisConfig = field(default_factory=DiagnosisConfig)

    def __post_init__(self) -> None:
        if self.num_frames <= self.diagnosis.silent_after_frames:
            raise ConfigError(
                f"workload.duration_s={self.workload.duration_s} holds {self.num_frames} frames of "
                f"{self.model.frame_budget_s} s: silence is called after "
                f"{self.diagnosis.silent_after_frames}, so make the run longer"
            )
        if self.retention.native:
            self._check_native_context()

    def _check_native_context(self) -> None:
        own, asked = self.model.native_context_tokens, self.retention.window_tokens
        if own is None:
            raise ConfigError(
                f"retention=native needs a model with a context of its own, and model="
                f"{self.model.name} has model.native_context_tokens=null: choose "
                "retention=sink_window or retention=window"
            )
        if asked != own:
            raise ConfigError(
                f"retention.window_tokens={asked} with retention=native must be "
                f"model.native_context_tokens={own}: leave it out, or choose retention=window"
            )

    @property
    def num_frames(self) -> int:
        """Frames that each session releases; in an open system, at most."""
        num_budgets = self.workload.duration_s / self.model.frame_budget_s
        if self.workload.arrivals.is_open:
            # Who arrives first releases one more frame in what is left of the last budget.
            return math.ceil(num_budgets - 1e-9)
        return int(num_budgets + 1e-9)

    @property
    def final_session_tokens(self) -> int:
        """KV positions of a session after its last frame, if nothing is evicted.

        With drawn answer lengths: if every one of them were the longest.
        """
        return self.num_frames * self.most_frame_tokens

    @property
    def most_frame_tokens(self) -> int:
        """KV positions that no frame exceeds."""
        return self.model.prompt_tokens_per_frame + self.longest_answer_tokens - 1

    @property
    def longest_request_tokens(self) -> int:
        """KV positions that no request exceeds, if nothing is evicted; recycled ones end at W."""
        window = self.retention.window_tokens
        if self.retention.is_recycled and window is not None:
            return min(window, self.final_session_tokens)
        return self.final_session_tokens

    @property
    def longest_answer_tokens(self) -> int:
        """Output tokens that no frame exceeds."""
        mean, limit = self.model.output_tokens_per_frame, self.workload.answer_limit_tokens
        if self.workload.answers is AnswerKind.fixed:
            return mean
        return 4 * mean if limit is None else limit

    @property
    def max_model_len(self) -> int:
        """Longest request the engine is set up for: as configured, or what the run needs in blocks.

        One token more is sampled than is computed. Example: 1180 tokens, block 32 -> 1184.
        """
        if self.engine.max_model_len is not None:
            return self.engine.max_model_len
        block = self.engine.block_size_tokens
        return -(-(self.longest_request_tokens + 1) // block) * block

    @property
    def most_admitted(self) -> int:
        """Sessions that are never exceeded, whatever is offered."""
        offered, chosen = self.workload.num_sessions, self.admission
        if chosen.kind is AdmissionKind.admit_all:
            return offered
        if chosen.kind is AdmissionKind.fixed_cap:
            return min(offered, chosen.session_cap or offered)
        return min(offered, int(chosen.ceiling_sessions or self.engine.max_num_seqs))

    @property
    def is_scheduled_async(self) -> bool:
        """Whether a simulated engine decides on a step while the one before runs."""
        chosen = self.engine.async_scheduling
        return self.scale is ScaleName.full if chosen is None else chosen

    @property
    def evidence(self) -> str:
        """Evidence class of every number this run yields; an echo is evidence of nothing."""
        if self.engine.kind is EngineKind.sim:
            return "simulated"
        if self.engine.kind is EngineKind.echo:
            return "none"
        if self.engine.kind is EngineKind.reference:
            return f"reference-{self.model.name}"
        return f"live-{self.model.name if self.model.is_probe else self.scale.name}"

    @property
    def digest(self) -> str:
        """Name of this run: equal configurations share it."""
        return digest(self)
