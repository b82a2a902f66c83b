"""Rules for C5: AIMD settles at a number that can be served, and on unbounded KV over-admits.

One rule for each latency that the controller may be shown: the contract's, and the gateway's.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

PAPER_SESSIONS = 209
# The authors' ramps; they let 200, 175 and 209 in.
PAPER_OFFERED = (200, 384, 512)
# The authors' own three ramps gave 175, 200 and 209: within 20 % of each other.
SESSIONS_TOLERANCE = 0.2
# "Steady": the deadline-miss share of the second half of the run.
STEADY_MISSES = 0.01
# A signal that ranks loads this well can steer a controller.
TRUTHFUL_RHO = 0.8
# The controller that lets the whole ramp in, so that its runs show latency over all loads.
FULL_RAMP = "AIMD on the gateway's wait"
_SPOILED = {Verdict.invalid.name, Verdict.never_served.name, Verdict.ended_early.name}


def on_contract(tables: Tables) -> Judgement:
    """C5 with the latency of the contract, release to last token."""
    return _settles(tables, "contract")


def on_contract_live(tables: Tables) -> Judgement:
    """C5 on another engine and scale: all of it but the paper's number of sessions."""
    return _settles(tables, "contract", is_papers_scale=False)


def on_gateway(tables: Tables) -> Judgement:
    """C5 with what the paper's controller saw: the gateway's wait for a buffered token.

    Says also what the same controller had let in when as many had been offered as in the authors'
    shorter ramps: a ramp's beginning is a ramp.
    """
    judgement = _settles(tables, "gateway")
    pair = _pair(tables[""], "gateway")
    if isinstance(pair, str):
        return judgement
    so_far = ", ".join(
        f"{let_in_after(tables['control'], pair[0], offered)} of {offered}"
        for offered in PAPER_OFFERED
        if offered <= pair[0]["offered"]
    )
    return replace(judgement, ours=f"{judgement.ours}; on the way, let in: {so_far}")


def let_in_after(control: pd.DataFrame, run: pd.Series, offered: int) -> int:
    """Calls that were in after the first `offered` arrivals of a run with constant gaps."""
    live = control[(control["run_digest"] == run["run_digest"]) & (control["kind"] == "live")]
    instant_s = (offered - 0.5) / run["arrival_rate_per_s"]
    return int(live.loc[live["t_s"] <= instant_s, "value"].iloc[-1])


def protects_unbounded(tables: Tables) -> Judgement:
    """F5 (ours): a controller that looks at the pool's growth protects unbounded KV, too."""
    runs = tables[""]
    if "controller" not in runs:
        return not_measured("no run left a recording")
    chosen = runs[
        (runs["controller"] == "forecast-aware") & (runs["retention_kind"] == "unbounded")
    ]
    plain = runs[(runs["controller"] == "AIMD") & (runs["retention_kind"] == "unbounded")]
    if chosen.empty or plain.empty:
        return not_measured("the table holds no forecast-aware and plain AIMD run on unbounded KV")
    aware, alone = chosen.iloc[0], plain.iloc[0]
    return from_parts(
        {
            "AIMD alone collapses": Verdict[alone["verdict"]].is_collapse,
            "forecast-aware does not": not Verdict[aware["verdict"]].is_collapse,
            "and keeps misses within 1 %": aware["steady_missed"] <= STEADY_MISSES,
        },
        ours=(
            f"unbounded: AIMD lets {alone['settled_sessions']:.0f} in and ends {alone['verdict']}; "
            f"forecast-aware {aware['settled_sessions']:.0f}, {aware['verdict']}"
        ),
    )


