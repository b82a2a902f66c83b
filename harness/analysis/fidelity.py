"""A live run beside a simulated one of the same offer; samples of both, where live does not repeat.

docs/fidelity.md defines every number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.runs import variant
from harness.analysis.two_samples import LEAST_RUNS, holm, same_distribution
from harness.diagnosis.recording import Recording
from harness.diagnosis.verdicts import Verdict

Recorded = tuple[dict[str, Any], Recording]

# What is compared of runs that do not repeat, and its unit. `sessions` is the frames that each
# session got answered, in ascending order: who is preempted is chance, how many are is not.
QUANTITIES = {
    "sessions": "frames",
    "frames_answered": "frames",
    "num_preemptions": "preemptions",
    "pool_full_s": "s",
    "last_token_s": "s",
    "deadline_miss_share": "share",
}
# A test that rejects below this, corrected for their number, has told live and simulated apart.
SIGNIFICANCE = 0.05


def num_preemptions(recording: Recording) -> int:
    """How often the scheduler took a session's blocks."""
    return len(recording.events_of("preempted"))


def compare_pair(live: Recorded, simulated: Recorded) -> dict[str, Any]:
    """One row: what one offer became on both engines.

    frames_equal_share: frames that got as many tokens on both, of all. A frame that one engine
        answered in part is not equal.
    tokens_apart: tokens delivered, simulated less live, of those expected.
    sessions_apart: largest difference in answered frames of one session.
    """
    (summary, ours), (other_summary, theirs) = live, simulated
    frames = ours.frames.merge(
        theirs.frames, on=["session_id", "frame"], suffixes=("_live", "_simulated")
    )
    per_session = frames.groupby("session_id")[["last_token_s_live", "last_token_s_simulated"]]
    answered = per_session.count()
    apart = (answered["last_token_s_live"] - answered["last_token_s_simulated"]).abs()
    tokens_apart = (frames["tokens_simulated"] - frames["tokens_live"]).sum()
    row: dict[str, Any] = {
        "variant": variant(summary),
        "num_sessions": summary["num_sessions"],
        "seed": summary["seed"],
        "duration_s": summary["duration_s"],
        "frame_budget_s": summary["frame_budget_s"],
        "frames": len(frames),
        "frames_equal_share": (frames["tokens_live"] == frames["tokens_simulated"]).mean(),
        "tokens_apart": tokens_apart / frames["expected_tokens_live"].sum(),
        "sessions_apart": int(apart.max()),
        "run_live": summary["run_digest"],
        "run_simulated": other_summary["run_digest"],
    }
    shared = (
        "verdict",
        "completeness",
        "pool_full_s",
        "first_preemption_s",
        "last_token_s",
        "deadline_miss_share",
        "latency_p50_s",
        "latency_p99_s",
    )
    for side, values, recording in (
        ("live", summary, ours),
        ("simulated", other_summary, theirs),
    ):
        row |= {f"{name}_{side}": values[name] for name in shared}
        row[f"preemptions_{side}"] = num_preemptions(recording)
        row[f"ingest_p50_s_{side}"] = float(recording.frames["ingest_s"].median())
    return row


def sample_row(recorded: Recorded, *, role: str) -> dict[str, Any]:
    """One row: what is compared of a run that does not repeat.

    A thing that did not happen before the run was cut counts at the cut.
    """
    summary, recording = recorded
    answered = recording.frames.groupby("session_id")["last_token_s"].count()
    full_s = summary["pool_full_s"]
    return {
        "role": role,
        "run_digest": summary["run_digest"],
        "variant": variant(summary),
        "num_sessions": summary["num_sessions"],
        "duration_s": summary["duration_s"],
        "verdict": summary["verdict"],
        "is_collapse": Verdict[summary["verdict"]].is_collapse,
        "sessions": sorted(int(count) for count in answered),
        "frames_answered": int(answered.sum()),
        "num_preemptions": num_preemptions(recording),
        "pool_full_s": summary["duration_s"] if full_s is None else full_s,
        "last_token_s": summary["last_token_s"],
        "deadline_miss_share": summary["deadline_miss_share"],
    }


def compare_samples(samples: pd.DataFrame) -> pd.DataFrame:
    """One row a quantity: medians and quartiles of both samples, their distance, and p.

    samples: rows of `sample_row`, with roles live and simulated. p_corrected: by Holm, for all
    quantities together; NaN if a sample has too few runs for a test.
    """
    live, simulated = (samples[samples["role"] == role] for role in ("live", "simulated"))
    enough = min(len(live), len(simulated)) >= LEAST_RUNS
    rows = []
    for name, unit in QUANTITIES.items():
        ours, theirs = _values(live, name), _values(simulated, name)
        test = same_distribution(ours, theirs) if enough else None
        row: dict[str, Any] = {"quantity": name, "unit": unit}
        for side, values in (("live", ours), ("simulated", theirs)):
            quartiles = np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else [np.nan] * 3
            names = (f"{side}_q25", f"{side}_median", f"{side}_q75")
            row |= dict(zip(names, quartiles, strict=True)) | {f"num_{side}": len(values)}
        row |= {
            "distance": test.distance if test else np.nan,
            "p": test.p if test else np.nan,
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    table["p_corrected"] = holm(table["p"].tolist()) if enough else np.nan
    return table


def _values(samples: pd.DataFrame, name: str) -> Any:
    if samples.empty:
        return np.zeros((0, 1))
    return np.array(samples[name].tolist(), dtype=float).reshape(len(samples), -1)
