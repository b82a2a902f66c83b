"""What rules ask of runs: the unbounded and bounded pair, alive, collapsed, flat."""

from __future__ import annotations

import pandas as pd

from harness.diagnosis.verdicts import Verdict

# "Flat": between the first and the last quarter of service the median moves by less than this
# share of B.
FLAT_DRIFT_SHARE_OF_BUDGET = 0.1

_NOT_A_RESULT = {Verdict.invalid.name, Verdict.never_served.name, Verdict.ended_early.name}


def pair_of(runs: pd.DataFrame) -> tuple[pd.Series, pd.Series] | str:
    """The unbounded and the bounded run of one offer, or why there is no such pair."""
    if why := spoiled(runs):
        return why
    is_unbounded = runs["retention_kind"] == "unbounded"
    if not is_unbounded.any() or is_unbounded.all():
        return "the table holds no unbounded and bounded pair"
    if runs["schedule_digest"].nunique() != 1:
        return "the two variants were not offered the same schedule"
    return runs[is_unbounded].iloc[0], runs[~is_unbounded].iloc[0]


def spoiled(runs: pd.DataFrame) -> str | None:
    """Why nothing may be claimed from these runs; None if all of them are results."""
    bad = runs[runs["verdict"].isin(_NOT_A_RESULT)]
    if bad.empty:
        return None
    first = bad.iloc[0]
    return f"the {first['variant']} run is {first['verdict']}: {first['cause']}"


def is_collapsed(run: pd.Series) -> bool:
    """Whether calls went silent for good."""
    return Verdict[run["verdict"]].is_collapse


def is_alive(run: pd.Series) -> bool:
    """Whether every token came, in time."""
    return bool(run["verdict"] == Verdict.alive.name and run["completeness"] == 1.0)


def is_flat(run: pd.Series, view: str) -> bool:
    """Whether a latency stays where it was, while the run serves.

    view: `answer` (release to last token) or `gateway` (what the paper's gateway would log).
    """
    drift_s = run[f"{view}_late_s"] - run[f"{view}_early_s"]
    return bool(abs(drift_s) <= FLAT_DRIFT_SHARE_OF_BUDGET * run["frame_budget_s"])


def seconds(instant_s: float | None) -> str:
    """An instant for people. Example: `153.4 s`, `never`."""
    return "never" if pd.isna(instant_s) else f"{instant_s:.1f} s"


def milliseconds(run: pd.Series, view: str) -> str:
    """Early and late median for people. Example: `612 to 1140 ms`."""
    return f"{run[f'{view}_early_s'] * 1e3:.0f} to {run[f'{view}_late_s'] * 1e3:.0f} ms"
