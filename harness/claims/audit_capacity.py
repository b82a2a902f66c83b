"""Rules for what the published logs say of capacity: bursts, admission, windows, models."""

from __future__ import annotations

from harness.analysis.published import published_series, settled_medians
from harness.analysis.tables import Tables
from harness.claims.judgement import Judgement, from_parts, not_measured

PAPER_ADMITTED = 209
RAMP_TOLERANCE = 0.10
LIMIT_MS = 1600.0
# "2-8 ms" of C1b, with room for its last digit.
FLAT_MS = 8.5
# The paper's growth of a session, the faster end: what a window of W tokens needs to fill.
GROWTH_TOKENS_PER_S = 31.0
WINDOW_FLAT_P90_MS = 10.0
WINDOW_RISEN_P90_MS = 100.0


def burst(tables: Tables) -> Judgement:
    """C1b: 90 s bursts stay flat at N = 64, 96, 128, 160, unbounded and bounded."""
    sizes = {64, 96, 128, 160}
    runs = published_series(tables, "burst", model="qwen3_omni")
    bounded = published_series(tables, "window_size")
    if runs.empty:
        return not_measured("no published burst is in the table")
    level = settled_medians(tables, runs)
    return from_parts(
        {
            "unbounded is flat at N = 64, 96, 128, 160": bool(
                sizes <= set(runs["num_sessions"])
                and (runs["verdict"] == "alive").all()
                and level.max() <= FLAT_MS
            ),
            "bounded at the same N (published: "
            f"N = {', '.join(map(str, sorted(set(bounded['num_sessions'])))) or 'none'})": bool(
                sizes <= set(bounded["num_sessions"])
                and settled_medians(tables, bounded).max() <= FLAT_MS
            ),
        },
        ours=(
            f"unbounded 15 s medians {level.min():.1f} to {level.max():.1f} ms in "
            f"{len(runs)} runs of up to {runs['num_sessions'].max()} calls"
        ),
    )


def admission(tables: Tables) -> Judgement:
    """C5: N* = 209, surplus shed; unbounded over-admits; and whether other ramps find that N*."""
    ramps = tables["ramps"]
    if ramps.empty:
        return not_measured("no published ramp is in the table")
    bounded = ramps[ramps["variant"] == "bounded"]
    unbounded = ramps[ramps["variant"] == "unbounded"]
    if bounded.empty or unbounded.empty:
        return not_measured("the bounded or the unbounded ramp is not in the table")
    ours, theirs = bounded.iloc[0], unbounded.iloc[0]
    others = ramps[(ramps["variant"] == "unknown") & (ramps["rejected"] > 0)]
    return from_parts(
        {
            f"the bounded ramp settles at {PAPER_ADMITTED}": ours["admitted"] == PAPER_ADMITTED,
            "with the surplus shed and p99 far from the limit": bool(
                ours["rejected"] == ours["offered"] - ours["admitted"]
                and ours["rejected"] > 0
                and ours["p99_steady_ms"] < 0.1 * LIMIT_MS
            ),
            "unbounded over-admits and ends on the limit": bool(
                theirs["admitted"] > ours["admitted"] and theirs["p99_steady_ms"] >= LIMIT_MS
            ),
            f"other ramps that shed settle within {RAMP_TOLERANCE:.0%} of it": bool(
                len(others)
                and ((others["admitted"] / PAPER_ADMITTED - 1).abs() <= RAMP_TOLERANCE).all()
            ),
        },
        ours="; ".join(
            f"{row['offered']} offered at {row['rate_per_s']:g}/s ({row['variant']}): "
            f"{row['admitted']} admitted, p99 {row['p99_steady_ms']:.0f} ms"
            for _, row in ramps.iterrows()
        ),
    )


def window_size(tables: Tables) -> Judgement:
    """C9: W up to 2048 flat, 4096 rises; whether after start-up too, with the window in force."""
    runs = published_series(tables, "window_size").set_index("window_tokens").sort_index()
    p90, settled = runs["p90_ms"].astype(float), runs["settled_p90_ms"].astype(float)
    if not {512, 1024, 2048, 4096} <= set(runs.index):
        return not_measured("the published window sizes are not in the table")
    grown = GROWTH_TOKENS_PER_S * runs["duration_s"].max()
    return from_parts(
        {
            "p90 is flat at W = 512, 1024, 2048": bool(
                (p90.loc[[512, 1024, 2048]] <= WINDOW_FLAT_P90_MS).all()
            ),
            "and rises at W = 4096": bool((p90.loc[[4096]] >= WINDOW_RISEN_P90_MS).all()),
            "also without the first 15 s": bool((settled.loc[[4096]] >= WINDOW_RISEN_P90_MS).all()),
            f"each window was in force (a session holds at most {grown:.0f} tokens after "
            f"{runs['duration_s'].max():.0f} s)": bool((runs.index < grown).all()),
        },
        ours="; ".join(
            f"W = {window:.0f}: p90 {whole:.0f} ms, {late:.1f} ms after 15 s"
            for window, whole, late in zip(runs.index, p90, settled, strict=True)
        ),
    )


def four_models(tables: Tables) -> Judgement:
    """C10: fresh capacity of four models, and whether every session was served at it."""
    runs = published_series(tables, "burst")
    largest = {
        str(model): int(group.loc[group["verdict"] == "alive", "num_sessions"].max())
        for model, group in runs.groupby("model")
        if (group["verdict"] == "alive").any()
    }
    tested = {str(model): set(group["num_sessions"]) for model, group in runs.groupby("model")}
    if not {"qwen3_omni", "minicpm_o", "moshi", "qwen2_5_omni"} <= set(tested):
        return not_measured("the published bursts of the four models are not in the table")
    return from_parts(
        {
            "Qwen3-Omni serves at least 160": largest.get("qwen3_omni", 0) >= 160,
            "MiniCPM-o serves every one of 96": largest.get("minicpm_o", 0) >= 96,
            "Moshi serves at least 32": largest.get("moshi", 0) >= 32,
            "Qwen2.5-Omni serves 16 to 24": 16 <= largest.get("qwen2_5_omni", 0) <= 24,
        },
        ours=", ".join(f"{model} {n} of up to {max(tested[model])}" for model, n in largest.items())
        + " (largest N at which every session answered and none stalled)",
    )
