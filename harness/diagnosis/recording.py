"""What a run left behind, as verdicts and analyses read it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What a run left behind; tables as in telemetry's schemas."""

    frames: pd.DataFrame
    pool: pd.DataFrame
    events: pd.DataFrame
    schedule: pd.DataFrame
    decisions: pd.DataFrame = field(default_factory=pd.DataFrame)
    intervals: pd.DataFrame = field(default_factory=pd.DataFrame)

    def events_of(self, kind: str) -> pd.DataFrame:
        """Events of one kind, in order."""
        return self.events[self.events["kind"] == kind]
