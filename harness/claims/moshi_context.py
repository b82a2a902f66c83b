"""Rules for F2, Moshi's own context: that it bounds a call, and how many calls fit with it."""

from __future__ import annotations

import pandas as pd

from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured
from harness.diagnosis.verdicts import Verdict

_VARIANTS = {"unbounded": "unbounded", "window": "native", "sink_window": "sink_window"}
# "Plateaus": growth over the last fifth, as a share of the pool.
PLATEAU_GROWTH = 0.02


def _runs(of_size: pd.DataFrame) -> dict[str, pd.Series]:
    """Variant -> its run."""
    return {_VARIANTS[run["retention_kind"]]: run for _, run in of_size.iterrows()}


def _missing(tables: Tables) -> str | None:
    runs = tables[""]
    if (runs["verdict"] == Verdict.invalid.name).any():
        return "a run is invalid"
    if set(runs["retention_kind"]) != set(_VARIANTS):
        return "the table lacks one of unbounded, native and sink_window"
    return None


def _collapsed(run: pd.Series) -> bool:
    return Verdict[run["verdict"]].is_collapse


def _alive(run: pd.Series) -> bool:
    return bool(run["verdict"] == Verdict.alive.name and run["completeness"] == 1.0)


def bounds(tables: Tables) -> Judgement:
    """F2: the model's own context bounds a call, at more cache than the window with sinks."""
    if why := _missing(tables):
        return not_measured(why)
    runs = _runs(tables[""])
    native, bounded = runs["native"], runs["sink_window"]
    pool = tables["pool"]
    of_native = pool[pool["run_digest"] == native["run_digest"]]
    tail = of_native[of_native["t_s"] >= 0.8 * native["duration_s"]]["occupancy"]
    # Medians, since a block is freed an instant before the next one is taken.
    half = len(tail) // 2
    grown = tail.iloc[half:].median() - tail.iloc[:half].median()
    return from_parts(
        {
            "without a bound the calls collapse": _collapsed(runs["unbounded"]),
            "with the model's own context they live": _alive(native),
            "on a plateau": bool(abs(grown) <= PLATEAU_GROWTH),
            "which is above that of the window with sinks, where they live too": bool(
                _alive(bounded) and native["peak_occupancy"] > bounded["peak_occupancy"]
            ),
        },
        ours=(
            f"N = {native['num_sessions']}: unbounded {runs['unbounded']['verdict']}; own context "
            f"of {native['retention_window_tokens']:.0f} tokens {native['verdict']} at "
            f"{native['peak_occupancy']:.2f} of the pool; W = "
            f"{bounded['retention_window_tokens']:.0f}, S = {bounded['retention_sink_tokens']:.0f} "
            f"{bounded['verdict']} at {bounded['peak_occupancy']:.2f}"
        ),
    )


def fits(tables: Tables) -> Judgement:
    """F2 at paper scale: its own context carries few calls, not the many that a window does."""
    if why := _missing(tables):
        return not_measured(why)
    runs = tables[""]
    sizes = {
        int(size): _runs(runs[runs["num_sessions"] == size])
        for size in runs["num_sessions"].unique()
    }
    few, many = sizes[min(sizes)], sizes[max(sizes)]
    native, bounded = many["native"], many["sink_window"]
    return from_parts(
        {
            f"its own context carries {min(sizes)} calls": not _collapsed(few["native"]),
            f"but not {max(sizes)}, which collapse as if unbounded": _collapsed(native)
            and _collapsed(many["unbounded"]),
            f"and which the window with sinks carries: {max(sizes)} calls alive": _alive(bounded),
        },
        ours=(
            f"a call holds {native['call_bytes'] / 1e9:.2f} GB with its own context, "
            f"{bounded['call_bytes'] / 1e9:.2f} GB with W = "
            f"{bounded['retention_window_tokens']:.0f}, S = "
            f"{bounded['retention_sink_tokens']:.0f}: {native['calls_that_fit']:.0f} against "
            f"{bounded['calls_that_fit']:.0f} fit the pool; at N = {max(sizes)} "
            f"{native['verdict']} against {bounded['verdict']}"
        ),
    )
