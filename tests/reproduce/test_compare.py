"""What is kept of a run, and what counts as a deviation from it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from harness.analysis.tables import write_tables
from harness.core.errors import ConfigError, TelemetryError
from harness.core.files import write_json, write_text
from harness.reproduce.compare import Tolerances, compare, compare_claims, load_tolerances, main
from harness.reproduce.made import read_stamp, stamp
from harness.reproduce.reference import keep, read_reference
from harness.reproduce.registry import Artifact

TOLERANCES = Tolerances(
    relative={"pool_full_s": 0.1},
    absolute={"completeness": 0.05},
    machine_dependent=("latency_p50_s",),
    ignored=("run_digest",),
    not_repeatable=("race",),
    repeatable_evidence=("simulated",),
)
CLAIM = {"id": "C1", "evidence": "live-tiny", "verdict": "PARTLY"}
LIVE = pd.DataFrame(
    {
        "evidence": ["live-tiny", "live-tiny"],
        "variant": ["unbounded", "bounded"],
        "verdict": ["stalled", "alive"],
        "pool_full_s": [20.0, None],
        "completeness": [0.5, 1.0],
        "latency_p50_s": [0.01, 0.02],
    }
)


def changed(column: str, row: int, value: object) -> pd.DataFrame:
    table = LIVE.copy()
    table.loc[row, column] = value
    return table


def test_equal_tables_do_not_deviate_and_every_judged_value_is_counted() -> None:
    same = compare(LIVE, LIVE.copy(), TOLERANCES)
    assert same.deviations == []
    assert same.num_compared == 2 * 5
    assert same.ratios == {"latency_p50_s": 1.0}


@pytest.mark.parametrize(
    ("column", "value", "deviates"),
    [
        ("pool_full_s", 21.9, False),
        ("pool_full_s", 22.1, True),
        ("pool_full_s", None, True),
        ("completeness", 0.54, False),
        ("completeness", 0.56, True),
        ("verdict", "alive", True),
        ("latency_p50_s", 9.0, False),
    ],
)
def test_a_live_value_deviates_beyond_its_own_tolerance(
    column: str, value: object, deviates: bool
) -> None:
    found = compare(LIVE, changed(column, 0, value), TOLERANCES).deviations
    assert [(off.metric, off.where) for off in found] == (
        [(column, "row 0 (unbounded)")] if deviates else []
    )


@pytest.mark.parametrize("column", ["pool_full_s", "latency_p50_s"])
def test_a_simulated_value_must_be_equal_whatever_its_column_allows_live(column: str) -> None:
    simulated = LIVE.assign(evidence="simulated")
    moved = simulated.assign(**{column: simulated[column] * 1.001})
    found = compare(simulated, moved, TOLERANCES).deviations
    assert {(off.metric, off.allowed) for off in found} == {(column, "=")}


def test_what_a_run_is_called_is_not_compared() -> None:
    assert compare(LIVE.assign(run_digest="a"), LIVE.assign(run_digest="b"), TOLERANCES) == compare(
        LIVE, LIVE, TOLERANCES
    )


def test_machine_dependent_values_are_shown_as_the_median_ratio() -> None:
    slower = LIVE.assign(latency_p50_s=LIVE["latency_p50_s"] * 2)
    assert compare(LIVE, slower, TOLERANCES).ratios["latency_p50_s"] == pytest.approx(2.0)


def test_a_missing_row_is_one_deviation() -> None:
    (off,) = compare(LIVE, LIVE.head(1), TOLERANCES).deviations
    assert (off.metric, off.kept, off.here) == ("rows", 2, 1)


def test_a_claims_verdict_is_compared_within_its_evidence_class() -> None:
    here = [{**CLAIM, "verdict": "REPRODUCED"}, {**CLAIM, "evidence": "simulated"}]
    (off,) = compare_claims([CLAIM], here).deviations
    assert (off.where, off.kept, off.here) == ("C1 (live-tiny)", "PARTLY", "REPRODUCED")


@pytest.fixture
def made(tmp_path: Path) -> tuple[Artifact, Path, Path]:
    """An artifact without runs that is up to date, its results, and where to keep it."""
    results = tmp_path / "results"
    artifact = Artifact(id="race", title="", paper="", evidence=("live-tiny",), read="", minutes=1)
    write_tables(results, "race", {"": LIVE})
    (results / "figures").mkdir()
    (results / "figures" / "race.png").write_bytes(b"png")
    write_json(results / "claims.json", [CLAIM])
    write_text(results / "CLAIMS.md", "# claims\n")
    stamp(artifact, results, seconds=3.21)
    return artifact, results, tmp_path / "reference"


def test_what_is_kept_says_where_it_came_from_and_reads_back_equal(
    made: tuple[Artifact, Path, Path],
) -> None:
    artifact, results, reference = made
    keep([artifact], results, reference)
    origin = json.loads((reference / "provenance.json").read_text())["race"]
    assert (origin["seconds"], origin["evidence"]) == (3.2, ["live-tiny"])
    kept = read_reference(reference)
    assert compare(kept.summaries["race"], LIVE, TOLERANCES).deviations == []
    assert kept.claims == [CLAIM]


def test_tables_made_again_from_the_same_runs_keep_the_time_the_runs_took(
    made: tuple[Artifact, Path, Path],
) -> None:
    artifact, results, _ = made
    stamp(artifact, results, seconds=0.5)
    kept = read_stamp(artifact, results)
    assert kept is not None
    assert kept.seconds == 3.21


def test_what_is_not_up_to_date_is_not_kept(made: tuple[Artifact, Path, Path]) -> None:
    artifact, results, reference = made
    (results / "figures" / "race.png").unlink()
    with pytest.raises(TelemetryError, match="no artifact is up to date"):
        keep([artifact], results, reference)


def test_the_command_tells_equal_from_deviating_results_by_its_exit_code(
    made: tuple[Artifact, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    artifact, results, reference = made
    keep([artifact], results, reference)
    arguments = ["--results", str(results), "--reference", str(reference)]
    assert main(arguments) == 0
    write_tables(results, "race", {"": changed("verdict", 1, "stalled")})
    assert main(arguments) == 1
    assert "row 1 (bounded): verdict stalled, kept alive (=)" in capsys.readouterr().out
    assert main([*arguments, "--only", "cliff"]) != 0
    assert "--only=cliff is not kept: choose race" in capsys.readouterr().err


def test_the_shipped_tolerances_read_and_a_misspelt_one_is_refused(tmp_path: Path) -> None:
    assert "latency_p50_s" in load_tolerances().machine_dependent
    bad = tmp_path / "comparison.yaml"
    bad.write_text("relativ: {}\n")
    with pytest.raises(ConfigError, match=r"comparison\.yaml: .*relativ"):
        load_tolerances(bad)
