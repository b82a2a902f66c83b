"""The registry of artifacts: what its rows name exists, and a wrong field is refused."""

import re
from pathlib import Path

import pytest

from harness.capacity import check_capacity
from harness.claims.catalogue import load_claims
from harness.composition import CONFIG_DIR
from harness.config import ScaleName
from harness.core.errors import ConfigError
from harness.reproduce.registry import at_full_scale, load_artifacts, markdown

EXPERIMENTS = {path.stem for path in (CONFIG_DIR / "experiment").glob("*.yaml")}


def test_every_row_of_the_registry_names_an_experiment_and_claims_that_exist() -> None:
    known = {claim.id for claim in load_claims(CONFIG_DIR / "claims.yaml")}
    for artifact in load_artifacts():
        assert {row.id for row in artifact.claims} <= known
        assert artifact.claims
        if artifact.experiment is not None:
            assert artifact.experiment in EXPERIMENTS
            points = artifact.points(Path("results"))
            classes = {point.run_config.evidence for point in points}
            assert classes <= set(artifact.evidence)
            assert set(artifact.evidence) - classes <= {"simulated", "paper"}


def test_no_row_says_a_thing_twice() -> None:
    # YAML keeps the last of equal keys without a word.
    for row in (CONFIG_DIR / "artifacts.yaml").read_text().split("\n- id:")[1:]:
        keys = re.findall(r"^  (\w+):", row, flags=re.MULTILINE)
        assert len(keys) == len(set(keys)), row


def test_a_misspelt_field_of_the_registry_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "artifacts.yaml"
    bad.write_text("- {id: x, titel: y}\n")
    with pytest.raises(ConfigError, match=r"artifacts\.yaml, row x: .*titel"):
        load_artifacts(bad)


def test_a_verdict_cannot_be_typed_into_the_registry(tmp_path: Path) -> None:
    bad = tmp_path / "artifacts.yaml"
    bad.write_text("- {id: x, claims: [{id: C1, rule: a.b, verdict: REPRODUCED}]}\n")
    with pytest.raises(ConfigError, match=r"artifacts\.yaml, row x: .*verdict"):
        load_artifacts(bad)


def test_the_versions_on_real_weights_are_of_that_scale_and_could_run() -> None:
    full = at_full_scale(load_artifacts())
    assert {"cliff_full", "cliff_all_full"} <= {artifact.id for artifact in full}
    for artifact in full:
        for point in artifact.points(Path("results"), "engine.dry_run=true"):
            assert point.run_config.scale is ScaleName.full
            assert point.run_config.evidence == "live-full"
            check_capacity(point.run_config)


def test_a_version_on_real_weights_says_how_it_is_made() -> None:
    (full, *_) = at_full_scale(load_artifacts())
    assert full.command == "python -m harness reproduce --scale full --only cliff"
    assert full.at_full_scale() is None


def test_the_readme_shows_the_registry() -> None:
    # Written by `python -m harness reproduce --markdown`.
    assert markdown(load_artifacts()) in (CONFIG_DIR.parent / "README.md").read_text()
