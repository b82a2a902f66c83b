"""Rules for C1 (14 of 20 unbounded runs walled, 0 of 20 bounded) and for what that means."""

from __future__ import annotations

import dataclasses

import pandas as pd

from harness.analysis.paper_walls import ALL_WALLED
from harness.analysis.proportions import Proportion, collapse_share, wall_share
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

# A busy machine makes a live run late now and then; beyond this share the rest is no fair sample.
MAX_INVALID_SHARE = 0.15
_LOW, _HIGH = ALL_WALLED.interval
_AS_OFTEN = f"as often as the paper's 14/20 ({_LOW:.2f} to {_HIGH:.2f})"


def wall(tables: Tables) -> Judgement:
    """C1 at the paper's scale: its rule counts walls in its proportion, bounded runs never die."""
    num_runs = [len(kept) for kept in _by_retention(tables[""])]
    if min(num_runs) < ALL_WALLED.n:
        return not_measured(
            f"{num_runs[0]} unbounded and {num_runs[1]} bounded runs are in the table, not the "
            f"paper's {ALL_WALLED.n} of each"
        )
    runs, left_out = _valid(tables[""])
    if runs.empty:
        return not_measured(left_out)
    unbounded, bounded = _by_retention(runs)
    collapsed, walled = collapse_share(unbounded), wall_share(unbounded)
    survivors = collapse_share(bounded)
    judged = from_parts(
        {
            "unbounded runs collapse": collapsed.k > 0,
            f"the paper's rule walls them {_AS_OFTEN}": _is_the_papers(walled),
            "no bounded run collapses": survivors.k == 0,
        },
        ours=(
            f"unbounded {collapsed} collapsed, {walled} walled by the paper's rule; "
            f"bounded {survivors} collapsed{left_out}"
        ),
    )
    return dataclasses.replace(judged, interval=collapsed.interval)


def wall_live(tables: Tables) -> Judgement:
    """C1 on an engine near its own boundary: a mixed count unbounded, none bounded.

    How mixed is no result: the pool was chosen so that a run of middling verbosity just fits.
    """
    runs, left_out = _valid(tables[""])
    if runs.empty:
        return not_measured(left_out)
    unbounded, bounded = _by_retention(runs)
    collapsed = collapse_share(unbounded[unbounded["offer"] == "staggered"])
    survivors = collapse_share(bounded)
    judged = from_parts(
        {
            "near the boundary some unbounded runs collapse and others do not": (
                0 < collapsed.k < collapsed.n
            ),
            "no bounded run collapses": survivors.k == 0,
        },
        ours=f"unbounded {collapsed} collapsed, bounded {survivors}{left_out}",
    )
    return dataclasses.replace(judged, interval=collapsed.interval)


def mixture(tables: Tables) -> Judgement:
    """M1: at the paper's N, pool and growth, the spread of growth makes 14 of 20 overflow."""
    if "spread" not in tables:
        return not_measured("the table holds no unbounded run")
    unbounded, _ = _by_retention(_valid(tables[""])[0])
    counts = ", ".join(
        f"N = {size}: {collapse_share(runs)}" for size, runs in unbounded.groupby("num_sessions")
    )
    found = tables["spread"].set_index("runs").to_dict(orient="index")["all"]
    expected = Proportion(k=round(found["expected_k"]), n=int(found["paper_n"]))
    collapsed = collapse_share(unbounded)
    return from_parts(
        {
            "the counted tokens give the paper's share": _is_the_papers(expected),
            "some simulated runs collapse and others do not": 0 < collapsed.k < collapsed.n,
        },
        ours=(
            f"expected {found['expected_k']:.1f}/{expected.n} at a spread of {found['sigma']:.1%}; "
            f"14/20 would take {_percent(found['sigma_needed'])} (at least "
            f"{_percent(found['sigma_needed_low'])}); simulated {counts}"
        ),
    )


def mixture_live(tables: Tables) -> Judgement:
    """M1 on the tiny engine, staggered: other answers end differently, as counting says."""
    runs, left_out = _valid(tables[""])
    unbounded, _ = _by_retention(runs)
    staggered = unbounded[unbounded["offer"] == "staggered"]
    if staggered.empty:
        return not_measured(left_out or "there is no staggered run")
    over = staggered["load"] > 1
    collapsed = staggered["verdict"].map(lambda name: Verdict[name].is_collapse).astype(bool)
    return from_parts(
        {
            "runs with other answers differ": 0 < collapsed.sum() < len(staggered),
            "counting tokens tells which collapse": bool((over == collapsed).all()),
        },
        ours=(
            f"{int(collapsed.sum())}/{len(collapsed)} collapse, counted before the run "
            f"{int((over == collapsed).sum())} right{left_out}"
        ),
    )


def race_live(tables: Tables) -> Judgement:
    """M2 on the tiny engine: one and the same offer, due at once, ends in different deaths."""
    runs, left_out = _valid(tables[""])
    unbounded, _ = _by_retention(runs)
    same = unbounded[unbounded["offer"] == "due at once"]
    if same.empty:
        return not_measured(left_out or "there is no run of calls that are due at once")
    ends = same["verdict"].value_counts()
    few, many = same["preemptions"].min(), same["preemptions"].max()
    return from_parts(
        {"runs of one offer differ in verdict": len(ends) > 1},
        ours=(
            ", ".join(f"{count} {name}" for name, count in ends.items())
            + f" of {len(same)} with the same offer, {few:.0f} to {many:.0f} preemptions{left_out}"
        ),
    )


def arrivals(tables: Tables) -> Judgement:
    """M2: which death follows a full pool is decided by how the calls arrive."""
    runs, left_out = _valid(tables[""])
    if runs.empty:
        return not_measured(left_out)
    at_once = runs[runs["offer"] == "due at once"]
    cached = runs[runs["offer"].str.endswith("prefix cache")]
    if at_once.empty or cached.empty:
        return not_measured("one of the factors is missing")
    stalls = Proportion(k=int((at_once["verdict"] == Verdict.stalled.name).sum()), n=len(at_once))
    walls, collapsed = wall_share(at_once), collapse_share(cached)
    return from_parts(
        {
            "calls that are due at once end in a stall of all": stalls.k > 0,
            "a prefix cache of distinct audio saves no run": collapsed.k == collapsed.n,
        },
        ours=(
            f"due at once: {stalls} stalled for all, {walls} walled by the paper's rule; "
            f"staggered with prefix cache: {collapsed} collapsed{left_out}"
        ),
    )


def _valid(runs: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The runs that prove something, and how many do not; none if those are too many."""
    is_invalid = runs["verdict"] == Verdict.invalid.name
    if is_invalid.mean() > MAX_INVALID_SHARE:
        return runs[:0], f"{is_invalid.sum()} of {len(runs)} runs are invalid"
    left_out = f" ({is_invalid.sum()} invalid left out)" if is_invalid.any() else ""
    return runs[~is_invalid], left_out


def _by_retention(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    is_unbounded = runs["retention_kind"] == "unbounded"
    return runs[is_unbounded], runs[~is_unbounded]


def _is_the_papers(share: Proportion) -> bool:
    return _LOW <= share.k / share.n <= _HIGH


def _percent(value: float) -> str:
    return "no spread at all" if pd.isna(value) else f"{value:.0%}"
