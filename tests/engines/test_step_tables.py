"""Tables of measured steps: what is read, and what is refused in words that say what to change."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ConfigError
from harness.engines.step_tables import logged_steps, read_bench, read_published
from harness.engines.step_time import MeasuredStep
from harness.engines.step_work import StepLog, StepWork, read_step_log

BENCH = {
    "max_concurrency": 8,
    "median_itl_ms": 6.2,
    "median_ttft_ms": 30.0,
    "completed": 100,
    "total_input_tokens": 12_800,
    "total_output_tokens": 6_400,
}


def _written(path: Path, *results: Any) -> Path:
    path.write_text("\n".join(json.dumps(result) for result in results))
    return path


def test_a_bench_result_is_a_decode_step_with_half_of_the_answer_in_its_context(
    tmp_path: Path,
) -> None:
    (step,) = read_bench(_written(tmp_path / "a.json", BENCH), bytes_per_token=10.0)
    assert step == MeasuredStep(seconds=6.2e-3, num_requests=8, context_bytes=8 * 160 * 10.0)


def test_one_request_at_a_time_measures_a_prefill_as_well(tmp_path: Path) -> None:
    appended = _written(tmp_path / "a.json", BENCH | {"max_concurrency": 1}, BENCH)
    decode, prefill, crowded = read_bench(appended, bytes_per_token=10.0)
    assert (decode.num_prefill_tokens, decode.num_requests) == (0, 1)
    assert (prefill.seconds, prefill.num_prefill_tokens) == (0.03, 128)
    assert crowded.num_requests == 8


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ("[3]", "is a int, not an object of fields"),
        (json.dumps(BENCH | {"max_concurrency": None}), "run the benchmark with --max-concurrency"),
        (json.dumps(BENCH | {"median_itl_ms": "6"}), "median_itl_ms='6' must be a number"),
        (json.dumps(BENCH | {"completed": 0}), "completed=0 must be above 0"),
    ],
)
def test_a_bad_bench_result_is_named_with_its_field(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"bad\.json") as caught:
        read_bench(path, bytes_per_token=1.0)
    assert words in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json cannot be read"):
        read_bench(tmp_path / "none.json", bytes_per_token=1.0)
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read"):
        read_published(tmp_path / "none.yaml")


@pytest.mark.parametrize("content", ["{}", "{steps: [{second: 1}]}", "3", "{steps: ["])
def test_a_bad_published_table_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"table of steps .*table\.yaml"):
        read_published(path)


def test_what_lies_between_two_steps_belongs_to_the_first_unless_it_is_idleness(
    tmp_path: Path,
) -> None:
    log = StepLog(tmp_path / "steps.bin")
    # (begin, end): overhead of 0.5 ms; an idle second; one decided on while another ran.
    for begin_s, end_s in ((10.0, 10.01), (10.0105, 10.02), (11.0, 11.01), (11.005, 11.03)):
        log.write(begin_s, end_s, StepWork(2, 14, 1, 100))
    log.close()
    table = read_step_log(tmp_path / "steps.bin", start_s=10.0)
    steps = logged_steps(table, bytes_per_token=5.0)
    assert [step.seconds for step in steps] == pytest.approx([0.0105, 0.0095, 0.01, 0.02])
    assert steps[0].context_bytes == 500.0
    assert table["begin_s"].tolist() == pytest.approx([0.0, 0.0105, 1.0, 1.005])


def test_a_log_that_a_kill_cut_short_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "steps.bin"
    log = StepLog(path)
    log.write(1.0, 2.0, StepWork(1, 0, 0, 7))
    log.close()
    path.write_bytes(path.read_bytes() + b"torn")
    assert read_step_log(path, start_s=0.0).to_dict(orient="records") == [
        {
            "begin_s": 1.0,
            "end_s": 2.0,
            "num_requests": 1,
            "num_prefill_tokens": 0,
            "num_frames": 0,
            "num_context_tokens": 7,
        }
    ]
