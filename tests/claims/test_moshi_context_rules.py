import pandas as pd
import pytest

from harness.claims.judgement import ClaimVerdict
from harness.claims.moshi_context import bounds, fits

KINDS = ("unbounded", "window", "sink_window")


def _run(kind: str, size: int, verdict: str, peak: float) -> dict[str, object]:
    window = {"unbounded": None, "window": 3000, "sink_window": 1024}[kind]
    return {
        "run_digest": f"{kind}-{size}",
        "retention_kind": kind,
        "retention_window_tokens": window,
        "retention_sink_tokens": 16 if kind == "sink_window" else 0,
        "num_sessions": size,
        "duration_s": 100.0,
        "verdict": verdict,
        "completeness": 1.0 if verdict == "alive" else 0.5,
        "peak_occupancy": peak,
        "call_bytes": {"unbounded": 2e9, "window": 1.5e9, "sink_window": 0.5e9}[kind],
        "calls_that_fit": {"unbounded": 30, "window": 45, "sink_window": 129}[kind],
    }


def _tables(
    verdicts: dict[int, tuple[str, str, str]], tail: tuple[float, float] = (0.7, 0.7)
) -> dict[str, pd.DataFrame]:
    peaks = (1.0, 0.7, 0.4)
    runs = [
        _run(kind, size, verdict, peak)
        for size, row in verdicts.items()
        for kind, verdict, peak in zip(KINDS, row, peaks, strict=True)
    ]
    samples = [
        {"run_digest": run["run_digest"], "t_s": t_s, "occupancy": value}
        for run in runs
        for t_s, value in zip((85.0, 95.0), tail, strict=True)
    ]
    return {"": pd.DataFrame(runs), "pool": pd.DataFrame(samples)}


def test_a_context_that_bounds_calls_on_a_plateau_is_reproduced() -> None:
    found = bounds(_tables({4: ("stalled", "alive", "alive")}))
    assert found.verdict is ClaimVerdict.REPRODUCED
    assert "own context of 3000 tokens alive at 0.70 of the pool" in found.ours


@pytest.mark.parametrize(
    ("verdicts", "tail", "why"),
    [
        (("alive", "alive", "alive"), (0.7, 0.7), "without a bound the calls collapse"),
        (("stalled", "stalled", "alive"), (0.7, 0.7), "with the model's own context they live"),
        (("stalled", "alive", "alive"), (0.6, 0.7), "on a plateau"),
        (("stalled", "alive", "stalled"), (0.7, 0.7), "which is above that of the window"),
    ],
)
def test_each_part_of_the_bound_can_fail(
    verdicts: tuple[str, str, str], tail: tuple[float, float], why: str
) -> None:
    found = bounds(_tables({4: verdicts}, tail))
    assert found.verdict is ClaimVerdict.PARTLY
    assert found.why.startswith(f"does not hold: {why}")


def test_a_context_that_few_calls_fit_and_many_do_not_is_reproduced() -> None:
    few, many = ("alive", "alive", "alive"), ("stalled", "shedding", "alive")
    found = fits(_tables({32: few, 64: many}))
    assert found.verdict is ClaimVerdict.REPRODUCED
    assert "1.50 GB with its own context" in found.ours
    assert "45 against 129 fit the pool" in found.ours


@pytest.mark.parametrize(
    ("few", "many", "why"),
    [
        (("alive", "stalled", "alive"), ("stalled", "stalled", "alive"), "carries 32 calls"),
        (("alive",) * 3, ("stalled", "alive", "alive"), "but not 64"),
        (("alive",) * 3, ("stalled", "stalled", "overloaded"), "64 calls alive"),
    ],
)
def test_each_part_of_the_capacity_can_fail(
    few: tuple[str, str, str], many: tuple[str, str, str], why: str
) -> None:
    found = fits(_tables({32: few, 64: many}))
    assert found.verdict is ClaimVerdict.PARTLY
    assert why in found.why


@pytest.mark.parametrize("rule", [bounds, fits])
def test_an_invalid_or_missing_run_measures_nothing(rule: object) -> None:
    assert callable(rule)
    spoiled = _tables({32: ("alive", "invalid", "alive")})
    assert rule(spoiled).verdict is ClaimVerdict.NOT_MEASURED
    whole = _tables({32: ("alive", "alive", "alive")})
    lacking = {**whole, "": whole[""].query("retention_kind != 'window'")}
    assert rule(lacking).verdict is ClaimVerdict.NOT_MEASURED
