"""Calibration closes its circle: what a simulated engine was told a step costs is found again."""

import dataclasses
import json
from pathlib import Path

import pytest
import yaml

from harness.composition import compose
from harness.core.errors import ConfigError
from harness.diagnosis.summary import summarise
from harness.experiments.calibrate import PUBLISHED, configured, export
from harness.experiments.runner import FinishedRun
from harness.experiments.step_fits import fit_runs
from harness.models.hardware import read_hardware
from harness.workload.corpus import Clip
from tests.engines.simulation import configured as simulated_run
from tests.engines.simulation import simulate

CALLS = (
    "experiment=calibrate",
    "model.frame_budget_s=0.5",
    "workload.duration_s=4",
)


@pytest.fixture
def recorded(clips: list[Clip], tmp_path: Path) -> FinishedRun:
    """16 calls due at once on an engine whose step time is known, with its steps recorded."""
    return _recorded("synchronised", clips, tmp_path)


def _recorded(arrivals: str, clips: list[Clip], directory: Path) -> FinishedRun:
    run = simulated_run(*CALLS, f"workload.arrivals={arrivals}")
    summary = summarise(run, simulate(run, clips, directory))
    return FinishedRun(run=run, directory=directory, summary=summary, was_cached=False)


def test_the_costs_of_a_simulated_engine_are_found_from_its_steps(
    recorded: FinishedRun, clips: list[Clip], tmp_path: Path
) -> None:
    told = recorded.run.hardware.step_time("qwen2_5_omni")
    assert told is not None
    fitted = fit_runs([recorded, _recorded("staggered", clips, tmp_path / "staggered")])
    assert fitted.fit.residual(0.95) < 1e-3
    for name in ("base_s", "request_s", "frame_s", "prefill_step_s", "ingest_frame_s"):
        assert getattr(fitted.cost, name) == pytest.approx(getattr(told, name), rel=0.01), name
    assert fitted.cost.spread < 1e-3
    assert recorded.run.digest in fitted.cost.source


def test_runs_that_recorded_no_steps_are_refused(recorded: FinishedRun) -> None:
    summary = recorded.summary | {"verdict": "invalid", "cause": "the replayer was late"}
    spoiled = dataclasses.replace(recorded, summary=summary)
    with pytest.raises(ConfigError, match=r"no valid run recorded its steps .*was late"):
        fit_runs([spoiled])


def test_published_tables_become_a_hardware_entry_that_a_command_takes(tmp_path: Path) -> None:
    command = compose(["experiment=calibrate", "calibration.live=false"])
    calibration = configured(command)
    assert calibration.wanted([command]) == []
    tables = calibration.tabulate([])
    assert sorted(tables[""]["table"]) == sorted(path.stem for path in PUBLISHED.glob("*.yaml"))
    (path,) = export(tables, tmp_path)
    gpu = read_hardware(path)
    assert gpu.memory_bytes == 102_600_000_000
    chosen = compose([f"hardware_file={path}"]).hardware
    assert chosen.step_time("qwen3_omni") == gpu.step_time("qwen3_omni")
    shipped = read_hardware(Path("conf/hardware/rtx_pro_6000.yaml")).step_time("qwen3_omni")
    fitted = gpu.step_time("qwen3_omni")
    assert shipped is not None
    assert fitted is not None
    assert fitted.base_s == pytest.approx(shipped.base_s, rel=0.01)
    assert fitted.request_s == pytest.approx(shipped.request_s, rel=0.01)


def test_bench_results_of_several_concurrencies_are_one_table(tmp_path: Path) -> None:
    """Steps of 5 ms and 0.1 ms a request; the time to the first token adds a prefill of 20 ms."""
    for concurrency in (1, 8, 64):
        decode_ms = 5 + 0.1 * concurrency
        result = {
            "max_concurrency": concurrency,
            "median_itl_ms": decode_ms,
            "median_ttft_ms": decode_ms + 20,
            "completed": 100,
            "total_input_tokens": 12_800,
            "total_output_tokens": 6_400,
        }
        (tmp_path / f"c{concurrency}.json").write_text(json.dumps(result))
    files = ",".join(str(path) for path in sorted(tmp_path.glob("*.json")))
    command = (
        "experiment=calibrate",
        "calibration.live=false",
        "calibration.published=false",
        f"calibration.tables=[{files}]",
        "model=qwen3_omni",
        "scale=full",
        "hardware=h200",
    )
    with pytest.raises(ConfigError, match=r"apart.*calibration\.leave_out"):
        configured(compose(command)).tabulate([])
    left_out = "calibration.leave_out=[prefill_token_s,context_byte_s]"
    tables = configured(compose([*command, left_out])).tabulate([])
    (fit,) = tables[""].to_dict(orient="records")
    assert (fit["model"], fit["hardware"], fit["num_steps"]) == ("qwen3_omni", "h200", 4)
    assert (fit["base_s"], fit["request_s"]) == pytest.approx((5e-3, 1e-4))
    assert fit["prefill_step_s"] == pytest.approx(20e-3)
    (path,) = export(tables, tmp_path)
    assert path.name == "h200_fitted.yaml"


def test_a_hardware_file_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gpu.yaml"
    path.write_text(yaml.safe_dump({"name": "gpu", "speed": 3}))
    with pytest.raises(ConfigError, match=r"gpu\.yaml: .*speed"):
        compose([f"hardware_file={path}"])
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read"):
        compose([f"hardware_file={tmp_path / 'none.yaml'}"])


def test_nothing_to_fit_is_said() -> None:
    nothing = ("experiment=calibrate", "calibration.live=false", "calibration.published=false")
    with pytest.raises(ConfigError, match="leave nothing to fit"):
        configured(compose(nothing)).tabulate([])
