"""The typed configuration: every public key, its unit, its default and its bounds.

Each section is a frozen dataclass that validates itself; `conf/` fills them in. A `RunConfig` is
one run, complete: two equal ones have one digest and share one results directory. Where results lie
and what they are called is in `Paths`, which no digest sees.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from harness.core.digests import digest
from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.models.catalog import ModelSpec
from harness.models.hardware import HardwareSpec


class EngineKind(enum.Enum):
    """Which engine answers."""

    vllm = "vllm"
    sim = "sim"
    echo = "echo"
    reference = "reference"


class Regime(enum.Enum):
    """What is done with the sessions' frames.

    replay: released on time, whatever the engine does; when they are answered is measured.
    score: a probe's texts, each frame as soon as the one before is answered; how probable the
        engine holds every token is measured.
    free_running: a probe is asked questions, one a frame, and never stops speaking by itself.
    turns: the same, and the model ends its turns.
    """

    replay = "replay"
    score = "score"
    free_running = "free_running"
    turns = "turns"


class OnMaxModelLen(enum.Enum):
    """What to do about a session that would reach the engine's max_model_len."""

    refuse = "refuse"
    rotate = "rotate"
    end = "end"


class ScaleName(enum.Enum):
    """Tiny random weights of the true architecture, or the real weights."""

    tiny = "tiny"
    full = "full"


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


class AdmissionKind(enum.Enum):
    """Who decides which calls are let in; one file each in harness/admission/."""

    admit_all = "admit_all"
    fixed_cap = "fixed_cap"
    aimd = "aimd"
    forecast_aware = "forecast_aware"

    @property
    def uses_latency(self) -> bool:
        """Whether the controller is to be told of latencies."""
        return self in (AdmissionKind.aimd, AdmissionKind.forecast_aware)


class SignalKind(enum.Enum):
    """What latency a controller sees: the contract's (release to last token) or the gateway's."""

    contract = "contract"
    gateway = "gateway"


