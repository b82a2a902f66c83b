import pandas as pd
import pytest
from rich.console import Console

from harness.experiments.report import MAX_COLUMNS, MAX_ROWS, verdict_table

LONGEST = {
    "model": "agent_scratchpad",
    "variant": "bounded (W=1024, S=32)",
    "verdict": "never_served",
    "num_sessions": 512,
    "evidence": "live-tiny",
    "silence_onset_s": 268.7,
    "frames_answered": 10234,
    "frames_offered": 19200,
    "completeness": 0.482,
    "frames_empty": 8966,
    "deadline_miss_share": 0.513,
    "tick_view_miss_share": 0.021,
    "latency_p50_s": 0.9871,
    "latency_p99_s": 12.3456,
    "ingest_p50_s": 0.0123,
    "ingest_p99_s": 0.1234,
    "peak_occupancy": 1.0,
    "predicted_saturation_s": 152.8,
    "pool_full_s": 153.4,
    "first_preemption_s": 153.5,
    "last_token_s": 299.9,
}


@pytest.mark.parametrize(
    ("num_runs", "cells"),
    [
        (2, ("(W=1024, S=32)", "51.3% / 2.1%", "987 / 12346 ms", "misses: true / gateway's view")),
        (MAX_COLUMNS, ("(W=1024, S=32)", "51.3% / 2.1%", "987 / 12346 ms", "10234 / 19200")),
        (MAX_ROWS, ("bounded (W=1024, S=32)", "12346 ms", "agent_scratchpad", "299.9 s")),
        (MAX_ROWS + 1, ("bounded (W=1024, S=32)", "13 never_served", "agent_scratchpad", "51.3%")),
    ],
)
def test_verdicts_are_whole_in_a_terminal_of_80_columns(
    num_runs: int, cells: tuple[str, ...]
) -> None:
    console = Console(width=80, highlight=False, record=True, quiet=False)
    with console.capture() as captured:
        console.print(verdict_table(pd.DataFrame([LONGEST] * num_runs)))
    shown = captured.get()
    for cell in cells:
        assert cell in shown, shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
