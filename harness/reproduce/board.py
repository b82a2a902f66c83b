"""What a person watches while all artifacts are made, and the table at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from harness.reproduce.registry import Artifact

_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    TextColumn("{task.fields[state]}"),
    TimeElapsedColumn(),
)


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What became of one artifact.

    was_made: it was made of these sources already, so nothing was done.
    seconds: that it took; None if nothing was run.
    verdicts: by claim id.
    failure: why there is no artifact; None if there is one.
    """

    was_made: bool = False
    seconds: float | None = None
    verdicts: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None


class Board:
    """A line below the runs' own bars: how far all of it is, what is left, verdicts so far.

    The bar goes by the registry's minutes, and what is left is those, stretched by how much longer
    or shorter the artifacts made so far have taken.
    """

    def __init__(self, artifacts: Sequence[Artifact], console: Console) -> None:
        self._artifacts = list(artifacts)
        self._console = console
        self._fates: dict[str, Fate] = {}
        self._progress = Progress(*_COLUMNS, console=console)
        self._line = self._progress.add_task(
            "all artifacts", total=sum(a.minutes for a in artifacts), state=""
        )

    def __enter__(self) -> Board:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    @property
    def failures(self) -> dict[str, str]:
        """Why an artifact is missing, by id."""
        return {name: fate.failure for name, fate in self._fates.items() if fate.failure}

    def begin(self, artifact: Artifact) -> None:
        """Announce the artifact that is now being made."""
        number, total = len(self._fates) + 1, len(self._artifacts)
        left = f"about {self.minutes_left():.0f} min left"
        self._console.rule(f"{number}/{total} {artifact.id}; {left}")
        self._console.print(f"{artifact.title} ({artifact.paper})", soft_wrap=True)
        self._show(f"{number}/{total} {artifact.id}")

    def end(self, artifact: Artifact, fate: Fate) -> None:
        """Count an artifact as done, failed or left alone."""
        self._fates[artifact.id] = fate
        self._progress.advance(self._line, artifact.minutes)
        self._show(f"{len(self._fates)}/{len(self._artifacts)}")

    def minutes_left(self) -> float:
        """Estimated minutes until all artifacts are made."""
        waiting = sum(a.minutes for a in self._artifacts if a.id not in self._fates)
        timed = [a for a in self._artifacts if self._seconds(a) is not None]
        expected_s = 60 * sum(a.minutes for a in timed)
        taken_s = sum(self._seconds(a) or 0.0 for a in timed)
        return waiting * (taken_s / expected_s if expected_s else 1.0)

    def table(self) -> Table:
        """One row an artifact: what was done, how long it took, what its claims are."""
        table = Table(title="artifacts", title_justify="left")
        for head in ("artifact", "state", "minutes", "claims"):
            table.add_column(head)
        for artifact in self._artifacts:
            fate = self._fates[artifact.id]
            state = "failed" if fate.failure else "up to date" if fate.was_made else "made"
            minutes = "" if fate.seconds is None else f"{fate.seconds / 60:.1f}"
            claims = ", ".join(f"{name} {verdict}" for name, verdict in fate.verdicts.items())
            table.add_row(artifact.id, state, minutes, claims)
        return table

    def _seconds(self, artifact: Artifact) -> float | None:
        fate = self._fates.get(artifact.id)
        return None if fate is None else fate.seconds

    def _show(self, where: str) -> None:
        verdicts = Counter(v for fate in self._fates.values() for v in fate.verdicts.values())
        so_far = "".join(f", {count} {verdict}" for verdict, count in verdicts.items())
        failed = f", {len(self.failures)} failed" if self.failures else ""
        left = f", about {self.minutes_left():.0f} min left"
        self._progress.update(self._line, state=f"{where}{left}{so_far}{failed}")
