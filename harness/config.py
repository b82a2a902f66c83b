"""The typed configuration: every public key, its unit, its default and its bounds.

Each section is a frozen dataclass that validates itself; `conf/` fills them in. A `RunConfig` is
one run, complete: two equal ones have one digest and share one results directory. Where results lie
and what they are called is in `Paths`, which no digest sees.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, fields
from pathlib import Path

from harness.core.digests import digest
from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.models.catalog import ModelSpec


class EngineKind(enum.Enum):
    """Which engine answers."""

    vllm = "vllm"
    echo = "echo"


class ScaleName(enum.Enum):
    """Tiny random weights of the true architecture, or the real weights."""

    tiny = "tiny"
    full = "full"


class ArrivalKind(enum.Enum):
    """How the sessions' first frames spread over one frame budget."""

    staggered = "staggered"
    synchronised = "synchronised"


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """The engine and its memory.

    kv_pool_blocks, block_size_tokens: size of the KV pool.
    max_model_len: longest session vLLM accepts, tokens; reaching it kills the engine core.
    max_num_seqs: sessions the scheduler holds at once, paused ones included.
    max_num_batched_tokens: tokens a step may compute.
    dtype: of weights and cache.
    prefix_caching: whether equal prefixes share blocks (off: shared audio would inflate capacity).
    warmup_frames: frames of a throw-away session before the clock starts.
    startup_timeout_s: an engine that is not up by then is given up.
    hang_timeout_s: an engine whose scheduler has work but takes no step for this long is dead.
    """

    kind: EngineKind = EngineKind.vllm
    kv_pool_blocks: int = 128
    block_size_tokens: int = 32
    max_model_len: int = 2048
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 256
    dtype: str = "bfloat16"
    prefix_caching: bool = False
    warmup_frames: int = 3
    startup_timeout_s: float = 120.0
    hang_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("kv_pool_blocks", "block_size_tokens", "max_model_len", "max_num_seqs"):
            if getattr(self, name) < 1:
                raise ConfigError(f"engine.{name}={getattr(self, name)} must be at least 1")


@dataclass(frozen=True, kw_only=True)
class WorkloadConfig:
    """What is offered, drawn up front from the seed.

    num_sessions: N, concurrent calls.
    duration_s: frames are released for this long.
    arrivals: phases of the sessions within one frame budget.
    corpora: manifests in audio_corpora/ that the streams are cut from.
    """

    num_sessions: int = 8
    duration_s: float = 40.0
    arrivals: ArrivalKind = ArrivalKind.staggered
    corpora: list[str] = field(default_factory=lambda: ["ami_excerpts", "librivox", "silero_vad"])

    def __post_init__(self) -> None:
        if self.num_sessions < 1:
            raise ConfigError(f"workload.num_sessions={self.num_sessions} must be at least 1")
        if self.duration_s <= 0:
            raise ConfigError(f"workload.duration_s={self.duration_s} must be above 0")
        if not self.corpora:
            raise ConfigError("workload.corpora is empty: name at least one of audio_corpora/")


@dataclass(frozen=True, kw_only=True)
class DiagnosisConfig:
    """Thresholds of the verdict; docs/verdicts.md says how each is used.

    silent_after_frames: empty frames in a row after which a session counts as silent.
    miss_tolerance: share of deadline misses that an alive run may have.
    max_release_lag_share: 99th percentile of release lag over B beyond which a run is invalid.
    tick_wait_share: share of B that the paper's gateway waits for a token.
    """

    silent_after_frames: int = 3
    miss_tolerance: float = 0.01
    max_release_lag_share: float = 0.05
    tick_wait_share: float = 0.8

    def __post_init__(self) -> None:
        if self.silent_after_frames < 1:
            raise ConfigError(
                f"diagnosis.silent_after_frames={self.silent_after_frames} must be at least 1"
            )
        for name in ("miss_tolerance", "max_release_lag_share", "tick_wait_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"diagnosis.{name}={getattr(self, name)} must lie in 0..1")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run, complete: what its results directory is named after."""

    experiment: str
    model: ModelSpec
    seed: int = 0
    scale: ScaleName = ScaleName.tiny
    engine: EngineConfig = field(default_factory=EngineConfig)
    retention: Retention = field(default_factory=Retention)
    workload: WorkloadConfig = field(default_factory=WorkloadConfig)
    diagnosis: DiagnosisConfig = field(default_factory=DiagnosisConfig)

    def __post_init__(self) -> None:
        if self.num_frames <= self.diagnosis.silent_after_frames:
            raise ConfigError(
                f"workload.duration_s={self.workload.duration_s} holds {self.num_frames} frames of "
                f"{self.model.frame_budget_s} s: silence is called after "
                f"{self.diagnosis.silent_after_frames}, so make the run longer"
            )

    @property
    def num_frames(self) -> int:
        """Frames that each session releases."""
        return int(self.workload.duration_s / self.model.frame_budget_s + 1e-9)

    @property
    def final_session_tokens(self) -> int:
        """KV positions of a session after its last frame, if nothing is evicted."""
        return self.num_frames * self.model.kv_tokens_per_frame

    @property
    def evidence(self) -> str:
        """Evidence class of every number this run yields; an echo is evidence of nothing."""
        return "none" if self.engine.kind is EngineKind.echo else f"live-{self.scale.name}"

    @property
    def digest(self) -> str:
        """Name of this run: equal configurations share it."""
        return digest(self)


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Where things lie: results, and the cache of corpora and checkpoints."""

    results_dir: str = "results"
    cache_dir: str = ".cache"

    @property
    def results(self) -> Path:
        """Directory of runs, tables and figures."""
        return Path(self.results_dir)

    @property
    def cache(self) -> Path:
        """Directory of downloaded and derived inputs."""
        return Path(self.cache_dir)


@dataclass(frozen=True, kw_only=True)
class Invocation(RunConfig):
    """What one command asks for: a run, or a grid of runs, and where their results go.

    artifact: name of the tables and the figure; the experiment's by default.
    grid: config group or key -> choices to run one after the other.
    rerun: run again even what is finished.
    """

    artifact: str
    grid: dict[str, list[str]] = field(default_factory=dict)
    rerun: bool = False
    paths: Paths = field(default_factory=Paths)

    @property
    def run_config(self) -> RunConfig:
        """The run itself, without where it goes."""
        return RunConfig(**{f.name: getattr(self, f.name) for f in fields(RunConfig)})
