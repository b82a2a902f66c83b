"""Everything there is, on one page: claims, figures with their origin, every run, and a call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import yaml

from harness.analysis.tables import read_tables
from harness.claims.ledger import headline, tally
from harness.config import Regime
from harness.core.errors import CorpusError, TelemetryError
from harness.core.files import write_text
from harness.figures.files import figure_files
from harness.report.listening import Listening, listen, listening_pair
from harness.report.recorded import RecordedRun, recorded_runs
from harness.report.strips import STATES, data_uri, silence_sentence, strip

PAGE = Path("report") / "index.html"


@dataclass(frozen=True, kw_only=True)
class ReportedArtifact:
    """What the registry says of an artifact; `command` makes it alone."""

    id: str
    title: str
    paper: str
    read: str
    minutes: float
    command: str
    claims: tuple[str, ...]


def write_report(results: Path, artifacts: Sequence[ReportedArtifact], cache: Path) -> Path:
    """Write the page from what lies in `results`; returns its path.

    cache: of corpora, for the audio of the listening panel; without it the panel says so.
    Raises: TelemetryError if the claims have not been judged, or a file is torn.
    """
    runs = recorded_runs(results)
    claims = _claims(results)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    listening, silence = _listening(runs, cache)
    html = environment.get_template("page.html").render(
        headline=headline(claims),
        tally=tally(claims),
        claims=claims,
        evidences=sorted({claim["evidence"] for claim in claims}),
        artifacts=[_artifact(results, artifact, runs) for artifact in artifacts],
        states=STATES,
        experiments=_timelines(runs),
        pair=_pair(runs),
        listening=listening,
        no_listening=silence,
        audio=None if listening is None else data_uri(listening.audio, "audio/mpeg"),
        lanes=markupsafe.Markup(_script_json(listening)),
    )
    path = results / PAGE
    write_text(path, html)
    return path


def _claims(results: Path) -> list[dict[str, Any]]:
    path = results / "claims.json"
    if not path.exists():
        raise TelemetryError(
            f"{path} is missing: run `python -m harness reproduce --stage claims` first"
        )
    loaded: list[dict[str, Any]] = json.loads(path.read_text())
    return loaded


def _artifact(
    results: Path, artifact: ReportedArtifact, runs: Sequence[RecordedRun]
) -> dict[str, Any]:
    """One figure with its caption and origin; `why_not` says what is missing."""
    figures = figure_files(results, artifact.id)
    try:
        tables = read_tables(results, artifact.id)
    except TelemetryError as error:
        return {"of": artifact, "images": [], "why_not": str(error), "statements": []}
    summary = tables[""]
    own = set(summary["run_digest"]) if "run_digest" in summary else set()
    made = [run for run in runs if run.digest in own]
    return {
        "of": artifact,
        "images": [data_uri(figure.read_bytes(), "image/png") for figure in figures],
        "why_not": None if figures else f"{results}/figures/{artifact.id}.png is missing",
        "evidence": ", ".join(dict.fromkeys(summary["evidence"])),
        "num_runs": len(summary),
        "statements": tables["reading"].to_dict(orient="records") if "reading" in tables else [],
        "made": made,
        "commands": list(dict.fromkeys(run.command for run in made)) or [artifact.command],
        "seeds": sorted({run.seed for run in made}),
        "hosts": list(dict.fromkeys(run.host for run in made)),
        "versions": list(dict.fromkeys(run.versions for run in made)),
        "config": yaml.safe_dump(made[0].origin["config"], sort_keys=False) if made else None,
    }


def _timelines(runs: Sequence[RecordedRun]) -> dict[str, list[dict[str, Any]]]:
    """Every run as a strip, by experiment."""
    shown: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        frames = run.frames()
        entry = {
            "run": run,
            "image": None if frames is None else data_uri(strip(frames), "image/png"),
            "silence": _without_frames(run) if frames is None else silence_sentence(frames),
            "duration_s": run.summary["duration_s"],
            "height_px": min(96, max(40, run.summary["num_sessions"])),
        }
        shown.setdefault(run.summary["experiment"], []).append(entry)
    return shown


def _without_frames(run: RecordedRun) -> str:
    """What is there instead of frames: a regime that has no deadlines, or nothing."""
    regime = Regime[run.origin["config"]["workload"]["regime"]]
    if regime is Regime.replay or run.summary["completeness"] is None:
        return "no frame was recorded"
    told = {
        Regime.score: "texts told and scored token by token",
        Regime.free_running: "conversations in which the model never stops speaking",
        Regime.turns: "conversations in which the model ends its turns",
    }
    return f"{run.summary['num_sessions']} {told[regime]}; nothing here has a deadline"


def _pair(runs: Sequence[RecordedRun]) -> dict[str, Any] | None:
    """The two verdicts that the page opens with; None if there is no such pair."""
    pair = listening_pair(runs)
    return None if pair is None else {"collapsed": pair[0].summary, "healthy": pair[1].summary}


def _listening(runs: Sequence[RecordedRun], cache: Path) -> tuple[Listening | None, str | None]:
    """The panel, or why there is none: a page without it is still a page."""
    pair = listening_pair(runs)
    if pair is None:
        return None, "no live run that collapsed, with a healthy one of the same schedule, is here"
    try:
        return listen(pair, cache), None
    except CorpusError as error:
        return None, str(error)


def _script_json(listening: Listening | None) -> str:
    """What the page's script draws: numbers alone, so that nothing in it can end the script."""
    if listening is None:
        return "null"
    value = {
        "duration_s": listening.duration_s,
        "bars": listening.bars,
        "lanes": [{"silences": lane.silences, "answers": lane.answers} for lane in listening.lanes],
    }
    return json.dumps(value, allow_nan=False)
