"""What a controller achieved in one run: whom it let in, when it settled, who was harmed.

Shares and percentiles are over frames of calls that were let in. A frame that was never answered
counts as infinitely late, so a percentile may be infinite; it is then null here, and the share of
misses says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.runs import variant
from harness.config import AdmissionKind, RunConfig, SignalKind
from harness.diagnosis.recording import Recording

Observed = tuple[RunConfig, dict[str, Any], Recording]

# Settled: as many sessions are in as at the ramp's end, within this share.
SETTLED_WITHIN = 0.05
KEYS = ("controller", "variant", "retention_kind", "seed", "run_digest")


def controller_label(run: RunConfig) -> str:
    """The controller in words. Example: `AIMD on the gateway's wait`."""
    chosen = run.admission
    names = {
        AdmissionKind.admit_all: "everybody admitted",
        AdmissionKind.fixed_cap: f"fixed cap {chosen.session_cap}",
        AdmissionKind.aimd: "AIMD",
        AdmissionKind.forecast_aware: "forecast-aware",
    }
    seen = " on the gateway's wait" if chosen.signal is SignalKind.gateway else ""
    return names[chosen.kind] + seen


def identity(run: RunConfig, summary: dict[str, Any]) -> dict[str, Any]:
    """What tells a run from the others of its artifact."""
    return {
        "controller": controller_label(run),
        "variant": variant(summary),
        "retention_kind": run.retention.kind.name,
        "seed": run.seed,
        "run_digest": summary["run_digest"],
    }


def admission_outcomes(observed: Sequence[Observed]) -> pd.DataFrame:
    """One row a run; see `outcome`."""
    return pd.DataFrame([outcome(*item) for item in observed])


def outcome(run: RunConfig, summary: dict[str, Any], recording: Recording) -> dict[str, Any]:
    """One run in numbers.

    settled_sessions: N*(controller), sessions that are in at the last arrival.
    converged_s: first arrival after which the sessions that are in stay within 5 % of that.
    harmed_before, missed_after: sessions with a missed frame released before convergence; share of
    frames missed after it. steady_*: latency of frames released in the second half of the run.
    """
    decisions, frames = recording.decisions, recording.frames
    live_after = decisions["live_sessions"] + decisions["admitted"]
    settled = int(live_after.iloc[-1])
    off = np.flatnonzero((live_after - settled).abs() > SETTLED_WITHIN * settled)
    first_settled = int(off[-1]) + 1 if len(off) else 0
    converged_s = float(decisions["t_s"].iloc[min(first_settled, len(decisions) - 1)])
    before = frames[frames["release_s"] < converged_s]
    after = frames[frames["release_s"] >= converged_s]
    steady = frames[frames["release_s"] >= run.workload.duration_s / 2]
    workload, budget_s = run.workload, run.model.frame_budget_s
    return {
        **identity(run, summary),
        "signal": run.admission.signal.name,
        "target_s": run.admission.target_share_of_budget * budget_s,
        "arrival_rate_per_s": workload.arrival_rate_per_s,
        "offered": len(decisions),
        "admitted": int(decisions["admitted"].sum()),
        "shed": int((~decisions["admitted"]).sum()),
        "ramp_end_s": float(decisions["t_s"].iloc[-1]),
        "settled_sessions": settled,
        "most_sessions": int(live_after.max()),
        "converged_s": converged_s,
        "harmed_before": int(before.loc[before["missed"], "session_id"].nunique()),
        "missed_after": float(after["missed"].mean()) if len(after) else None,
        "steady_p50_s": finite_quantile(steady["latency_s"], 0.5),
        "steady_p99_s": finite_quantile(steady["latency_s"], 0.99),
        "steady_wait_p99_s": finite_quantile(steady["tick_wait_s"], 0.99),
        "steady_missed": float(steady["missed"].mean()) if len(steady) else None,
    }


def finite_quantile(latency_s: pd.Series, q: float) -> float | None:
    """Nearest rank with missing values as the largest; None if it falls on one of them."""
    if latency_s.empty:
        return None
    value = float(latency_s.fillna(math.inf).quantile(q, interpolation="higher"))
    return value if math.isfinite(value) else None


def control_over_time(observed: Sequence[Observed]) -> pd.DataFrame:
    """Sessions that are in after every arrival and departure, and the cap after every interval.

    kind: `live` or `cap`; value: sessions.
    """
    tables = []
    for run, summary, recording in observed:
        live = live_over_time(recording).rename("value").rename_axis("t_s").reset_index()
        cap = recording.intervals[["t_s", "session_cap"]].rename(columns={"session_cap": "value"})
        both = pd.concat([live.assign(kind="live"), cap.assign(kind="cap")], ignore_index=True)
        tables.append(both.assign(**identity(run, summary)))
    return pd.concat(tables, ignore_index=True)


def live_over_time(recording: Recording) -> pd.Series:
    """Sessions that are in, by the instant at which their number changed."""
    admitted = recording.decisions.loc[recording.decisions["admitted"], "t_s"]
    left = recording.events_of("session_left")["t_s"]
    changes = pd.concat([pd.Series(1, index=admitted), pd.Series(-1, index=left)]).sort_index()
    return changes.groupby(level=0).sum().cumsum()


def latency_over_time(observed: Sequence[Observed]) -> pd.DataFrame:
    """One row a run and frame budget: percentiles of the frames released in it.

    p50_s, p95_s: of the contract's latency; null where that frame was never answered.
    wait_p95_s: of the gateway's. missed: share. live: sessions that were in at its start.
    """
    tables = []
    for run, summary, recording in observed:
        budget_s = run.model.frame_budget_s
        bins = (recording.frames["release_s"] // budget_s).astype(int)
        grouped = recording.frames.groupby(bins)
        table = pd.DataFrame(
            {
                "t_s": budget_s * np.array(sorted(bins.unique())),
                "p50_s": grouped["latency_s"].apply(finite_quantile, 0.5).to_numpy(),
                "p95_s": grouped["latency_s"].apply(finite_quantile, 0.95).to_numpy(),
                "wait_p95_s": grouped["tick_wait_s"].apply(finite_quantile, 0.95).to_numpy(),
                "missed": grouped["missed"].mean().to_numpy(),
            }
        ).astype(float)
        live = live_over_time(recording)
        places = np.searchsorted(live.index.to_numpy(), table["t_s"] + budget_s, side="left")
        table["live"] = np.append(0, live.to_numpy())[places]
        tables.append(table.assign(target_s=_target_s(run), **identity(run, summary)))
    return pd.concat(tables, ignore_index=True)


def _target_s(run: RunConfig) -> float:
    return run.admission.target_share_of_budget * run.model.frame_budget_s
