"""A prediction on one screen: what both variants share above, what they differ in below."""

from __future__ import annotations

from collections.abc import Callable

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from harness.engines.frame_time import FrameTime
from harness.experiments.prediction import Prediction, VariantPrediction
from harness.workload.growth import SaturationForecast

ARITHMETIC = "arithmetic"
# No wider than the tables: what a forecast for a closed system says of an open one.
_OPEN = """Calls arrive one by one here. All of the above is for all of them present from the
start: a bound, since a pool that they fill one by one is full later, or never."""
_GIB = 2**30
_MB = 1e6
_UNKNOWN = "unknown"


def screen(prediction: Prediction) -> Group:
    """Both tables, with the evidence of every number in the last column, and the verdicts."""
    return Group(_shared(prediction), _variants(prediction), _reasons(prediction))


def _shared(found: Prediction) -> Table:
    count = found.num_sessions
    title = (
        f"{found.model} on {found.hardware}\n"
        f"{count} sessions, {found.duration_s:g} s, B = {found.frame_budget_s:g} s, a frame of "
        f"{found.frame_prompt_tokens} tokens in and {found.frame_output_tokens:.4g} out"
    )
    table = _table(title, "", "one session", "all", "evidence")
    tokens, size = found.session_tokens_per_s, found.session_bytes_per_s / _MB
    table.add_row(
        "KV pool",
        f"{found.pool_tokens / count:,.0f} tokens",
        f"{found.pool_bytes / _GIB:.1f} GiB, {found.pool_blocks:,} blocks of "
        f"{found.block_size_tokens}",
        ARITHMETIC,
    )
    table.add_row("", "", f"{found.pool_tokens:,} tokens", ARITHMETIC)
    table.add_row("growth", f"{tokens:.1f} tokens/s", f"{tokens * count:,.0f} tokens/s", ARITHMETIC)
    table.add_row("", f"{size:.2f} MB/s", f"{size * count:,.0f} MB/s", ARITHMETIC)
    return table


def _variants(found: Prediction) -> Table:
    sides, budget_s = (found.unbounded, found.bounded), found.frame_budget_s
    modelled = f"model: {found.step_time_evidence or _UNKNOWN}"
    table = _table(None, "", *(side.retention for side in sides), "evidence")
    rows: tuple[tuple[str, Callable[[VariantPrediction], str], str], ...] = (
        ("pool full (95 %)", lambda side: _instant(side.saturation), ARITHMETIC),
        ("pool at the end", _occupancy, ARITHMETIC),
        ("memory ceiling", lambda side: f"{side.session_ceiling:,} sessions", ARITHMETIC),
        ("step-time ceiling", _step_time_ceiling, modelled),
        ("a frame, at first", lambda side: _latency(side.first_frame, budget_s), modelled),
        ("a frame, fullest", lambda side: _latency(side.fullest_frame, budget_s), modelled),
        ("load, fullest", lambda side: _load(side.fullest_frame), modelled),
        ("expected verdict", lambda side: f"[bold]{side.verdict.value}[/]", ""),
    )
    for label, render, evidence in rows:
        table.add_row(label, *(render(side) for side in sides), evidence)
    return table


def _reasons(found: Prediction) -> str:
    sides = (found.unbounded, found.bounded)
    lines = [f"{side.retention}: [bold]{side.verdict.value}[/], {side.reason}." for side in sides]
    lines += [_OPEN] if found.is_open else []
    return "\n".join([*lines, "Nothing was run; formulas and limits: docs/predict.md"])


def _table(title: str | None, *columns: str) -> Table:
    # 80 columns hold it all.
    table = Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    for column in columns:
        table.add_column(column)
    return table


def _instant(saturation: SaturationForecast | None) -> str:
    if saturation is None:
        return "never"
    if saturation.low_s == saturation.high_s:
        return f"{saturation.median_s:.0f} s"
    return f"{saturation.median_s:.0f} s ({saturation.low_s:.0f} to {saturation.high_s:.0f})"


def _occupancy(side: VariantPrediction) -> str:
    if side.final_occupancy > 1:
        return f"{side.final_occupancy:.2f}: does not fit"
    prefix = "at most " if side.saturation is None else ""
    return f"{prefix}{side.final_occupancy:.2f}"


def _step_time_ceiling(side: VariantPrediction) -> str:
    return _UNKNOWN if side.step_time_ceiling is None else f"{side.step_time_ceiling:,} sessions"


def _latency(frame: FrameTime | None, budget_s: float) -> str:
    if frame is None:
        return _UNKNOWN
    if frame.latency_s is None:
        return "later and later"
    return f"{frame.latency_s * 1e3:,.0f} ms, {frame.latency_s / budget_s:.0%} of B"


def _load(frame: FrameTime | None) -> str:
    if frame is None:
        return _UNKNOWN
    if frame.front_end_load > frame.engine_load:
        return f"{frame.engine_load:.0%}, front end {frame.front_end_load:.0%}"
    return f"{frame.engine_load:.0%}"
