"""Every command in README.md and docs/ is one that exists: quick ones run, long ones compose."""

import importlib
import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from harness import predict
from harness.composition import compose
from harness.experiments.session import run_experiment
from harness.reproduce import command
from harness.reproduce.registry import load_artifacts
from harness.vllm_plugin.config import retention_from

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
# What a command begins with; in running text, overrides alone stand for a run.
_BLOCK = re.compile(r"^    ((?:python|make|pip|vllm) [^\n\\]*(?:\\\n[^\n\\]*)*)", re.M)
_SPAN = re.compile(r"`((?:python -m harness|python scripts/|make |experiment=)[^`]*)`")


def _commands() -> list[list[str]]:
    """The words of every documented command, each once."""
    found: dict[tuple[str, ...], None] = {}
    for page in PAGES:
        text = page.read_text()
        for found_text in [*_BLOCK.findall(text), *_SPAN.findall(text)]:
            line = found_text.replace("\\\n", " ").replace("\n", " ")
            found[tuple(shlex.split(line, comments=True))] = None
    return [list(words) for words in found]


COMMANDS = _commands()
_HARNESS = ["python", "-m", "harness"]
RUNS = [words[3:] for words in COMMANDS if words[:3] == _HARNESS]
RUNS += [words for words in COMMANDS if words[0].startswith("experiment=") and words not in RUNS]


def _overrides(run: list[str]) -> list[str]:
    """What is composed: without Hydra's own and `<names>`, the first value of what is swept."""
    is_sweep = "-m" in run
    keys = [word for word in run if "=" in word and "<" not in word]
    keys = [word for word in keys if not word.lstrip("+").startswith("hydra")]
    return [key.partition(",")[0] if is_sweep else key for key in keys]


SUBCOMMANDS = ("predict", "reproduce", "compare", "audit")
# A folder of the reader's own: tests/models/test_add_a_model.py makes one.
COMPOSED = [run for run in RUNS if run[0] not in SUBCOMMANDS and "--config-dir" not in run]


def test_the_pages_hold_the_commands_that_this_looks_for() -> None:
    assert ["make", "smoke"] in COMMANDS
    assert ["experiment=calibrate", "calibration.live=false"] in RUNS
    assert any("hydra/launcher=submitit_slurm" in run for run in RUNS)
    assert len(COMPOSED) > 30


@pytest.mark.parametrize("run", COMPOSED, ids=" ".join)
def test_a_documented_run_composes(
    run: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = compose([*_overrides(run), f"paths.results_dir={tmp_path}"])
    importlib.import_module(f"harness.experiments.{point.report}")
    if point.engine.dry_run:
        assert run_experiment([point]) == 0
        assert "forecast" in capsys.readouterr().out


@pytest.mark.parametrize("run", [run for run in RUNS if run[0] == "predict"], ids=" ".join)
def test_a_documented_prediction_predicts(
    run: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert predict.main(run[1:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("run", [run for run in RUNS if run[0] == "reproduce"], ids=" ".join)
def test_a_documented_reproduction_names_artifacts_that_exist(run: list[str]) -> None:
    named = ["cliff" if word == "ID" else word for word in run[1:]]
    assert command.main([*named, "--list"]) == 0


def test_documented_targets_exist() -> None:
    targets = sorted({words[1] for words in COMMANDS if words[0] == "make"})
    assert {"smoke", "reproduce-all", "report"} <= set(targets)
    done = subprocess.run(
        ["make", "-n", *targets], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_documented_scripts_and_extras_exist() -> None:
    scripts = [words[1] for words in COMMANDS if words[0] == "python" and words[1] != "-m"]
    assert scripts
    assert [name for name in scripts if not (PROJECT / name).is_file()] == []
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"-e '?\.\[(\w+)\]'?", "\n".join(page.read_text() for page in PAGES))
    assert {"gpu", "cluster"} <= set(named) <= set(extras["optional-dependencies"])


def test_documented_servers_are_given_a_bound_that_the_plugin_reads() -> None:
    servers = [words for words in COMMANDS if words[:2] == ["vllm", "serve"]]
    assert servers
    for words in servers:
        given = json.loads(words[words.index("--additional-config") + 1])
        bound = retention_from(given)
        assert bound is not None
        assert bound.is_bounded


@pytest.mark.parametrize("key", [artifact.id for artifact in load_artifacts()] + ["five_minutes"])
def test_every_artifact_has_a_page(key: str) -> None:
    """Question, method, metrics, how to read it and limits; a page may serve several."""
    named = re.compile(rf"[`=]{key}`|=`?{key}\b|--only {key}\b")
    pages = [page.name for page in PAGES[1:] if named.search(page.read_text())]
    assert pages, f"{key} is on no page of docs/"