def truthful(tables: Tables) -> Judgement:
    """A3: with the bound, the gateway's latency tells load, and warns before the first miss."""
    if "signals" not in tables:
        return not_measured("no run left a recording")
    signals = tables["signals"]
    ramp = signals[signals["controller"] == FULL_RAMP]
    rows = {
        (row["signal"], row["retention_kind"] != "unbounded"): row for _, row in ramp.iterrows()
    }
    wanted = [(signal, bounded) for signal in ("contract", "gateway") for bounded in (True, False)]
    if any(key not in rows or pd.isna(rows[key]["rho"]) for key in wanted):
        return not_measured("the table holds no ramp long enough for a rank correlation")
    gateway = rows["gateway", True]
    return from_parts(
        {
            f"bounded: the gateway's latency rises with load (rho at least {TRUTHFUL_RHO:g})": (
                gateway["rho"] >= TRUTHFUL_RHO
            ),
            "and passes its target before the first miss": bool(
                pd.notna(gateway["warning_s"]) and gateway["warning_s"] > 0
            ),
            "unbounded it tells less": rows["gateway", False]["rho"] < gateway["rho"],
        },
        ours="; ".join(
            f"{signal}, {'bounded' if bounded else 'unbounded'}: {_quality(rows[signal, bounded])}"
            for signal, bounded in wanted
        ),
    )


def _quality(row: pd.Series) -> str:
    if pd.isna(row["first_miss_s"]):
        warning = "no miss"
    elif pd.isna(row["warning_s"]):
        warning = "no warning"
    else:
        when = "before" if row["warning_s"] >= 0 else "after"
        warning = f"warns {abs(row['warning_s']):.0f} s {when} the first miss"
    return f"rho {row['rho']:+.2f}, {warning}"


def _settles(tables: Tables, signal: str, *, is_papers_scale: bool = True) -> Judgement:
    pair = _pair(tables[""], signal)
    if isinstance(pair, str):
        return not_measured(pair)
    bounded, unbounded = pair
    low, high = (PAPER_SESSIONS * (1 + sign * SESSIONS_TOLERANCE) for sign in (-1, 1))
    p99_s = bounded["steady_p99_s"]
    number = {
        f"it settles at {low:.0f} to {high:.0f} sessions": (
            low <= bounded["settled_sessions"] <= high
        )
    }
    parts = {
        "bounded: the surplus is shed": bounded["shed"] > 0,
        **(number if is_papers_scale else {}),
        "which the engine can serve (at most 1 % late afterwards)": (
            bounded["missed_after"] <= STEADY_MISSES
        ),
        "with a steady p99 under the deadline": bool(
            pd.notna(p99_s) and p99_s <= bounded["frame_budget_s"]
        ),
        "unbounded: the same controller ends at the wall": Verdict[
            unbounded["verdict"]
        ].is_collapse,
    }
    return from_parts(
        parts,
        ours=(
            f"{bounded['offered']:.0f} offered: bounded settles at "
            f"{bounded['settled_sessions']:.0f} in {bounded['converged_s']:.0f} s, "
            f"{bounded['missed_after']:.1%} late afterwards, steady p99 "
            + (f"{p99_s:.2f} s" if pd.notna(p99_s) else "never answered")
            + f"; unbounded lets {unbounded['settled_sessions']:.0f} in and ends "
            f"{unbounded['verdict']}"
        ),
    )


def _pair(runs: pd.DataFrame, signal: str) -> tuple[pd.Series, pd.Series] | str:
    """The bounded and the unbounded run of plain AIMD on one signal, or why there is none."""
    if "controller" not in runs:
        return "no run left a recording"
    chosen = runs[(runs["signal"] == signal) & runs["controller"].str.startswith("AIMD", na=False)]
    spoiled = chosen[chosen["verdict"].isin(_SPOILED)]
    if len(spoiled):
        first = spoiled.iloc[0]
        return f"the {first['variant']} run is {first['verdict']}: {first['cause']}"
    is_unbounded = chosen["retention_kind"] == "unbounded"
    if not is_unbounded.any() or is_unbounded.all():
        return f"the table holds no bounded and unbounded run of AIMD on the {signal}'s latency"
    if chosen["schedule_digest"].nunique() != 1:
        return "the two variants were not offered the same schedule"
    return chosen[~is_unbounded].iloc[0], chosen[is_unbounded].iloc[0]
