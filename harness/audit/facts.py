"""From a published log to facts: numbers that anyone with the log computes the same way.

No verdict is given here. The facts of all runs, and their 15 s medians, are what this project ships
in results/paper/; judge.py decides from them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from harness.audit.published import Floats, PublishedRun
from harness.config import DiagnosisConfig
from harness.diagnosis.summary import PAPER_RULE_TAIL

MEDIAN_BIN_S = 15.0
# A tick slower than this share of B holds a prefill or the start-up; it says nothing of the level.
SLOW_SHARE_OF_BUDGET = 0.05
# A step-down falls by this factor and by this much, and leaves this much less than one line does.
MIN_STEP_RATIO = 1.5
MIN_STEP_MS = 1.0
MIN_STEP_GAIN = 0.1
MIN_SAMPLES = 15
_MIN_BEFORE, _MIN_AFTER, _LOCAL = 4, 5, 8

_LIMIT = DiagnosisConfig()


def wait_limit_ms(frame_budget_s: float) -> float:
    """What the authors' worker waits at most: 0.8 B, in milliseconds. Source: PAPER 3."""
    return _LIMIT.tick_wait_share * frame_budget_s * 1e3


def ticks(run: PublishedRun) -> tuple[Floats, Floats]:
    """Instants (s) and latencies (ms) of the batched steps: all sessions of a tick log one number.

    Example: 128 sessions, 150 ticks: 19,200 frames in the log, 150 values.
    """
    if not len(run.t_s) or run.sample_s is not None:
        return run.t_s, run.latency_ms
    # Frames of two ticks may lie interleaved in the log: one number within one B is one tick.
    order = np.lexsort((run.t_s, run.latency_ms))
    t_s, latency_ms = run.t_s[order], run.latency_ms[order]
    is_new = (np.diff(latency_ms) != 0) | (np.diff(t_s) > run.frame_budget_s)
    firsts = np.flatnonzero(np.append(True, is_new))
    in_time = firsts[np.argsort(t_s[firsts], kind="stable")]
    return t_s[in_time], latency_ms[in_time]


def stall_onset_s(t_s: Floats, latency_ms: Floats, frame_budget_s: float) -> float | None:
    """First tick from which every tick to the end sits on the worker's waiting limit."""
    below = np.flatnonzero(latency_ms < wait_limit_ms(frame_budget_s))
    first = int(below[-1]) + 1 if len(below) else 0
    if len(t_s) - first < _LIMIT.silent_after_frames:
        return None
    return float(t_s[first])


def step_down(t_s: Floats, latency_ms: Floats, frame_budget_s: float) -> dict[str, float] | None:
    """Where latency falls and stays down: `at_s`, and the median `before_ms` and `after_ms`.

    The logarithm of latency is a line that does not fall, then a constant to the end: the break
    that fits best in least squares. `before_ms` is of the last 8 ticks before it. Slow ticks, and
    with them those on the limit, are left out. None if the fall is small, or one line fits as well.
    """
    is_plain = latency_ms < SLOW_SHARE_OF_BUDGET * frame_budget_s * 1e3
    at, level = t_s[is_plain], latency_ms[is_plain]
    if len(level) < MIN_SAMPLES:
        return None
    logs = np.log(np.maximum(level, 1e-3))
    breaks = np.arange(_MIN_BEFORE, len(logs) - _MIN_AFTER + 1)
    left = [_rise_residual(at[:b], logs[:b]) + _constant_residual(logs[b:]) for b in breaks]
    best = int(breaks[np.argmin(left)])
    gain = 1 - min(left) / max(_line_residual(at, logs), 1e-12)
    before_ms = float(np.median(level[max(0, best - _LOCAL) : best]))
    after_ms = float(np.median(level[best:]))
    is_fall = before_ms - after_ms >= MIN_STEP_MS and before_ms >= MIN_STEP_RATIO * after_ms
    if gain < MIN_STEP_GAIN or not is_fall:
        return None
    return {"at_s": float(at[best]), "before_ms": before_ms, "after_ms": after_ms}


def _rise_residual(t_s: Floats, values: Floats) -> float:
    """Squares that a line which does not fall leaves."""
    return _constant_residual(values - max(0.0, _slope(t_s, values)) * t_s)


def _line_residual(t_s: Floats, values: Floats) -> float:
    return _constant_residual(values - _slope(t_s, values) * t_s)


def _slope(t_s: Floats, values: Floats) -> float:
    t_s = t_s - t_s.mean()
    return float((t_s * values).sum() / (t_s**2).sum())


def _constant_residual(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum())


def run_facts(run: PublishedRun) -> dict[str, Any]:
    """One row of results/paper/audit_runs.csv; null where a thing did not happen."""
    t_s, latency_ms = ticks(run)
    onset_s = stall_onset_s(t_s, latency_ms, run.frame_budget_s)
    step = step_down(t_s, latency_ms, run.frame_budget_s) or {}
    late = run.latency_ms[run.t_s >= (1 - PAPER_RULE_TAIL) * run.duration_s]
    slow = latency_ms >= SLOW_SHARE_OF_BUDGET * run.frame_budget_s * 1e3
    return {
        "run": run.name,
        "num_sessions": run.num_sessions,
        "frame_budget_s": run.frame_budget_s,
        "duration_s": run.duration_s,
        "sample_s": run.sample_s,
        "num_frames": len(run.t_s) if run.sample_s is None else None,
        "num_values": len(t_s),
        "num_slow": int(slow.sum()),
        "num_missed": run.num_missed,
        "first_answers": run.first_answers,
        "last_frame_s": _rounded(run.t_s.max() + (run.sample_s or 0)) if len(run.t_s) else None,
        "p50_ms": _quantile(run.latency_ms, 0.5),
        "p90_ms": _quantile(run.latency_ms, 0.9),
        "settled_p90_ms": _quantile(run.latency_ms[run.t_s >= MEDIAN_BIN_S], 0.9),
        "max_ms": _quantile(run.latency_ms, 1.0),
        "late_p50_ms": _quantile(late, 0.5),
        "stall_onset_s": _rounded(onset_s),
        "step_down_s": _rounded(step.get("at_s")),
        "before_step_ms": _rounded(step.get("before_ms")),
        "after_step_ms": _rounded(step.get("after_ms")),
    }


def facts_table(runs: Sequence[PublishedRun]) -> pd.DataFrame:
    """One row a run; what did not happen is NaN."""
    table = pd.DataFrame([run_facts(run) for run in runs])
    counts = ("num_sessions", "num_values", "num_slow", "num_missed")
    floats = [name for name in table.columns if name not in ("run", *counts)]
    return table.astype(dict.fromkeys(floats, float))


def run_medians(run: PublishedRun) -> pd.DataFrame:
    """Median latency over 15 s of a run, or as printed: columns run, t_s, width_s, median_ms."""
    width_s = run.sample_s or MEDIAN_BIN_S
    bins = np.floor(run.t_s / width_s) * width_s
    medians = pd.Series(run.latency_ms).groupby(bins).median()
    table = pd.DataFrame({"t_s": medians.index, "median_ms": medians.round(2).to_numpy()})
    # Frames that end after the horizon belong to its last bin, which the authors cut there too.
    table = table[table["t_s"] < run.duration_s]
    return table.assign(run=run.name, width_s=width_s)[["run", "t_s", "width_s", "median_ms"]]


def _quantile(values: Floats, share: float) -> float | None:
    return _rounded(float(np.quantile(values, share))) if len(values) else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 3)
