"""The ledger lists every claim, and what nobody measured is never a success."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.analysis.tables import write_tables
from harness.claims.catalogue import Claim, claim_of, load_claims
from harness.claims.ledger import complete, headline, write_ledger
from harness.composition import CONFIG_DIR
from harness.core.errors import ConfigError
from harness.reproduce.registry import load_artifacts

CLAIMS = [Claim(id=name, source="paper", where="Fig 1", says=f"{name} says so") for name in "ABC"]


def _entry(name: str, evidence: str, verdict: str) -> dict[str, Any]:
    return {
        "id": name,
        "paper": f"{name} says so",
        "ours": "7 | 8",
        "interval": None,
        "evidence": evidence,
        "verdict": verdict,
        "why": "-",
        "table": "t.parquet",
        "figure": "f.png",
    }


def test_every_claim_has_an_entry_in_the_catalogues_order() -> None:
    judged = [_entry("C", "live-tiny", "REPRODUCED"), _entry("A", "audited", "PARTLY")]
    entries = complete(CLAIMS, judged)
    assert [(e["id"], e["verdict"]) for e in entries] == [
        ("A", "PARTLY"),
        ("B", "NOT MEASURED"),
        ("C", "REPRODUCED"),
    ]


def test_each_evidence_class_stands_for_itself_and_an_absent_one_says_nothing_beside_it() -> None:
    judged = [
        _entry("A", "none", "NOT MEASURED"),
        _entry("A", "live-tiny", "REPRODUCED"),
        _entry("A", "audited", "CONTRADICTED"),
        _entry("B", "none", "NOT MEASURED"),
    ]
    entries = complete(CLAIMS, judged)
    assert [(e["id"], e["evidence"]) for e in entries] == [
        ("A", "live-tiny"),
        ("A", "audited"),
        ("B", "none"),
        ("C", "none"),
    ]


def test_the_headline_counts_by_evidence_and_names_what_was_not_measured() -> None:
    judged = [
        _entry("A", "live-tiny", "REPRODUCED"),
        _entry("B", "simulated", "NOT MEASURED"),
    ]
    text = headline(complete(CLAIMS, judged))
    assert text.startswith("1 of 3 claims were judged")
    assert "live-tiny: 1 REPRODUCED." in text
    assert "NOT MEASURED on any evidence: B, C." in text


def test_both_files_hold_every_claim(tmp_path: Path) -> None:
    write_ledger(tmp_path, complete(CLAIMS, [_entry("A", "live-tiny", "REPRODUCED")]))
    rows = json.loads((tmp_path / "claims.json").read_text())
    assert [row["id"] for row in rows] == ["A", "B", "C"]
    text = (tmp_path / "CLAIMS.md").read_text()
    for name in "ABC":
        assert f"| {name} |" in text
    assert r"7 \| 8" in text


def test_the_papers_claims_and_ours_are_all_listed() -> None:
    listed = {claim.id: claim.source for claim in load_claims(CONFIG_DIR / "claims.yaml")}
    papers = {f"C{k}" for k in range(1, 13)} | {"C1b", "C1c"}
    assert papers <= {name for name, source in listed.items() if source == "paper"}
    assert listed["H1"] == "ours"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("- {id: A, source: paper, where: x}", "row A: .*says"),
        ("- {id: A, source: paper, where: x, says: y, verdict: REPRODUCED}", "row A: .*verdict"),
        ("- {id: A, source: rumour, where: x, says: y}", "source=rumour must be paper or ours"),
        (
            "- {id: A, source: paper, where: x, says: y}\n" * 2,
            "id=A stands twice",
        ),
    ],
)
def test_a_bad_list_is_refused(tmp_path: Path, rows: str, words: str) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(rows)
    with pytest.raises(ConfigError, match=words):
        load_claims(path)


def test_a_claim_that_is_not_in_the_list_is_named() -> None:
    with pytest.raises(ConfigError, match=r"claim id=Z is not in claims\.yaml: choose A, B, C"):
        claim_of(CLAIMS, "Z")


def test_tables_of_another_version_measure_nothing_and_say_so(tmp_path: Path) -> None:
    old = pd.DataFrame({"evidence": ["live-tiny"], "retention_kind": ["unbounded"]})
    write_tables(tmp_path, "cliff", {"": old})
    (cliff,) = [artifact for artifact in load_artifacts() if artifact.id == "cliff"]
    for entry in cliff.judged(tmp_path, load_claims(CONFIG_DIR / "claims.yaml")):
        assert entry["verdict"] == "NOT MEASURED"
        assert "reproduce --only cliff" in entry["why"]
