"""`python -m harness reproduce`: every row of conf/artifacts.yaml, from runs to judged claims."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from harness.claims.catalogue import load_claims
from harness.claims.ledger import Entry, complete, headline, write_ledger
from harness.composition import CONFIG_DIR
from harness.config import Paths, ScaleName
from harness.core.errors import ConfigError, HarnessError
from harness.report.page import PAGE, write_report
from harness.reproduce.board import Board, Fate
from harness.reproduce.made import is_made, made_since, stamp
from harness.reproduce.reference import keep
from harness.reproduce.registry import Artifact, at_full_scale, load_artifacts, markdown

STAGES = ("runs", "figures", "claims", "report", "reference")
_PER_ARTIFACT = (None, "runs", "figures")


def main(arguments: Sequence[str]) -> int:
    """Run the asked-for stages of the asked-for artifacts; returns the exit code."""
    asked = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        artifacts = _selected(load_artifacts(), asked.only, asked.scale)
        if asked.list:
            for artifact in artifacts:
                console.print(f"{artifact.id:22} {artifact.minutes:4g} min  {artifact.title}")
            return 0
        if asked.markdown:
            print(markdown(artifacts), end="")
            return 0
        if asked.dry_run:
            return _plan(artifacts, asked.results, console)
        return reproduce(artifacts, asked.results, console, stage=asked.stage)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept; the same command goes on", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness reproduce", description=__doc__)
    parser.add_argument("--only", metavar="ID", action="append", help="artifact; may be repeated")
    parser.add_argument("--stage", choices=STAGES, help="one stage, from what is there already")
    parser.add_argument(
        "--scale",
        choices=[scale.name for scale in ScaleName],
        default=ScaleName.tiny.name,
        help="full: the artifacts that have a version on real weights, on a GPU",
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="results directory")
    parser.add_argument("--list", action="store_true", help="list the artifacts and stop")
    parser.add_argument("--markdown", action="store_true", help="list as README.md does and stop")
    parser.add_argument("--dry-run", action="store_true", help="say what would run and stop")
    return parser


def _selected(artifacts: list[Artifact], only: Sequence[str] | None, scale: str) -> list[Artifact]:
    known = {artifact.id: artifact for artifact in artifacts}
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise ConfigError(f"--only={unknown[0]} is unknown: choose {' or '.join(known)}")
    chosen = [known[name] for name in only] if only else artifacts
    if scale == ScaleName.tiny.name:
        return chosen
    full = at_full_scale(chosen)
    if not full:
        having = " or ".join(artifact.id for artifact in artifacts if artifact.full is not None)
        raise ConfigError(f"--only={chosen[0].id} has no --scale=full version: choose {having}")
    return full


def _plan(artifacts: Sequence[Artifact], results: Path, console: Console) -> int:
    """Say what each artifact would run; returns the worst exit code."""
    codes = []
    for artifact in artifacts:
        console.rule(f"{artifact.id}: {artifact.title}")
        codes.append(artifact.run(console, results, dry_run=True))
    return max(codes)


def reproduce(
    artifacts: Sequence[Artifact], results: Path, console: Console, *, stage: str | None = None
) -> int:
    """Make every artifact, past one that fails, then claims and report; returns the exit code.

    stage: one of STAGES; None: all but the last.
    """
    failed: dict[str, str] = {}
    if stage in _PER_ARTIFACT:
        with Board(artifacts, console) as board:
            for artifact in artifacts:
                try:
                    fate = _make(artifact, stage, results, board, console)
                except HarnessError as error:
                    fate = Fate(failure=str(error))
                except Exception as error:  # noqa: BLE001  # a bug of ours in one row; the others go on
                    console.print_exception()
                    fate = Fate(failure=f"{type(error).__name__}: {error}")
                board.end(artifact, fate)
        console.print(board.table())
        failed = board.failures
    if stage in (None, "claims"):
        judge_claims(results, console)
    if stage in (None, "report"):
        _report(results, console, is_forced=stage is not None)
    if stage == "reference":
        for path in keep(artifacts, results):
            console.print(f"kept: {path}", soft_wrap=True)
    for name, why in failed.items():
        print(f"error: artifact {name}: {why}", file=sys.stderr)
    return 1 if failed else 0


def _make(
    artifact: Artifact, stage: str | None, results: Path, board: Board, console: Console
) -> Fate:
    """Bring one artifact up to date; what is made of these sources already is left alone.

    Raises: HarnessError, or what a bug raises.
    """
    if stage == "figures":
        artifact.draw(results)
        return Fate(verdicts=_verdicts(artifact, results))
    if is_made(artifact, results):
        return Fate(was_made=True, verdicts=_verdicts(artifact, results))
    board.begin(artifact)
    started = time.monotonic()
    if artifact.run(console, results):
        return Fate(seconds=time.monotonic() - started, failure="a run did not yield a result")
    stamp(artifact, results, seconds=time.monotonic() - started)
    return Fate(seconds=time.monotonic() - started, verdicts=_verdicts(artifact, results))


def _verdicts(artifact: Artifact, results: Path) -> dict[str, str]:
    catalogue = load_claims(CONFIG_DIR / "claims.yaml")
    return {entry["id"]: entry["verdict"] for entry in artifact.judged(results, catalogue)}


def judge_claims(results: Path, console: Console) -> None:
    """Judge every claim from whatever tables there are, and write the ledger.

    The whole registry is judged, whichever artifacts were asked for: the ledger is one file.
    Raises: ConfigError; TelemetryError.
    """
    entries = judged_claims(results)
    write_ledger(results, entries)
    for entry in entries:
        console.print(
            f"{entry['id']:5} [bold]{entry['verdict']}[/] ({entry['evidence']}): {entry['ours']}",
            soft_wrap=True,
        )
    console.print(headline(entries), soft_wrap=True)


def judged_claims(results: Path) -> list[Entry]:
    """Every claim with a verdict for each evidence class there is. Raises: ConfigError."""
    catalogue = load_claims(CONFIG_DIR / "claims.yaml")
    artifacts = load_artifacts()
    return complete(
        catalogue,
        [
            entry
            for artifact in (*artifacts, *at_full_scale(artifacts))
            for entry in artifact.judged(results, catalogue)
        ],
    )


def _report(results: Path, console: Console, *, is_forced: bool) -> None:
    """Write the page, unless nothing that it shows was made after it."""
    artifacts = load_artifacts()
    path = results / PAGE
    if is_forced or made_since(path, artifacts, results):
        full = [a for a in at_full_scale(artifacts) if is_made(a, results)]
        shown = [artifact.reported() for artifact in (*artifacts, *full)]
        path = write_report(results, shown, Path(Paths().cache_dir))
    console.print(f"report: {path}", soft_wrap=True)
