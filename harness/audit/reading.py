"""What the logs say beyond the paper, statement by statement, each checked against the facts."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.audit.names import origin

# "Down to 1-3 ms", "30 to 60 s before the wall", "at one product of N and t", as first read off.
_DRAINED_MS = (0.5, 3.0)
_LEAD_S = (30.0, 60.0)
_ONE_PRODUCT = 0.02


def readings(runs: pd.DataFrame, ramps: pd.DataFrame) -> pd.DataFrame:
    """One row a statement: what it says, what was found, whether it holds.

    runs: judged runs; ramps: admission ramps (harness/audit/tables.py).
    """
    matrix = runs[runs["series"] == "wall_matrix"]
    checks: tuple[Callable[[], tuple[str, str, bool]], ...] = (
        lambda: _one_number_a_tick(runs),
        lambda: _misses_cannot_fire(runs),
        lambda: _falls_before_the_wall(matrix),
        lambda: _one_product(matrix),
        lambda: _bounded_step_down(matrix, batch=2),
        lambda: _bounded_step_down(matrix, batch=1),
        lambda: _boundary_is_age_not_memory(matrix),
        lambda: _no_survivor(matrix),
        lambda: _ramps_disagree(ramps),
    )
    return pd.DataFrame([check() for check in checks], columns=["statement", "found", "holds"])


def _one_number_a_tick(runs: pd.DataFrame) -> tuple[str, str, bool]:
    long = runs[(runs["series"] == "wall_matrix") & runs["num_frames"].notna()]
    frames_a_value = (long["num_frames"] / long["num_values"] / long["num_sessions"]).median()
    return (
        "all sessions of a tick log one latency: N frames are one measurement",
        f"{long['num_frames'].sum():.0f} frames hold {long['num_values'].sum()} values; a value "
        f"covers {frames_a_value:.0%} of the sessions (median run)",
        bool(frames_a_value > 0.95),
    )


def _misses_cannot_fire(runs: pd.DataFrame) -> tuple[str, str, bool]:
    waits = runs["run"].map(lambda name: bool((known := origin(name)) and known.has_wait_limit))
    limited, free = runs[waits], runs[~waits]
    highest = (limited["max_ms"] / 1e3 / limited["frame_budget_s"]).max()
    return (
        "a worker that waits 0.8 B cannot log a miss, walled or not",
        f"{limited['num_missed'].sum()} misses in {len(limited)} runs of it, highest latency "
        f"{highest:.2f} B; {free['num_missed'].sum()} in {len(free)} runs of other workers",
        bool(limited["num_missed"].sum() == 0 and highest < 1),
    )


def _falls_before_the_wall(matrix: pd.DataFrame) -> tuple[str, str, bool]:
    walls = matrix[matrix["verdict"] == "stalled"]
    lead_s = (walls["stall_onset_s"] - walls["step_down_s"]).dropna()
    level_ms = walls["after_step_ms"]
    return (
        "latency improves to 1-3 ms 30 to 60 s before each wall",
        f"{len(lead_s)} of {len(walls)} walls: {lead_s.min():.0f} to {lead_s.max():.0f} s before, "
        f"to {level_ms.min():.1f} to {level_ms.max():.1f} ms",
        bool(
            len(walls)
            and len(lead_s) == len(walls)
            and lead_s.between(*_LEAD_S).all()
            and level_ms.between(*_DRAINED_MS).all()
        ),
    )


def _one_product(matrix: pd.DataFrame) -> tuple[str, str, bool]:
    walls = matrix[matrix["verdict"] == "stalled"]
    product = walls["num_sessions"] * walls["stall_onset_s"]
    onsets = ", ".join(
        f"N = {size}: {group.min():.0f} to {group.max():.0f} s"
        for size, group in walls.groupby("num_sessions")["stall_onset_s"]
    )
    spread = (product.max() - product.min()) / product.median()
    return (
        "every wall comes at one product N x t",
        f"{onsets}; {product.min():.0f} to {product.max():.0f} session-seconds",
        bool(spread <= _ONE_PRODUCT),
    )


def _bounded_step_down(matrix: pd.DataFrame, *, batch: int) -> tuple[str, str, bool]:
    runs = matrix[(matrix["variant"] == "bounded") & (matrix["batch"] == batch)]
    at_boundary = runs["verdict"] == "quiet_at_boundary"
    early = runs[runs["verdict"] == "quiet"]["step_down_s"].sort_values()
    times = runs[at_boundary]["step_down_s"]
    text = f"{at_boundary.sum()} of {len(runs)} between {times.min():.0f} and {times.max():.0f} s"
    if len(early):
        text += f"; {len(early)} at {', '.join(f'{at:.0f}' for at in early)} s"
    text += f"; {(runs['verdict'] == 'alive').sum()} not at all"
    return (
        f"bounded runs of batch {batch} go quiet at the max_model_len boundary",
        text,
        bool(len(runs) and at_boundary.all()),
    )


def _boundary_is_age_not_memory(matrix: pd.DataFrame) -> tuple[str, str, bool]:
    runs = matrix[(matrix["verdict"] == "quiet_at_boundary") & (matrix["batch"] == 2)]
    at_s = runs.groupby("num_sessions")["step_down_s"].median()
    if not {96, 128} <= set(at_s.index):
        return ("that step-down depends on the sessions' age, not on N", "not in the data", False)
    return (
        "that step-down depends on the sessions' age, not on N as memory would",
        f"median {at_s[96]:.0f} s at N = 96, {at_s[128]:.0f} s at N = 128 "
        f"(memory would give {at_s[128] * 128 / 96:.0f} s)",
        bool(abs(at_s[96] / at_s[128] - 1) < 0.05),
    )


def _no_survivor(matrix: pd.DataFrame) -> tuple[str, str, bool]:
    rest = matrix[(matrix["variant"] == "unbounded") & ~matrix["paper_rule_walled"]]
    text = "; ".join(f"{row['run']}: {row['verdict_evidence']}" for _, row in rest.iterrows())
    return (
        "no unbounded run survives: what did not wall went quiet, was cut or never served",
        text,
        bool(len(rest) and not (rest["verdict"] == "alive").any()),
    )


def _ramps_disagree(ramps: pd.DataFrame) -> tuple[str, str, bool]:
    if ramps.empty:
        return ("N* = 209 is one ramp of several", "no ramp in the data", False)
    admitted = ramps["admitted"].sort_values()
    return (
        "N* = 209 is one ramp; others give other numbers",
        f"admitted: {', '.join(map(str, admitted))}",
        bool((admitted == 209).sum() == 1 and admitted.nunique() > 1),
    )