class AnswerKind(enum.Enum):
    """Lengths of the answers: all the model's mean, or geometric around it."""

    fixed = "fixed"
    geometric = "geometric"


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """The engine and its memory.

    kv_pool_blocks, block_size_tokens: size of the KV pool; null blocks: what the GPU's memory
    leaves. max_model_len: longest request vLLM accepts, tokens; null: sized from the run's horizon.
    on_max_model_len: a session that would reach it, where vLLM would kill the engine core, is
    refused
        before the run, rotated into a fresh request (its context is lost), or ended.
    max_num_seqs: sessions the scheduler holds at once, paused ones included.
    max_num_batched_tokens: tokens a step may compute.
    dtype, quantization: of weights and cache; null quantization: as the checkpoint says.
    enforce_eager: no CUDA graphs.
    gpu_memory_utilization: share of the GPU's memory for weights and KV pool; CUDA only.
    prefix_caching: whether equal prefixes share blocks (off: shared audio would inflate capacity).
    host_bound: keep the host work of a frame from growing with its session's age, whatever the
        retention (docs/bound.md).
    warmup_frames: frames of a throw-away session before the clock starts.
    startup_timeout_s: an engine that is not up by then is given up.
    hang_timeout_s: an engine whose scheduler has work but takes no step for this long is dead.
    async_scheduling: engine=sim: decide on a step while the one before runs; null: at scale=full,
        as vLLM does on CUDA, and not at scale=tiny, as on a CPU.
    scheduler_shortcuts: engine=sim: leave out work of vLLM's scheduler that decides nothing.
    record_steps: write what every step computed and how long it took, for experiment=calibrate.
    dry_run: print what would be loaded, the pool it would get and the forecast; run nothing.
    """

    kind: EngineKind = EngineKind.vllm
    kv_pool_blocks: int | None = 128
    block_size_tokens: int = 32
    max_model_len: int | None = None
    on_max_model_len: OnMaxModelLen = OnMaxModelLen.refuse
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 256
    dtype: str = "bfloat16"
    quantization: str | None = None
    enforce_eager: bool = True
    gpu_memory_utilization: float = 0.9
    prefix_caching: bool = False
    host_bound: bool = True
    warmup_frames: int = 3
    startup_timeout_s: float = 120.0
    hang_timeout_s: float = 10.0
    async_scheduling: bool | None = None
    scheduler_shortcuts: bool = True
    record_steps: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        for name in ("kv_pool_blocks", "block_size_tokens", "max_model_len", "max_num_seqs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"engine.{name}={value} must be at least 1")
        if not 0 < self.gpu_memory_utilization <= 1:
            raise ConfigError(
                f"engine.gpu_memory_utilization={self.gpu_memory_utilization} must lie in 0..1"
            )


@dataclass(frozen=True, kw_only=True)
class WorkloadConfig:
    """What is offered, drawn up front from the seed.

    regime: frames released on time, or a probe's texts scored.
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
    corpora: manifests in audio_corpora/ that the streams are cut from.
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


@dataclass(frozen=True, kw_only=True)
class AdmissionConfig:
    """Who is let in.

    kind: the controller. admit_all and fixed_cap look at no latency; forecast_aware is aimd that
        also refuses a call for which the KV pool would be full within expected_session_s.
    session_cap: of fixed_cap: sessions that may be in at once.
    signal: the latency that aimd sees: contract (release to last token; infinite once the deadline
        has passed) or gateway (the paper's wait for a buffered token, never above 0.8 B).
    percentile: of the latencies of an interval, 0..1.
    target_share_of_budget: an interval above this share of B is congested. The paper's 600 ms: 0.3.
    interval_frames: length of an interval, in frame budgets.
    increase_sessions: sessions that a clean interval adds to the cap.
    decrease_factor: what a congested interval multiplies the cap with, 0..1.
    cuts_from_live: cut from the sessions that are in, if they are fewer than the cap.
    floor_sessions, ceiling_sessions: bounds of the cap, which starts at the floor; null ceiling:
        engine.max_num_seqs.
    expected_session_s: of forecast_aware: how long a call lasts.
    """

    kind: AdmissionKind = AdmissionKind.admit_all
    session_cap: int | None = None
    signal: SignalKind = SignalKind.contract
    percentile: float = 0.95
    target_share_of_budget: float = 0.3
    interval_frames: float = 1.0
    increase_sessions: float = 16.0
    decrease_factor: float = 0.8
    cuts_from_live: bool = False
    floor_sessions: float = 8.0
    ceiling_sessions: float | None = None
    expected_session_s: float = 300.0

    def __post_init__(self) -> None:
        if self.kind is AdmissionKind.fixed_cap and (self.session_cap or 0) < 1:
            raise ConfigError(
                f"admission.session_cap={self.session_cap} must be at least 1 for "
                "admission.kind=fixed_cap"
            )
        for name in ("percentile", "decrease_factor"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(
                    f"admission.{name}={getattr(self, name)} must lie between 0 and 1"
                )
        for name in (
            "target_share_of_budget",
            "interval_frames",
            "increase_sessions",
            "expected_session_s",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"admission.{name}={getattr(self, name)} must be above 0")
        if self.floor_sessions < 1:
            raise ConfigError(
                f"admission.floor_sessions={self.floor_sessions} must be at least 1: with nobody "
                "in there is no latency to learn from"
            )
        ceiling = self.ceiling_sessions
        if ceiling is not None and ceiling < self.floor_sessions:
            raise ConfigError(
                f"admission.ceiling_sessions={ceiling} must be at least floor_sessions="
                f"{self.floor_sessions}"
            )


@dataclass(frozen=True, kw_only=True)
class DiagnosisConfig:
    """Thresholds of the verdict; docs/verdicts.md says how each is used.

    silent_after_frames: empty frames in a row after which a session counts as silent.
    miss_tolerance: share of deadline misses that an alive run may have.
    max_release_lag_share: 99th percentile of release lag over B beyond which a run is invalid.
    tick_wait_share: share of B that the paper's gateway waits for a token.
    forecast_until_occupancy: occupancy up to which the forecast of a full pool sees the trace;
        where it grows evenly, the share of the time that leads to a full pool.
    """

    silent_after_frames: int = 3
    miss_tolerance: float = 0.01
    max_release_lag_share: float = 0.05
    tick_wait_share: float = 0.8
    forecast_until_occupancy: float = 0.5

    def __post_init__(self) -> None:
        if self.silent_after_frames < 1:
            raise ConfigError(
                f"diagnosis.silent_after_frames={self.silent_after_frames} must be at least 1"
            )
        for name in (
            "miss_tolerance",
            "max_release_lag_share",
            "tick_wait_share",
            "forecast_until_occupancy",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"diagnosis.{name}={getattr(self, name)} must lie in 0..1")


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
        prompt = self.model.prompt_tokens_per_frame
        return self.num_frames * (prompt + self.longest_answer_tokens - 1)

    @property
    def longest_answer_tokens(self) -> int:
        """Output tokens that no frame exceeds."""
        mean, limit = self.model.output_tokens_per_frame, self.workload.answer_limit_tokens
        if self.workload.answers is AnswerKind.fixed:
            return mean
        return 4 * mean if limit is None else limit

    @property
    def max_model_len(self) -> int:
        """Longest request the engine is set up for: as configured, or the horizon in whole blocks.

        One token more is sampled than is computed. Example: 1180 tokens, block 32 -> 1184.
        """
        if self.engine.max_model_len is not None:
            return self.engine.max_model_len
        block = self.engine.block_size_tokens
        return -(-(self.final_session_tokens + 1) // block) * block

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


@dataclass(frozen=True, kw_only=True)
class CalibrationConfig:
    """What experiment=calibrate fits step times to.

    live: measure the engine of this machine. published: the tables in results/paper/step_times/.
    tables: results of `vllm bench serve` (.json), of the command's model, scale and hardware.
    leave_out: costs that are to be 0; null: a prompt token's for measured runs, where every frame
        brings as many of them, and none otherwise.
    """

    live: bool = True
    published: bool = True
    tables: list[str] = field(default_factory=list)
    leave_out: list[str] | None = None


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
class SearchConfig:
    """The search for the schedulable concurrency N*: most calls that meet their deadlines.

    A try is served if its deadline misses stay within diagnosis.miss_tolerance.

    horizon_s: how long the calls of one try last.
    repeats: independent searches, with seeds from 0 on; their range is the interval of N*.
    lowest, highest: numbers of calls between which N* is looked for.
    resolution: a search ends when the smallest N that failed is within this share of the largest
        that was served.
    """

    horizon_s: float = 90.0
    repeats: int = 3
    lowest: int = 16
    highest: int = 512
    resolution: float = 0.05

    def __post_init__(self) -> None:
        if not 1 <= self.lowest < self.highest:
            raise ConfigError(
                f"search.lowest={self.lowest} must be at least 1 and below search.highest="
                f"{self.highest}"
            )
        if not 0 < self.resolution < 1:
            raise ConfigError(f"search.resolution={self.resolution} must lie between 0 and 1")
        if self.repeats < 1:
            raise ConfigError(f"search.repeats={self.repeats} must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Invocation(RunConfig):
    """What one command asks for: a run, or a grid of runs, and where their results go.

    artifact: name of the tables and the figure; the experiment's by default.
    report: module of harness/experiments/ that tabulates and draws; the experiment's by default.
    bound: W and S that the bounded retentions take unless they are given their own.
    search: how experiments that look for N* look for it.
    grid: config group or key -> choices to run one after the other.
    num_parallel_runs: runs of the grid at a time; null: simulated ones as many as there are cores,
        others one by one, since they would slow each other down.
    order_seed: of a shuffle of the order in which the grid is run; null: as listed.
    more_grids: further grids, run after it.
    hardware_file: takes the place of `hardware`; an entry as experiment=calibrate writes it.
    rerun: run again even what is finished.
    """

    artifact: str
    report: str
    bound: Retention = field(default_factory=Retention)
    search: SearchConfig = field(default_factory=SearchConfig)
    grid: dict[str, list[str]] = field(default_factory=dict)
    num_parallel_runs: int | None = None
    order_seed: int | None = None
    more_grids: list[dict[str, list[str]]] = field(default_factory=list)
    hardware_file: str | None = None
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    rerun: bool = False
    paths: Paths = field(default_factory=Paths)

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = self.num_parallel_runs
        if asked is None:
            return
        if asked < 1:
            raise ConfigError(f"num_parallel_runs={asked} must be at least 1")
        if asked > 1 and self.engine.kind is EngineKind.vllm:
            raise ConfigError(
                f"num_parallel_runs={asked} must be 1 with engine=vllm: live runs at the same time "
                "would measure each other"
            )

    @property
    def run_config(self) -> RunConfig:
        """The run itself, without where it goes and without step times that it does not use."""
        values = {f.name: getattr(self, f.name) for f in fields(RunConfig)}
        simulated = self.model.name if self.engine.kind is EngineKind.sim else None
        return RunConfig(**{**values, "hardware": self.hardware.knowing_only(simulated)})

    def with_run(self, run: RunConfig) -> Invocation:
        """The same command for another run."""
        return replace(self, **{f.name: getattr(run, f.name) for f in fields(RunConfig)})
