"""The registry of artifacts: a row of conf/artifacts.yaml, and what can be done with one."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from harness.analysis.tables import Tables, read_tables, table_path
from harness.audit.command import regenerate
from harness.claims.catalogue import Claim, claim_of
from harness.claims.judgement import Judgement, not_measured
from harness.claims.ledger import NO_EVIDENCE
from harness.composition import CONFIG_DIR, expand
from harness.config import Invocation
from harness.core.errors import ConfigError, TelemetryError
from harness.experiments.session import report_module, run_experiment
from harness.figures import audit as audit_figure
from harness.report.page import ReportedArtifact

# What the id of an artifact made of real weights ends with.
_FULL = "_full"


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
    full: overrides with which it runs real weights on a GPU; None: there is no such version.
    evidence: classes of its summary's rows. minutes: on 2 cores.
    """

    id: str
    title: str
    paper: str
    evidence: tuple[str, ...]
    minutes: float
    read: str
    experiment: str | None = None
    report: str | None = None
    overrides: tuple[str, ...] = ()
    full: tuple[str, ...] | None = None
    claims: tuple[ClaimRow, ...] = ()

    @property
    def command(self) -> str:
        """What makes this artifact alone."""
        if self.id.endswith(_FULL):
            name = self.id.removesuffix(_FULL)
            return f"python -m harness reproduce --scale full --only {name}"
        return f"python -m harness reproduce --only {self.id}"

    def at_full_scale(self) -> Artifact | None:
        """The version on real weights, under an id of its own; None if there is none."""
        if self.full is None:
            return None
        return dataclasses.replace(
            self,
            id=self.id + _FULL,
            title=f"{self.title} (real weights)",
            evidence=("live-full",),
            overrides=self.full,
            full=None,
        )

    def points(self, results: Path, *more: str) -> list[Invocation]:
        """Every configuration of the grid; none for the audit. Raises: ConfigError."""
        if self.experiment is None:
            return []
        own = [f"experiment={self.experiment}", f"artifact={self.id}", *self.overrides]
        if self.report is not None:
            own.append(f"report={self.report}")
        return expand([*own, f"paths.results_dir={results}", *more])

    def run(self, console: Console, results: Path, *, dry_run: bool = False) -> int:
        """Run the experiment, write its tables and draw its figure; finished runs are skipped."""
        if self.experiment is not None:
            dry = ("engine.dry_run=true",) if dry_run else ()
            return run_experiment(self.points(results, *dry), console)
        if not dry_run:
            regenerate(results, console)
        return 0

    def reported(self) -> ReportedArtifact:
        """What the report shows of this row."""
        return ReportedArtifact(
            id=self.id,
            title=self.title,
            paper=self.paper,
            read=self.read,
            minutes=self.minutes,
            command=self.command,
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
                f"`{self.command}` again"
            )

    def _entry(
        self, row: ClaimRow, catalogue: Sequence[Claim], judgement: Judgement, evidence: str
    ) -> dict[str, Any]:
        return {
            "id": row.id,
            "paper": claim_of(catalogue, row.id).says,
            "ours": judgement.ours,
            "interval": judgement.interval,
            "evidence": judgement.evidence or evidence,
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
            claims = tuple(ClaimRow(**claim) for claim in row.get("claims", ()))
            for name in ("evidence", "overrides", "full"):
                if name in row:
                    row[name] = tuple(row[name])
            artifacts.append(Artifact(**{**row, "claims": claims}))
        except TypeError as error:
            raise ConfigError(f"{path.name}, row {row.get('id', '?')}: {error}") from error
    return artifacts


def at_full_scale(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """The versions on real weights of those that have one."""
    return [full for artifact in artifacts if (full := artifact.at_full_scale()) is not None]


def markdown(artifacts: Sequence[Artifact]) -> str:
    """The registry as the table in README.md."""
    lines = [
        "| artifact | what | paper | claims | evidence | minutes |",
        "|---|---|---|---|---|---|",
    ]
    for row in artifacts:
        claims = ", ".join(claim.id for claim in row.claims)
        evidence = ", ".join(row.evidence)
        lines.append(
            f"| `{row.id}` | {row.title} | {row.paper} | {claims} | {evidence} | {row.minutes:g} |"
        )
    return "\n".join(lines) + "\n"
