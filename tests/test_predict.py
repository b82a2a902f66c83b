"""`python -m harness predict`: short names, one screen, JSON, clear errors, and no engine."""

import json
import subprocess
import sys

import pytest

from harness.predict import main, predicted_run

PAPER = ["model=qwen3_omni", "hardware=rtx_pro_6000"]


def test_short_names_are_long_names() -> None:
    short = predicted_run([*PAPER, "N=96", "minutes=2.5"])
    assert short.workload.num_sessions == 96
    assert short.workload.duration_s == 150
    long = predicted_run([*PAPER, "workload.num_sessions=96", "workload.duration_s=150"])
    assert short == long
    assert short.scale.name == "full"
    assert (short.retention.window_tokens, short.retention.sink_tokens) == (1024, 16)


def test_it_fits_one_screen_and_says_what_each_number_rests_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*PAPER, "N=128", "minutes=5"]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert len(lines) <= 32
    assert max(map(len, lines)) <= 80
    for words in ("565,984 tokens", "160 s", "at most 0.25", "505 sessions", "model: paper"):
        assert words in printed
    assert "unbounded: collapse, the pool fills" in printed


def test_json_holds_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PAPER, "N=128", "minutes=5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unbounded"]["verdict"] == "collapse"
    assert found["unbounded"]["saturation"]["median_s"] == pytest.approx(160.5, abs=0.1)
    assert found["bounded"]["saturation"] is None
    assert "published" in found["step_time_source"]


def test_the_subcommand_imports_neither_torch_nor_vllm() -> None:
    code = (
        f"import sys; sys.argv = {['harness', 'predict', *PAPER, 'N=8']}; "
        "from harness.__main__ import main; assert main() == 0; "
        "print({'torch', 'vllm', 'transformers', 'datasets'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "8 sessions" in done.stdout
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model=gpt"], "model=gpt is unknown: choose "),
        ([*PAPER, "N=0"], "workload.num_sessions=0 must be at least 1"),
        ([*PAPER, "minutes=five"], "minutes=five must be a number, such as 5"),
        ([*PAPER, "minutes=0.05"], "so make the run longer"),
        (["qwen3_omni"], "qwen3_omni is no key=value"),
        (["model=qwen3_omni"], "hardware=this_machine has no known memory"),
        ([*PAPER, "modle=x"], "did you mean"),
        ([*PAPER, "retention=unbounded"], "leave it out, or name a bounded one"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_change(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert words in captured.err
    assert captured.out == ""
