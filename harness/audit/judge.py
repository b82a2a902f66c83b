"""What became of a published run, from its facts alone: the paper's verdict beside a stricter one.

The logs are the clients': no pool, no scheduler, no token counts. A verdict here therefore says no
more than what a waiting client can tell, and a cause only where something published shows it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.audit.facts import wait_limit_ms
from harness.audit.names import Origin
from harness.config import DiagnosisConfig

# A run is cut if its last frame lies this many frame budgets before its end.
EARLY_END_FRAMES = 3
# Fewer sessions than this share ever answered: nobody was served.
NEVER_SERVED_SHARE = 0.05
# A run "on the idle level" all along: its median is at most this much above the level.
IDLE_MARGIN = 1.25
# Shorter, and the latency of a serving run has not grown above that level yet.
MIN_IDLE_RUN_S = 120.0
_THRESHOLDS = DiagnosisConfig()


class ClientVerdict(enum.Enum):
    """What a client's log can tell; names as in docs/verdicts.md where the notion is the same."""

    ended_early = "ended early"
    never_served = "never served"
    stalled = "stalled (client view)"
    quiet_at_boundary = "step-down at the max_model_len boundary"
    quiet = "quiet, cause unknown"
    partly_served = "partly served"
    overloaded = "overloaded (client view)"
    alive = "alive (client view)"

    @property
    def is_quiet(self) -> bool:
        """Whether the run stepped down to the level of an engine that does not work."""
        return self in (ClientVerdict.quiet, ClientVerdict.quiet_at_boundary)


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """A verdict with what it rests on."""

    verdict: ClientVerdict
    evidence: str


def paper_rule_walled(facts: pd.Series, origin: Origin) -> bool:
    """The paper's rule: the median late in the run sits on the worker's waiting limit.

    A run that logged nothing late has no median, so by that rule it is not walled.
    """
    limit_ms = wait_limit_ms(facts["frame_budget_s"])
    return bool(origin.has_wait_limit and facts["late_p50_ms"] >= limit_ms)


def idle_level_ms(facts: pd.DataFrame) -> float:
    """Latency a session of a tick in which the engine does not work, ms: runs after a step-down.

    facts: runs of one model. NaN if none stepped down.
    """
    return float((facts["after_step_ms"] / facts["num_sessions"]).median())


def judge(facts: pd.Series, origin: Origin, idle_ms: float) -> Opinion:
    """The first verdict that holds. idle_ms: `idle_level_ms` of the model."""
    budget_s, duration_s = facts["frame_budget_s"], facts["duration_s"]
    sessions, answered = int(facts["num_sessions"]), facts["first_answers"]
    if not facts["num_values"] or answered <= NEVER_SERVED_SHARE * sessions:
        return Opinion(
            verdict=ClientVerdict.never_served,
            evidence=f"{answered:.0f} of {sessions} sessions ever answered",
        )
    if facts["last_frame_s"] < duration_s - EARLY_END_FRAMES * budget_s:
        return Opinion(
            verdict=ClientVerdict.ended_early,
            evidence=f"the last frame is at {facts['last_frame_s']:.0f} of {duration_s:.0f} s",
        )
    limit_ms = wait_limit_ms(budget_s)
    if origin.has_wait_limit and pd.notna(facts["stall_onset_s"]):
        return Opinion(verdict=ClientVerdict.stalled, evidence=_stall(facts, limit_ms))
    if pd.notna(facts["step_down_s"]):
        return _quiet(facts, origin)
    idle_run_ms = idle_ms * sessions
    if duration_s >= MIN_IDLE_RUN_S and facts["p50_ms"] <= IDLE_MARGIN * idle_run_ms:
        return Opinion(
            verdict=ClientVerdict.quiet,
            evidence=(
                f"flat at {facts['p50_ms']:.1f} ms from the start: the level after other runs' "
                f"step-downs ({idle_run_ms:.1f} ms at N = {sessions})"
            ),
        )
    misses = facts["num_missed"] / facts["num_frames"] if facts["num_frames"] else 0.0
    is_late = origin.has_wait_limit and facts["late_p50_ms"] >= limit_ms
    if is_late or misses > _THRESHOLDS.miss_tolerance:
        return Opinion(
            verdict=ClientVerdict.overloaded,
            evidence=f"late median {facts['late_p50_ms']:.0f} ms, {misses:.1%} logged misses",
        )
    if answered < sessions:
        return Opinion(
            verdict=ClientVerdict.partly_served,
            evidence=f"{answered:.0f} of {sessions} sessions ever answered",
        )
    return Opinion(
        verdict=ClientVerdict.alive,
        evidence=f"no limit, no step-down; late median {facts['late_p50_ms']:.1f} ms",
    )


def _stall(facts: pd.Series, limit_ms: float) -> str:
    text = f"every tick from {facts['stall_onset_s']:.0f} s on waits {limit_ms:.0f} ms"
    if pd.notna(facts["step_down_s"]):
        lead_s = facts["stall_onset_s"] - facts["step_down_s"]
        text += (
            f"; {lead_s:.0f} s before, latency fell from {facts['before_step_ms']:.1f} to "
            f"{facts['after_step_ms']:.1f} ms: a backlog is drained"
        )
    return text


def _quiet(facts: pd.Series, origin: Origin) -> Opinion:
    at_s = facts["step_down_s"]
    text = (
        f"at {at_s:.0f} s latency falls from {facts['before_step_ms']:.1f} to "
        f"{facts['after_step_ms']:.1f} ms, to the end"
    )
    if origin.boundary_s and origin.boundary_s[0] <= at_s <= origin.boundary_s[1]:
        low, high = origin.boundary_s
        text += f"; a session reaches max_model_len between {low:.0f} and {high:.0f} s"
        return Opinion(verdict=ClientVerdict.quiet_at_boundary, evidence=text)
    return Opinion(verdict=ClientVerdict.quiet, evidence=text)


def judged(facts: pd.DataFrame, origins: dict[str, Origin]) -> pd.DataFrame:
    """The facts with each run's origin, the paper's rule and ours beside them; one row a run."""
    idle = {
        model: idle_level_ms(facts[facts["run"].map(lambda run: origins[run].model) == model])
        for model in {origin.model for origin in origins.values()}
    }
    rows: list[dict[str, Any]] = []
    for _, row in facts.iterrows():
        origin = origins[str(row["run"])]
        opinion = judge(row, origin, idle[origin.model])
        rows.append(
            {
                "series": origin.series,
                "model": origin.model,
                "variant": origin.variant,
                "window_tokens": origin.window_tokens,
                "batch": origin.batch,
                "repetition": origin.repetition,
                "paper_rule_walled": paper_rule_walled(row, origin),
                "verdict": opinion.verdict.name,
                "verdict_evidence": opinion.evidence,
                "evidence": "audited",
            }
        )
    table = pd.concat([facts.reset_index(drop=True), pd.DataFrame(rows)], axis=1)
    numbers = ["window_tokens", "batch", "repetition"]
    return table.assign(**{name: table[name].astype(np.float64) for name in numbers})
