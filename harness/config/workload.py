"""What is offered: how many calls, when, for how long, and how long their answers are."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from harness.core.errors import ConfigError


class Regime(enum.Enum):
    """What is done with the sessions' frames.

    replay: released on time, whatever the engine does; when they are answered is measured.
    score: texts, each frame as soon as the one before is answered; how probable the engine holds
        every token is measured.
    free_running: questions, one a frame, in words to a probe, aloud to a model that hears; it never
        stops speaking by itself.
    turns: the same, and the model ends its turns.
    """

    replay = "replay"
    score = "score"
    free_running = "free_running"
    turns = "turns"


class ArrivalKind(enum.Enum):
    """When sessions begin: all within one frame budget (a closed system), or one by one (open)."""

    staggered = "staggered"
    synchronised = "synchronised"
    constant = "constant"
    poisson = "poisson"

    @property
    def is_open(self) -> bool:
        """Whether sessions keep arriving during the run."""
        return self in (ArrivalKind.constant, ArrivalKind.poisson)


class SessionLengthKind(enum.Enum):
    """How long the calls of an open system last."""

    endless = "endless"
    exponential = "exponential"
    data = "data"


class AnswerKind(enum.Enum):
    """Lengths of the answers: all the model's mean, or geometric around it."""

    fixed = "fixed"
    geometric = "geometric"


@dataclass(frozen=True, kw_only=True)
class WorkloadConfig:
    """What is offered, drawn up front from the seed.

    regime: frames released on time, texts scored, or questions asked.
    num_sessions: N, concurrent calls; in an open system, calls that are offered; regime=score:
        texts.
    duration_s: frames are released for this long.
    arrivals: of the sessions' first frames. staggered, synchronised: all within the first frame
        budget, and they stay; constant, poisson: one by one, at arrival_rate_per_s.
    arrival_rate_per_s: calls a second; open systems only.
    session_lengths: endless (until the run ends), exponential with mean_session_s, or drawn with
        replacement from session_data_s; in whole frames, at least one; open systems only.
    mean_session_s, session_data_s: seconds.
    answers: distribution of output tokens a frame, with the model's mean.
    answer_spread: of geometric answers: standard deviation of the logarithm of a run's verbosity.
    answer_limit_tokens: longest geometric answer; null: four times the mean.
    corpora: manifests in audio_corpora/ that the streams are cut from, or whose clips ask.
    """

    regime: Regime = Regime.replay
    num_sessions: int = 8
    duration_s: float = 40.0
    arrivals: ArrivalKind = ArrivalKind.staggered
    arrival_rate_per_s: float | None = None
    session_lengths: SessionLengthKind = SessionLengthKind.endless
    mean_session_s: float | None = None
    session_data_s: list[float] = field(default_factory=list)
    answers: AnswerKind = AnswerKind.fixed
    answer_spread: float = 0.0
    answer_limit_tokens: int | None = None
    corpora: list[str] = field(default_factory=lambda: ["ami_excerpts", "librivox", "silero_vad"])

    def __post_init__(self) -> None:
        if self.num_sessions < 1:
            raise ConfigError(f"workload.num_sessions={self.num_sessions} must be at least 1")
        if self.duration_s <= 0:
            raise ConfigError(f"workload.duration_s={self.duration_s} must be above 0")
        if self.answer_spread < 0:
            raise ConfigError(f"workload.answer_spread={self.answer_spread} must be 0 or more")
        if not self.corpora:
            raise ConfigError("workload.corpora is empty: name at least one of audio_corpora/")
        self._check_open_system()

    def _check_open_system(self) -> None:
        kind, lengths = self.arrivals, self.session_lengths
        if kind.is_open and not (self.arrival_rate_per_s or 0) > 0:
            raise ConfigError(
                f"workload.arrival_rate_per_s={self.arrival_rate_per_s} must be above 0 for "
                f"workload.arrivals={kind.name}"
            )
        if not kind.is_open and self.arrival_rate_per_s is not None:
            raise ConfigError(
                f"workload.arrival_rate_per_s={self.arrival_rate_per_s} has no meaning for "
                f"workload.arrivals={kind.name}: choose constant or poisson, or set it to null"
            )
        if not kind.is_open and lengths is not SessionLengthKind.endless:
            raise ConfigError(
                f"workload.session_lengths={lengths.name} has no meaning for workload.arrivals="
                f"{kind.name}, whose calls stay: choose constant or poisson"
            )
        if lengths is SessionLengthKind.exponential and not (self.mean_session_s or 0) > 0:
            raise ConfigError(
                f"workload.mean_session_s={self.mean_session_s} must be above 0 for "
                "workload.session_lengths=exponential"
            )
        is_from_data = lengths is SessionLengthKind.data
        if is_from_data and not (self.session_data_s and min(self.session_data_s) > 0):
            raise ConfigError(
                "workload.session_data_s must hold lengths in seconds, all above 0, for "
                "workload.session_lengths=data"
            )
