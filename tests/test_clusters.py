"""A sweep through a launcher leaves what the same sweep leaves here. `pytest -m cluster`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PROJECT = Path(__file__).resolve().parents[1]
SIMULATED = (
    "engine=sim",
    "scale=full",
    "model=qwen3_omni",
    "hardware=rtx_pro_6000",
    "workload.num_sessions=8",
    "workload.duration_s=40",
    "num_parallel_runs=1",
)
SWEEP = ("seed=0,1", "artifact=cliff_${seed}")
# Two workers of a local Ray; submitit's own executor without Slurm; and the one for Slurm, whose
# commands are stood in for.
LAUNCHERS = {
    "ray": ("ray", ["hydra/launcher=ray", "+hydra.launcher.ray.init.num_cpus=2"]),
    "local": ("submitit", ["hydra/launcher=submitit_local"]),
    "slurm": (
        "submitit",
        [
            "hydra/launcher=submitit_slurm",
            "hydra.launcher.partition=gpu",
            "hydra.launcher.gpus_per_node=1",
        ],
    ),
}
# They number every job array alike, so each test has its own folder for jobs.
SLURM = {
    "sbatch": r"""#!/bin/bash
script="${@: -1}"
grep -q -- '--partition=gpu' "$script" && grep -q -- '--gpus-per-node=1' "$script" || exit 1
last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\)%.*/\1/p' "$script")
for i in $(seq 0 "$last"); do
  SLURM_JOB_ID=$((70 + i)) SLURM_ARRAY_JOB_ID=70 SLURM_ARRAY_TASK_ID=$i SLURM_PROCID=0 \
  SLURM_LOCALID=0 SLURM_NTASKS=1 SLURM_NODEID=0 SLURM_JOB_NODELIST=here SLURM_JOB_NUM_NODES=1 \
  bash "$script" >/dev/null 2>&1 &
done
echo Submitted batch job 70
""",
    "srun": r"""#!/bin/bash
while [[ "$1" == --* ]]; do case "$1" in --output|--error) shift 2 ;; *) shift ;; esac; done
exec "$@"
""",
    "sacct": "#!/bin/bash\necho 'JobID|State|NodeList'\n",
}


def _sweep(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    """Run the sweep in a folder of its own, results and cache named relative to it."""
    (folder / ".cache").symlink_to(PROJECT / ".cache")
    commands = folder / "bin"
    commands.mkdir()
    for name, script in SLURM.items():
        (commands / name).write_text(script)
        (commands / name).chmod(0o755)
    search = f"{commands}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "harness", "-m", *SIMULATED, "hydra.sweep.dir=jobs", *overrides],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PATH": search},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serial")
    done = _sweep(folder, *SWEEP)
    assert done.returncode == 0, done.stderr
    return folder / "results"


@pytest.fixture(params=LAUNCHERS)
def launcher(request: pytest.FixtureRequest) -> list[str]:
    package, overrides = LAUNCHERS[request.param]
    pytest.importorskip(package, reason=f"{package} is not installed: see docs/clusters.md")
    return overrides


def test_two_workers_leave_what_one_process_leaves(
    serial: Path, launcher: list[str], tmp_path: Path
) -> None:
    done = _sweep(tmp_path, *SWEEP, *launcher)
    assert done.returncode == 0, done.stderr
    ours, theirs = _files(tmp_path / "results"), _files(serial)
    assert ours == theirs
    assert sum(name.endswith("DONE") for name in theirs) == 4
    for name in theirs:
        _assert_same(tmp_path / "results" / name, serial / name)


def _files(results: Path) -> list[str]:
    return sorted(str(p.relative_to(results)) for p in results.rglob("*") if p.is_file())


def _assert_same(ours: Path, theirs: Path) -> None:
    if ours.suffix == ".parquet":
        pd.testing.assert_frame_equal(pd.read_parquet(ours), pd.read_parquet(theirs))
    elif ours.name == "provenance.json":
        configs = (json.loads(path.read_text())["config"] for path in (ours, theirs))
        assert next(configs) == next(configs)
    elif ours.suffix != ".log":
        assert ours.read_bytes() == theirs.read_bytes(), ours


def test_workers_that_want_the_same_run_do_it_once(launcher: list[str], tmp_path: Path) -> None:
    done = _sweep(tmp_path, "artifact=one,other", "retention=unbounded", *launcher)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "results" / "runs").rglob("DONE"))) == 1
    one, other = (
        pd.read_parquet(tmp_path / "results" / "tables" / f"{name}.parquet")
        for name in ("one", "other")
    )
    pd.testing.assert_frame_equal(one, other)


def test_a_job_that_fails_elsewhere_fails_the_command(launcher: list[str], tmp_path: Path) -> None:
    done = _sweep(tmp_path, *SWEEP, "engine.kv_pool_blocks=3", *launcher)
    assert done.returncode == 4
    assert "error: a job of the sweep failed on " in done.stderr
    assert "Traceback" not in done.stderr
