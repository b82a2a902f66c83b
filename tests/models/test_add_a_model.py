"""docs/add-a-model.md, followed: a fifth model of a known family is one file, anywhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.composition import CONFIG_DIR

ROOT = CONFIG_DIR.parent
SMALL = (
    "workload.num_sessions=2",
    "workload.duration_s=6",
    "engine.kv_pool_blocks=60",
    "retention=unbounded",
)


@pytest.fixture
def fifth(tmp_path: Path) -> Path:
    """The entry that the guide shows, in a directory of the user's."""
    guide = (ROOT / "docs" / "add-a-model.md").read_text()
    start = guide.index("    name: my_omni")
    lines = guide[start:].split("\n\n")[0].splitlines()
    entry = tmp_path / "conf" / "model" / "my_omni.yaml"
    entry.parent.mkdir(parents=True)
    entry.write_text("\n".join(line.removeprefix("    ") for line in lines) + "\n")
    return tmp_path


def _harness(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", "--config-dir", str(folder / "conf")]
    paths = (f"paths.results_dir={folder / 'results'}", f"paths.cache_dir={ROOT / '.cache'}")
    return subprocess.run(
        [*command, "model=my_omni", *paths, *overrides], capture_output=True, text=True
    )


def test_the_guides_entry_composes_and_is_planned(fifth: Path) -> None:
    done = _harness(fifth, "engine.dry_run=true")
    assert done.returncode == 0, done.stderr
    # 25 audio tokens, 2 around them and 6 out, less the one never computed.
    assert "32 tokens a frame" in done.stdout
    assert "49,152 bytes a token" not in done.stdout
    assert "24,576 bytes a token" in done.stdout


@pytest.mark.live
def test_the_guides_entry_is_served(fifth: Path) -> None:
    done = _harness(fifth, *SMALL)
    assert done.returncode == 0, done.stderr
    assert "my_omni unbounded, N = 2, seed 0: alive" in done.stdout


def test_an_unknown_family_is_named(fifth: Path) -> None:
    done = _harness(fifth, *SMALL, "model.family=gramophone")
    assert done.returncode == 2
    assert "family=gramophone" in done.stderr
    assert done.stderr.count("\n") == 1
