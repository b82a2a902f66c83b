"""What one command asks for: a run or a grid of runs, and where results go."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from harness.config.engine import EngineKind
from harness.config.run import RunConfig
from harness.core.errors import ConfigError
from harness.kv.retention import Retention


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
    grid: config group or key -> choices to run one after the other; what the command line names
        selects among its points and those of more_grids.
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
    grid: dict[str, list[Any]] = field(default_factory=dict)
    num_parallel_runs: int | None = None
    order_seed: int | None = None
    more_grids: list[dict[str, list[Any]]] = field(default_factory=list)
    hardware_file: str | None = None
    calibration: CalibrationConfig = field(default_factory=CalibrationConfig)
    rerun: bool = False
    paths: Paths = field(default_factory=Paths)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"[\w-]+", self.artifact):
            raise ConfigError(
                f"artifact={self.artifact} names files, so it must be letters, digits, _ and -"
            )
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
