"""The page without a browser: whole, self-contained, and true to what lies in results/."""

import base64
import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.claims.catalogue import load_claims
from harness.claims.ledger import complete, write_ledger
from harness.composition import CONFIG_DIR
from harness.core.errors import HarnessWarning, TelemetryError
from harness.report.listening import listen, listening_pair
from harness.report.page import write_report
from harness.report.recorded import recorded_runs
from harness.reproduce.command import main as reproduce
from harness.reproduce.registry import load_artifacts
from harness.telemetry import schemas

CLAIMS = load_claims(CONFIG_DIR / "claims.yaml")
ARTIFACTS = [artifact.reported() for artifact in load_artifacts()]
JUDGED = {
    "id": "C2",
    "paper": "climbs </script><b>",
    "ours": "1 < 2",
    "interval": (0.25, 0.5),
    "evidence": "live-tiny",
    "verdict": "REPRODUCED",
    "why": "it does",
    "table": "results/tables/cliff.parquet",
    "figure": None,
}


class Page(HTMLParser):
    """Every element with its attributes, and whether each one that was opened was closed."""

    VOID = frozenset({"meta", "link", "img", "br", "col", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def html(recorded: Path) -> str:
    write_ledger(recorded / "results", complete(CLAIMS, [JUDGED]))
    return write_report(recorded / "results", ARTIFACTS, recorded / "cache").read_text()


def test_everything_is_inside_the_page(html: str) -> None:
    page = Page(html)
    assert page.open == []
    for _, attributes in page.elements:
        for name in ("src", "href", "srcset", "data", "poster", "action"):
            assert re.match(r"(data:|#|$)", attributes.get(name, "")), attributes
    assert not re.search(r"""url\(|@import|fetch\(|XMLHttpRequest|import\(|["'(]https?:""", html)
    images = [base64.b64decode(i["src"].split(",")[1]) for i in page.all("img")]
    assert len(images) == 3
    assert all(image.startswith(b"\x89PNG") for image in images)


def test_every_claim_is_there_once_a_class_and_can_be_filtered(html: str) -> None:
    page = Page(html)
    rows = [row for row in page.all("tr") if "data-claim" in row]
    assert [row["data-claim"] for row in rows] == [claim.id for claim in CLAIMS]
    offered = {button["data-evidence"] for button in page.all("button")}
    assert offered == {"", "live-tiny", "none"}
    assert "1 &lt; 2" in html
    assert "[0.25, 0.50]" in html


def test_every_artifact_is_there_with_its_figure_or_why_not(html: str) -> None:
    page = Page(html)
    shown = {f["id"] for f in page.all("figure")}
    assert shown == {f"artifact-{artifact.id}" for artifact in ARTIFACTS}
    assert html.count("No figure: ") == len(ARTIFACTS) - 1
    for words in ("python -m harness experiment=cliff", "Python 3.11", "num_sessions: 8", "GB,"):
        assert words in html


def test_every_run_has_its_strip_and_says_who_went_silent(html: str, results: Path) -> None:
    page = Page(html)
    runs = recorded_runs(results)
    anchors = {element["id"] for element in page.all("div") if "id" in element}
    assert {f"run-{run.digest}" for run in runs} <= anchors
    assert "8 of 8 callers silent at the end, since 9.0 to 10.8 s" in html
    assert "none of 8 callers silent at the end" in html
    assert "by hand &lt;&amp;&gt;" in html


@pytest.mark.parametrize(
    ("regime", "words"),
    [("score", "8 texts told and scored token by token"), ("replay", "no frame was recorded")],
)
def test_a_run_without_frames_says_what_it_did(results: Path, regime: str, words: str) -> None:
    run = recorded_runs(results)[0]
    (run.directory / "frames.parquet").unlink()
    origin = run.origin
    origin["config"]["workload"]["regime"] = regime
    (run.directory / "provenance.json").write_text(json.dumps(origin))
    unmeasured = run.summary | {"schedule_digest": None}
    (run.directory / "verdict.json").write_text(json.dumps(unmeasured))
    write_ledger(results, complete(CLAIMS, [JUDGED]))
    text = write_report(results, ARTIFACTS, results.parent / "cache").read_text()
    assert words in text
    assert ("no frame was recorded" in text) is (regime == "replay")


def test_the_page_opens_with_what_was_missed_and_what_was_seen(html: str) -> None:
    assert re.search(r"50 % missed,\s+0 % seen", html)


def test_no_text_can_end_the_script(html: str) -> None:
    assert html.count("<script>") == html.count("</script>") == 1


def test_the_script_is_given_the_silences_that_were_recorded(html: str) -> None:
    found = re.search(r"const call = (\{.*\});", html)
    assert found is not None
    call = json.loads(found[1])
    assert call["duration_s"] == 20.0
    assert max(call["bars"]) == 1.0
    collapsed, healthy = call["lanes"]
    assert [end for _, end in collapsed["silences"]] == [20.0]
    assert healthy["silences"] == []
    assert len(healthy["answers"]) == 10


def test_the_caller_is_one_whose_words_may_be_passed_on(results: Path) -> None:
    pair = listening_pair(recorded_runs(results))
    assert pair is not None
    heard = listen(pair, results.parent / "cache")
    assert heard.audio[:3] == b"ID3" or heard.audio[0] == 0xFF
    assert len(heard.audio) < 400_000
    assert heard.duration_s == 20.0
    assert all("librivox" in credit for credit in heard.credits)
    collapsed, healthy = heard.lanes
    assert healthy.silences == ()
    ((start_s, end_s),) = collapsed.silences
    # Heard until 9 s: calls that began in the first second had five frames answered, others four.
    num_answered = 5 if heard.session_id < 4 else 4
    assert (start_s, end_s) == (2.0 * num_answered, 20.0)
    assert len(healthy.answers) == 10
    assert len(collapsed.answers) == num_answered


def test_audio_that_a_run_did_not_hear_is_not_played(results: Path) -> None:
    (pair,) = [listening_pair(recorded_runs(results))]
    assert pair is not None
    pair[0].origin["config"]["seed"] = 5
    write_ledger(results, complete(CLAIMS, []))
    for run in results.glob("runs/*/*/provenance.json"):
        origin = json.loads(run.read_text())
        origin["config"]["seed"] = 5
        run.write_text(json.dumps(origin))
    html = write_report(results, ARTIFACTS, results.parent / "cache").read_text()
    assert "was offered other audio than is in" in html or "callers speaks only" in html
    assert "<audio" not in html


def test_a_page_without_runs_or_audio_is_still_a_page(tmp_path: Path) -> None:
    write_ledger(tmp_path, complete(CLAIMS, []))
    html = write_report(tmp_path, ARTIFACTS, tmp_path / "no cache").read_text()
    assert Page(html).open == []
    assert "No run lies in results/runs" in html
    assert "Nothing to listen to: no live run that collapsed" in html
    assert html.count("NOT MEASURED</span>") == len(CLAIMS)


def test_the_stages_of_the_command_write_ledger_and_page_without_any_run(tmp_path: Path) -> None:
    for stage in ("claims", "report"):
        assert reproduce(["--stage", stage, "--results", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "claims.json").read_text())
    assert {row["verdict"] for row in rows} == {"NOT MEASURED"}
    assert (tmp_path / "report" / "index.html").exists()


def test_without_claims_it_says_what_to_run_first(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match=r"claims\.json is missing: .* --stage claims"):
        write_report(tmp_path, ARTIFACTS, tmp_path)


def test_a_torn_verdict_is_named(results: Path) -> None:
    path = next(results.glob("runs/*/*/verdict.json"))
    path.write_text('{"verdict": "al')
    with pytest.raises(TelemetryError, match=r"verdict\.json cannot be read"):
        recorded_runs(results)


def test_runs_of_another_version_are_left_out_and_counted(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = recorded_runs(results)
    newer = dataclasses.replace(schemas.FRAMES, version=schemas.FRAMES.version + 1)
    monkeypatch.setattr(schemas, "FRAMES", newer)
    with pytest.warns(HarnessWarning, match=f"{len(shown)} runs in .* are of another version"):
        assert recorded_runs(results) == []
