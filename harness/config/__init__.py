"""The typed configuration: every public key, its unit, its default and its bounds.

Each section is a frozen dataclass that validates itself; `conf/` fills them in. A `RunConfig` is
one run, complete: two equal ones have one digest and share one results directory. Where results lie
and what they are called is in `Paths`, which no digest sees.
"""

from harness.config.admission import AdmissionConfig, AdmissionKind, SignalKind
from harness.config.diagnosis import DiagnosisConfig
from harness.config.engine import EngineConfig, EngineKind, OnMaxModelLen
from harness.config.invocation import CalibrationConfig, Invocation, Paths, SearchConfig
from harness.config.run import RunConfig, ScaleName
from harness.config.workload import (
    AnswerKind,
    ArrivalKind,
    Regime,
    SessionLengthKind,
    WorkloadConfig,
)

__all__ = [
    "AdmissionConfig",
    "AdmissionKind",
    "AnswerKind",
    "ArrivalKind",
    "CalibrationConfig",
    "DiagnosisConfig",
    "EngineConfig",
    "EngineKind",
    "Invocation",
    "OnMaxModelLen",
    "Paths",
    "Regime",
    "RunConfig",
    "ScaleName",
    "SearchConfig",
    "SessionLengthKind",
    "SignalKind",
    "WorkloadConfig",
]
