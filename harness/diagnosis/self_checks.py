"""Could the harness itself be fooled? A run that fails one of these proves nothing: `invalid`."""

from __future__ import annotations

from harness.config import OnMaxModelLen, RunConfig
from harness.diagnosis.recording import Recording

# Sampling slower than once a frame period cannot see a stall begin.
MAX_POOL_GAP_FRAMES = 1.0
# More equal latencies than this, and so large, and the number is a limit, not a measurement.
MAX_SHARE_OF_ONE_LATENCY = 0.5
LIMIT_SHARE_OF_BUDGET = 0.5
_LATENCY_RESOLUTION_S = 1e-6


def failed_self_checks(run: RunConfig, recording: Recording) -> list[str]:
    """One sentence for each self-check that the recording fails; empty if it can be trusted."""
    checks = (
        _release_lag,
        _session_length,
        _distinct_prefixes,
        _pool_sampling,
        _latency_not_on_a_limit,
    )
    return [sentence for check in checks if (sentence := check(run, recording))]


def _release_lag(run: RunConfig, recording: Recording) -> str | None:
    lag_s = float(recording.frames["release_lag_s"].quantile(0.99))
    bound_s = run.diagnosis.max_release_lag_share * run.model.frame_budget_s
    if lag_s <= bound_s:
        return None
    return (
        f"the replayer was late: release lag p99 {lag_s * 1e3:.1f} ms is over "
        f"{bound_s * 1e3:.1f} ms: use fewer sessions or a less busy machine"
    )


def _session_length(run: RunConfig, recording: Recording) -> str | None:
    is_cut = run.engine.on_max_model_len is not OnMaxModelLen.refuse
    if is_cut or run.longest_request_tokens < run.max_model_len:
        return None
    return (
        f"requests of {run.longest_request_tokens} tokens would reach "
        f"engine.max_model_len={run.max_model_len}, where vLLM kills the engine core"
    )


def _distinct_prefixes(run: RunConfig, recording: Recording) -> str | None:
    first = recording.schedule.drop_duplicates("session_id")
    shared = int(first["prefix_digest"].duplicated().sum())
    if not shared:
        return None
    return f"{shared} sessions share their first frame of audio with another: capacity is inflated"


def _pool_sampling(run: RunConfig, recording: Recording) -> str | None:
    if len(recording.pool) < 2:
        return "the KV pool was not sampled"
    gap_s = float(recording.pool["t_s"].diff().max())
    bound_s = MAX_POOL_GAP_FRAMES * run.model.frame_budget_s
    if gap_s <= bound_s:
        return None
    return f"the pool was not sampled for {gap_s:.2f} s, over one frame budget of {bound_s:.2f} s"


def _latency_not_on_a_limit(run: RunConfig, recording: Recording) -> str | None:
    latency = recording.frames["latency_s"].dropna()
    if len(latency) < 2:
        return None
    counts = (latency / _LATENCY_RESOLUTION_S).round().value_counts()
    share = float(counts.iloc[0]) / len(latency)
    value_s = float(counts.index[0]) * _LATENCY_RESOLUTION_S
    is_large = value_s >= LIMIT_SHARE_OF_BUDGET * run.model.frame_budget_s
    if share <= MAX_SHARE_OF_ONE_LATENCY or not is_large:
        return None
    return f"{share:.0%} of latencies are {value_s:.6f} s to the microsecond: a limit was recorded"
