"""The fixed shape of verdict.json: one run in numbers, null where a thing did not happen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from harness.capacity import plateau_occupancy
from harness.config import RunConfig
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import Diagnosis, Verdict, diagnose, pool_full_s
from harness.kv.forecast import fit_occupancy
from harness.workload.schedule import schedule_digest

# The part of a run, from its end, in which the paper's rule looks at the gateway's latency.
PAPER_RULE_TAIL = 0.25


def predicted_saturation_s(run: RunConfig, recording: Recording) -> float | None:
    """Forecast from the early trace; None if the plateaus fit the pool, or samples are too few.

    None in an open system, too: occupancy is a line only while the number of calls stands still.
    """
    pool = recording.pool
    if run.workload.arrivals.is_open:
        return None
    if pool.empty or plateau_occupancy(run, int(pool["total_blocks"].iloc[0])) <= 1.0:
        return None
    fit = fit_occupancy(
        pool["t_s"].to_numpy(dtype=float),
        pool["occupancy"].to_numpy(dtype=float),
        skip_s=run.model.frame_budget_s,
        until_occupancy=run.diagnosis.forecast_until_occupancy,
    )
    return fit.saturation_time_s if fit else None


def paper_rule_walled(run: RunConfig, recording: Recording) -> bool:
    """The paper's own rule: the gateway's median latency, late in the run, sits on its waiting
    limit.

    Source: PAPER 3, C1: a run is "walled" when p50 is at 0.8 B.
    """
    frames = recording.frames
    late = frames["release_s"] >= (1 - PAPER_RULE_TAIL) * run.workload.duration_s
    limit_s = run.diagnosis.tick_wait_share * run.model.frame_budget_s
    return bool(frames.loc[late, "tick_wait_s"].median() >= limit_s - 1e-9)


def summarise(run: RunConfig, recording: Recording) -> dict[str, Any]:
    """Contents of verdict.json for a run that released frames."""
    frames, pool = recording.frames, recording.pool
    answered = frames["latency_s"].dropna()
    budget_s = run.model.frame_budget_s
    preempted = recording.events_of("preempted")["t_s"]
    silent = frames.loc[frames["silent"], "release_s"]
    last_token = frames["last_token_s"].max()
    values = {
        "completeness": frames["tokens"].sum() / frames["expected_tokens"].sum(),
        "deadline_miss_share": frames["missed"].mean(),
        "tick_view_miss_share": (frames["tick_wait_s"] > budget_s).mean(),
        "empty_frame_share": frames["empty"].mean(),
        "latency_p50_s": answered.quantile(0.5) if len(answered) else None,
        "latency_p99_s": answered.quantile(0.99) if len(answered) else None,
        "peak_occupancy": pool["occupancy"].max() if len(pool) else None,
        "pool_full_s": pool_full_s(run, recording),
        "first_preemption_s": preempted.min() if len(preempted) else None,
        "last_token_s": last_token,
        "silence_onset_s": silent.min() if len(silent) else None,
        "predicted_saturation_s": predicted_saturation_s(run, recording),
        "paper_rule_walled": paper_rule_walled(run, recording),
        "schedule_digest": schedule_digest(recording.schedule),
    }
    return head(run, diagnose(run, recording)) | {k: _json(v) for k, v in values.items()}


def scored(run: RunConfig, scores: pd.DataFrame) -> dict[str, Any]:
    """Contents of verdict.json for a run whose texts were scored: nothing in it has a deadline.

    scores: as in telemetry's SCORES.
    """
    expected = run.workload.num_sessions * (run.num_frames * run.model.prompt_tokens_per_frame - 1)
    cause = f"{len(scores)} of {expected} tokens scored"
    verdict = Verdict.alive if len(scores) == expected else Verdict.ended_early
    unmeasured = unserved(run, Diagnosis(verdict=verdict, cause=cause))
    return unmeasured | {"completeness": len(scores) / expected}


def answered(run: RunConfig, answers: pd.DataFrame) -> dict[str, Any]:
    """Contents of verdict.json for a run of conversations: turns wait, so none has a deadline.

    answers: as in telemetry's ANSWERS.
    """
    expected = run.workload.num_sessions * run.num_frames
    cause = f"{len(answers)} of {expected} turns were answered with words, right or wrong"
    verdict = Verdict.alive if len(answers) == expected else Verdict.ended_early
    unmeasured = unserved(run, Diagnosis(verdict=verdict, cause=cause))
    return unmeasured | {"completeness": len(answers) / expected}


def unserved(run: RunConfig, diagnosis: Diagnosis) -> dict[str, Any]:
    """Contents of verdict.json for a run that never released a frame: all measurements null."""
    measured = (
        "completeness",
        "deadline_miss_share",
        "tick_view_miss_share",
        "empty_frame_share",
        "latency_p50_s",
        "latency_p99_s",
        "peak_occupancy",
        "pool_full_s",
        "first_preemption_s",
        "last_token_s",
        "silence_onset_s",
        "predicted_saturation_s",
        "paper_rule_walled",
        "schedule_digest",
    )
    return head(run, diagnosis) | dict.fromkeys(measured)


def head(run: RunConfig, diagnosis: Diagnosis) -> dict[str, Any]:
    """What was run and what became of it."""
    return {
        "experiment": run.experiment,
        "model": run.model.name,
        "engine": run.engine.kind.name,
        "evidence": run.evidence,
        "retention": {
            "kind": run.retention.kind.name,
            "window_tokens": run.retention.window_tokens,
            "sink_tokens": run.retention.sink_tokens,
        },
        "num_sessions": run.workload.num_sessions,
        "frame_budget_s": run.model.frame_budget_s,
        "duration_s": run.workload.duration_s,
        "seed": run.seed,
        "run_digest": run.digest,
        "verdict": diagnosis.verdict.name,
        "cause": diagnosis.cause,
    }


def _json(value: Any) -> Any:
    """A NumPy or pandas scalar as a plain one; NaN as null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value
