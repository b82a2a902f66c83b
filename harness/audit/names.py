"""What the name of a published file says: model, variant, batch, repetition.

The authors' logs carry numbers only; which model ran and what was bounded is in the file's name.
Source: `third_party/metronome/results/` of the authors' code, and the commands that its `.out`
files print.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# `--max-model-len` in the authors' printed worker command; KV growth a session as the paper says.
QWEN3_MAX_MODEL_LEN = 8192
QWEN3_GROWTH_TOKENS_PER_S = (27.0, 31.0)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """One published run, by its name.

    series: what it was part of; batch, repetition: within the wall matrix, else None.
    variant: unbounded | bounded; window_tokens: W, where the name says it.
    has_wait_limit: whether its worker returns after 0.8 B with whatever it has; only such a run can
        show the paper's wall.
    boundary_s: when a session reaches max_model_len, (earliest, latest); None if unknown.
    """

    series: str
    model: str
    variant: str
    batch: int | None = None
    repetition: int | None = None
    window_tokens: int | None = None
    has_wait_limit: bool = True
    boundary_s: tuple[float, float] | None = None


_SLOWEST, _FASTEST = QWEN3_GROWTH_TOKENS_PER_S
_BOUNDARY_S = (QWEN3_MAX_MODEL_LEN / _FASTEST, QWEN3_MAX_MODEL_LEN / _SLOWEST)
_VARIANTS = {"van": "unbounded", "ineng": "bounded", "win": "bounded"}
_IN_ENGINE_WINDOW_TOKENS = 1024


def _qwen3(
    series: str, kind: str, *, batch: int | None = None, repetition: int | None = None
) -> Origin:
    window = _IN_ENGINE_WINDOW_TOKENS if kind == "ineng" else None
    return Origin(
        series=series,
        model="qwen3_omni",
        variant=_VARIANTS[kind],
        window_tokens=window,
        boundary_s=_BOUNDARY_S,
        batch=batch,
        repetition=repetition,
    )


def origin(name: str) -> Origin | None:
    """What a file's name (without its suffixes) says; None if it names no run with latencies.

    Example: `rvar_ineng96_r3_n96` -> the wall matrix, bounded (W = 1024), batch 2, repetition 3.
    """
    if found := re.fullmatch(r"(r?)var_(van|ineng)\d+_r(\d+)_n\d+", name):
        batch = 2 if found[1] else 1
        return _qwen3("wall_matrix", found[2], batch=batch, repetition=int(found[3]))
    if found := re.fullmatch(r"longp_(van|ineng)_n\d+", name):
        return _qwen3("one_call", found[1])
    if re.fullmatch(r"preempt_rerun_van", name):
        return _qwen3("preemption", "van")
    if re.fullmatch(r"fresh_(30b_van|v160)_n\d+", name):
        return _qwen3("burst", "van")
    if found := re.fullmatch(r"abl_w(\d+)_n\d+", name):
        return Origin(
            series="window_size",
            model="qwen3_omni",
            variant="bounded",
            window_tokens=int(found[1]),
            boundary_s=_BOUNDARY_S,
        )
    if found := re.fullmatch(r"mcpm600_(van|win)", name):
        return Origin(series="minicpm_600", model="minicpm_o", variant=_VARIANTS[found[1]])
    if found := re.fullmatch(r"fresh_(mcpm|q7b)_n\d+", name):
        model = {"mcpm": "minicpm_o", "q7b": "qwen2_5_omni"}[found[1]]
        return Origin(series="burst", model=model, variant="unbounded")
    if re.fullmatch(r"moshi_n\d+", name):
        return Origin(series="burst", model="moshi", variant="unbounded", has_wait_limit=False)
    if re.fullmatch(r"svmcpm_dist_n\d+", name):
        return Origin(
            series="re_encode", model="minicpm_o", variant="bounded", has_wait_limit=False
        )
    return None


def probe_retention(name: str) -> tuple[int | None, int] | None:
    """(W, S) of a quality probe, W None if unbounded; None if the name is no probe's.

    Where a name gives only one of the two, the other is the paper's W = 1024 or S = 32.
    Example: `lh_w512s32` -> (512, 32); `lh_s16` -> (1024, 16); `lh_swa0` -> (None, 0).
    """
    if found := re.fullmatch(r"lh_w(\d+)s(\d+)", name):
        return int(found[1]), int(found[2])
    if found := re.fullmatch(r"lh_(?:s|sink)(\d+)(?:ctl)?", name):
        return _IN_ENGINE_WINDOW_TOKENS, int(found[1])
    if found := re.fullmatch(r"lh_swa(\d+)", name):
        return int(found[1]) or None, 0
    # The sink kernel without sinks.
    return (_IN_ENGINE_WINDOW_TOKENS, 0) if name == "lh_tri0" else None


def ramp_variant(name: str) -> str | None:
    """What an admission ramp ran on; `unknown` where no file says it, None if this is no ramp."""
    known = {"ramp_admit_win_trace": "bounded", "ramp_admit384_trace": "unbounded"}
    return known.get(name, "unknown") if name.startswith("ramp_admit") else None
