"""The command from files to tables, figure and printed counts; and offline, from what it wrote."""

from pathlib import Path

import pandas as pd
import pytest

from harness.__main__ import main as run_harness
from harness.analysis.tables import read_tables
from harness.audit.command import audit_tables, main
from harness.audit.derived import SHIPPED, derive, read_derived, write_derived
from harness.audit.names import origin
from harness.claims import audit as rules
from harness.core.errors import TelemetryError
from tests.audit.authors_format import gone_quiet, log, served, walled, window_table, write_log


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Two pairs of the wall matrix, an admission ramp and a printed table."""
    folder = tmp_path / "upstream"
    for size, stops, onset in ((96, 92, 120), (128, 69, 90)):
        claimed = {"total": size, "ttfa": [300.0] * size}
        write_log(folder, f"var_van{size}_r1_n{size}", log(walled(stops, onset)) | claimed)
        write_log(folder, f"rvar_ineng{size}_r1_n{size}", log(gone_quiet(136)) | claimed)
    ramp = {"offered": 512, "rate": 8.0, "admitted": 209, "rejected": 303, "p99_steady": 12.0}
    write_log(folder, "ramp_admit_win_trace", ramp)
    write_log(folder, "lh_s16", {"n": 32, "seg_hits": [[20, 22], [11, 22]]})
    (folder / "mcpm600_van.out").write_text(window_table([3.0] * 11 + [801.0] * 49))
    return folder


def test_files_become_facts_counts_and_a_figure(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    monkeypatch.setattr("sys.argv", ["harness", "audit", str(published), "--results", str(results)])
    assert run_harness() == 0
    tables = read_tables(results, "audit")
    totals = tables["counts"][tables["counts"]["num_sessions"].isna()].set_index("variant")
    assert totals.loc["unbounded", ["runs", "walled", "stalled"]].tolist() == [2, 2, 2]
    assert totals.loc["bounded", ["runs", "walled", "quiet_at_boundary"]].tolist() == [2, 0, 2]
    assert (results / "figures" / "audit.png").stat().st_size > 10_000
    assert "1/N" in rules.forecast(tables).ours


def test_offline_the_derived_table_gives_the_same_tables(published: Path, tmp_path: Path) -> None:
    derived = derive(published)
    write_derived(derived, tmp_path)
    again = audit_tables(read_derived(tmp_path))
    for part, table in audit_tables(derived).items():
        pd.testing.assert_frame_equal(table, again[part], check_dtype=False)


def test_a_bad_folder_is_one_line_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none"), "--results", str(tmp_path)]) == TelemetryError.exit_code
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'none'} is not a directory")
    assert not list(tmp_path.iterdir())


def test_a_derived_table_with_a_run_that_nobody_published_is_refused(tmp_path: Path) -> None:
    for name in ("audit_medians.csv", "audit_ramps.csv", "audit_probes.csv"):
        (tmp_path / name).write_text("run\n")
    (tmp_path / "audit_runs.csv").write_text("run\ninvented_run\n")
    with pytest.raises(TelemetryError, match="invented_run names no published run"):
        read_derived(tmp_path)
    (tmp_path / "audit_medians.csv").unlink()
    with pytest.raises(TelemetryError, match=r"audit_medians\.csv cannot be read"):
        read_derived(tmp_path)


def test_what_ships_is_the_whole_wall_matrix_in_facts() -> None:
    derived = read_derived(SHIPPED)
    known = derived.runs["run"].map(lambda name: origin(name))
    matrix = derived.runs[[o.series == "wall_matrix" for o in known]]
    assert len(matrix) == 40
    assert set(derived.medians["run"]) <= set(derived.runs["run"])
    assert derived.medians.groupby("run").size().max() <= 60
    # Not a copy of the logs: under a value in fifty.
    assert len(derived.medians) < derived.runs["num_frames"].sum() / 50


def test_served_runs_leave_no_mark(tmp_path: Path) -> None:
    write_log(tmp_path, "var_ineng96_r1_n96", log(served()))
    runs = audit_tables(derive(tmp_path))[""]
    assert runs["verdict"].tolist() == ["alive"]
    assert runs["step_down_s"].isna().all()
