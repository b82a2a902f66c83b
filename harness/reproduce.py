"""`python -m harness reproduce`: every row of conf/artifacts.yaml, from runs to judged claims."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from harness.analysis.tables import Tables, read_tables, table_path
from harness.audit.command import regenerate
from harness.claims.catalogue import Claim, claim_of, load_claims
from harness.claims.judgement import Judgement, not_measured
from harness.claims.ledger import NO_EVIDENCE, complete, headline, write_ledger
from harness.composition import CONFIG_DIR, expand
from harness.config import Paths
from harness.core.errors import ConfigError, HarnessError, TelemetryError
from harness.experiments.session import report_module, run_experiment
from harness.figures import audit as audit_figure
from harness.report.page import ReportedArtifact, write_report

STAGES = ("runs", "figures", "claims", "report")
_PER_ARTIFACT = (None, "runs", "figures")


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """A claim that an artifact decides, by its id in conf/claims.yaml, and the rule for it.

    rule: `<module>.<function>` in harness/claims/.
    """

    id: str
    rule: str

    def judge(self, tables: Tables) -> Judgement:
        """Apply the rule. Raises: ConfigError if there is no such rule."""
        module, _, name = self.rule.rpartition(".")
        try:
            rule: Callable[[Tables], Judgement] = getattr(
                importlib.import_module(f"harness.claims.{module}"), name
            )
        except (ImportError, AttributeError):
            raise ConfigError(
                f"artifacts.yaml: rule={self.rule} is not in harness/claims/"
            ) from None
        return rule(tables)


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One row of the registry; see conf/artifacts.yaml for what each field means.

    experiment: of conf/experiment/; None: the audit of the published logs, which runs no engine.
    report: module of harness/experiments/ that tabulates and draws; None: the experiment's.
    minutes: on 2 cores.
    """

    id: str
    title: str
    paper: str
    minutes: float
    read: str
    experiment: str | None = None
    report: str | None = None
    overrides: tuple[str, ...] = ()
    claims: tuple[ClaimRow, ...] = field(default=())

    def run(self, console: Console, results: Path) -> int:
        """Run the experiment, write its tables and draw its figure; finished runs are skipped."""
        if self.experiment is None:
            regenerate(results, console)
            return 0
        own = [f"experiment={self.experiment}", f"artifact={self.id}", *self.overrides]
        if self.report is not None:
            own.append(f"report={self.report}")
        return run_experiment(expand([*own, f"paths.results_dir={results}"]), console)

    def reported(self) -> ReportedArtifact:
        """What the report shows of this row."""
        return ReportedArtifact(
            id=self.id,
            title=self.title,
            paper=self.paper,
            read=self.read,
            minutes=self.minutes,
            command=f"python -m harness reproduce --only {self.id}",
            claims=tuple(row.id for row in self.claims),
        )

    def draw(self, results: Path) -> None:
        """Redraw the figure from the tables. Raises: TelemetryError if there are none."""
        tables = read_tables(results, self.id)
        name = self.report or self.experiment
        module = audit_figure if name is None else report_module(name)
        module.draw(tables, results / "figures" / self.id)

    def judged(self, results: Path, catalogue: Sequence[Claim]) -> list[dict[str, Any]]:
        """An entry of claims.json for each claim; NOT MEASURED if the tables are missing."""
        try:
            tables = read_tables(results, self.id)
        except TelemetryError as error:
            absent = not_measured(str(error))
            return [self._entry(row, catalogue, absent, NO_EVIDENCE) for row in self.claims]
        evidence = "+".join(dict.fromkeys(tables[""]["evidence"]))
        return [
            self._entry(row, catalogue, self._judgement(row, tables), evidence)
            for row in self.claims
        ]

    def _judgement(self, row: ClaimRow, tables: Tables) -> Judgement:
        """What the rule says; NOT MEASURED if the tables are of a version without what it reads."""
        try:
            return row.judge(tables)
        except KeyError as error:
            return not_measured(
                f"the tables of {self.id} lack {error}, so they are of another version: run "
                f"`python -m harness reproduce --only {self.id}` again"
            )

    def _entry(
        self, row: ClaimRow, catalogue: Sequence[Claim], judgement: Judgement, evidence: str
    ) -> dict[str, Any]:
        return {
            "id": row.id,
            "paper": claim_of(catalogue, row.id).says,
            "ours": judgement.ours,
            "interval": judgement.interval,
            "evidence": evidence,
            "verdict": judgement.verdict.value,
            "why": judgement.why,
            "table": str(table_path(Path("results"), self.id, "")),
            "figure": f"results/figures/{self.id}.png",
        }


