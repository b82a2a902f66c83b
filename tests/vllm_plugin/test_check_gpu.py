"""scripts/check_gpu.py where there is no GPU: the same checks, by the kernel that runs anywhere."""

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    found = importlib.util.spec_from_file_location("check_gpu", ROOT / "scripts" / "check_gpu.py")
    module = importlib.util.module_from_spec(found)
    sys.modules["check_gpu"] = module
    found.loader.exec_module(module)
    yield module
    del sys.modules["check_gpu"]


def test_without_a_gpu_it_checks_every_model_and_says_what_it_skipped(
    script, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "check.json"
    monkeypatch.setattr(
        sys, "argv", ["check_gpu.py", "--device", "cpu", "--quick", "--out", str(out)]
    )
    assert script.main() == 0
    found = json.loads(out.read_text())
    entries = found["entries"]
    assert {entry["model"] for entry in entries} == set(script.NUM_QUERY_HEADS)
    checks = [entry for entry in entries if entry["kind"] == "check"]
    # Of each model a decode step and a chunk, young and old.
    assert len(checks) == 4 * 2 * len(script.QUICK.contexts)
    assert all(check["passed"] for check in checks)
    old = [check for check in checks if check["context_tokens"] == 256]
    assert all(check["kept_tokens"] < 150 for check in old)
    assert all(check["distance_from_full_attention"] > 0.1 for check in old)
    skipped = [entry for entry in entries if entry["kind"] == "skipped"]
    assert {entry["kernel"] for entry in skipped} == {"triton", "flash_attention"}
    assert all("needs a GPU" in entry["why"] for entry in skipped)
    assert "8 skipped" in capsys.readouterr().out
    assert found["provenance"]["packages"]["torch"]
    assert found["provenance"]["config"]["device"] == "cpu"


def a_check(script, kernel):
    shape = script.Shape(num_query_heads=4, num_kv_heads=2, head_size=32)
    return script.check(kernel, shape, 256, 1, script.QUICK)


def test_a_kernel_that_reads_a_freed_page_fails(script):
    assert a_check(script, script.sdpa)["passed"]
    assert not a_check(script, lambda batch, _: script.sdpa(batch, batch.metadata))["passed"]


def test_a_kernel_that_misses_a_page_of_the_window_fails(script):
    def short(batch, metadata):
        lengths = metadata.seq_lens_cpu_upper_bound - script.BLOCK_SIZE_TOKENS
        return script.sdpa(batch, metadata.replace(seq_lens_cpu_upper_bound=lengths))

    assert not a_check(script, short)["passed"]


def test_a_kernel_that_raises_is_a_failure_and_not_a_skip(script, monkeypatch):
    def broken(batch, metadata):
        raise TypeError("unexpected keyword")

    monkeypatch.setattr(script, "KERNELS", {"sdpa": broken})
    plan = dataclasses.replace(script.QUICK, contexts=(64,))
    entries = list(script.results(plan))
    assert [entry["passed"] for entry in entries] == [False] * 4
    assert "unexpected keyword" in entries[0]["why"]


def test_a_gpu_that_is_not_there_is_named(script, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["check_gpu.py"])
    with pytest.raises(SystemExit):
        script.main()
    assert "--device cpu --quick" in capsys.readouterr().err