def load_artifacts(path: Path = CONFIG_DIR / "artifacts.yaml") -> list[Artifact]:
    """The registry, in order. Raises: ConfigError if a row has an unknown or missing field."""
    artifacts = []
    for row in yaml.safe_load(path.read_text()):
        try:
            claims = tuple(ClaimRow(**claim) for claim in row.pop("claims", ()))
            overrides = tuple(row.pop("overrides", ()))
            artifacts.append(Artifact(**row, claims=claims, overrides=overrides))
        except TypeError as error:
            raise ConfigError(f"{path.name}, row {row.get('id', '?')}: {error}") from error
    return artifacts


def main(arguments: Sequence[str]) -> int:
    """Run the asked-for stages of the asked-for artifacts; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness reproduce", description=__doc__)
    parser.add_argument("--only", metavar="ID", action="append", help="artifact; may be repeated")
    parser.add_argument("--stage", choices=STAGES, help="one stage, from what is there already")
    parser.add_argument("--results", type=Path, default=Path("results"), help="results directory")
    parser.add_argument("--list", action="store_true", help="list the artifacts and stop")
    asked = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        artifacts = _selected(load_artifacts(), asked.only)
        if asked.list:
            for artifact in artifacts:
                console.print(f"{artifact.id:20} {artifact.minutes:4g} min  {artifact.title}")
            return 0
        return _reproduce(artifacts, asked.stage, asked.results, console)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept; the same command goes on", file=sys.stderr)
        return 130


def _selected(artifacts: list[Artifact], only: Sequence[str] | None) -> list[Artifact]:
    known = {artifact.id: artifact for artifact in artifacts}
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise ConfigError(f"--only={unknown[0]} is unknown: choose {' or '.join(known)}")
    return [known[name] for name in only] if only else artifacts


def _reproduce(
    artifacts: Sequence[Artifact], stage: str | None, results: Path, console: Console
) -> int:
    """Go on past an artifact that fails, and say so at the end."""
    failed: dict[str, str] = {}
    for number, artifact in enumerate(artifacts if stage in _PER_ARTIFACT else (), start=1):
        console.rule(f"{number}/{len(artifacts)}: {artifact.title} ({artifact.paper})")
        try:
            if stage in (None, "runs"):
                code = artifact.run(console, results)
                if code:
                    failed[artifact.id] = "a run did not yield a result"
            elif stage == "figures":
                artifact.draw(results)
        except HarnessError as error:
            failed[artifact.id] = str(error)
        except Exception as error:  # noqa: BLE001  # a bug of ours in one row; the others go on
            console.print_exception()
            failed[artifact.id] = f"{type(error).__name__}: {error}"
    if stage in (None, "claims"):
        judge_claims(results, console)
    if stage in (None, "report"):
        shown = [artifact.reported() for artifact in load_artifacts()]
        path = write_report(results, shown, Path(Paths().cache_dir))
        console.print(f"report: {path}", soft_wrap=True)
    for name, why in failed.items():
        print(f"error: artifact {name}: {why}", file=sys.stderr)
    return 1 if failed else 0


def judge_claims(results: Path, console: Console) -> None:
    """Judge every claim from whatever tables there are, and write the ledger.

    The whole registry is judged, whichever artifacts were asked for: the ledger is one file.
    Raises: ConfigError; TelemetryError.
    """
    catalogue = load_claims(CONFIG_DIR / "claims.yaml")
    judged = [e for artifact in load_artifacts() for e in artifact.judged(results, catalogue)]
    entries = complete(catalogue, judged)
    write_ledger(results, entries)
    for entry in entries:
        console.print(
            f"{entry['id']:5} [bold]{entry['verdict']}[/] ({entry['evidence']}): {entry['ours']}",
            soft_wrap=True,
        )
    console.print(headline(entries), soft_wrap=True)
