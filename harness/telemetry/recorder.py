"""Takes notes during a run, cheaply, and turns them into tables at its end.

On the frame path a note is one list append. Instants are kept on the loop's clock and shifted to
the run's start only when the tables are made.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from harness.config import DiagnosisConfig
from harness.core.notices import Notice
from harness.core.pool_state import PoolState
from harness.telemetry import schemas
from harness.telemetry.frames import Floats, session_frames


class Recorder:
    """The notes of one run.

    schedule: as in schemas.SCHEDULE; its frames appear in the frame table, released or not.
    """

    def __init__(self, schedule: pd.DataFrame, *, frame_budget_s: float) -> None:
        self._schedule = schedule
        self._frame_budget_s = frame_budget_s
        self._start_s = 0.0
        sessions = schedule["session_id"].unique()
        self._released: dict[int, list[float]] = {int(s): [] for s in sessions}
        self._ingest: dict[int, list[float]] = {int(s): [] for s in sessions}
        self._arrivals: dict[int, list[tuple[float, int]]] = {int(s): [] for s in sessions}
        self._pool: list[tuple[float, PoolState, int | None]] = []
        self._events: list[tuple[float, str, int | None, str]] = []
        self._decisions: list[tuple[object, ...]] = []
        self._intervals: list[tuple[object, ...]] = []
        self._shed: set[int] = set()
        self.num_released = 0
        self.num_tokens = 0

    @property
    def start_s(self) -> float:
        """The instant that all tables count from, on the run's clock."""
        return self._start_s

    def started(self, start_s: float) -> None:
        """Set the instant that all tables count from."""
        self._start_s = start_s

    def released(self, session_id: int, instant_s: float) -> None:
        """The session's next frame was handed to the engine."""
        self._released[session_id].append(instant_s)
        self.num_released += 1

    def ingested(self, session_id: int, duration_s: float) -> None:
        """The engine's input side has digested the session's next frame."""
        self._ingest[session_id].append(duration_s)

    def tokens(self, session_id: int, num_tokens: int, instant_s: float) -> None:
        """Tokens of a session arrived."""
        self._arrivals[session_id].append((instant_s, num_tokens))
        self.num_tokens += num_tokens

    def pool(self, instant_s: float, state: PoolState, *, host_bytes: int | None = None) -> None:
        """The scheduler's state was read, and the host's memory, where an engine uses it."""
        self._pool.append((instant_s, state, host_bytes))

    def event(self, kind: str, instant_s: float, session_id: int | None, detail: str) -> None:
        """Something happened that a reader of the run must know."""
        self._events.append((instant_s, kind, session_id, detail))

    def decision(
        self,
        session_id: int,
        instant_s: float,
        *,
        admitted: bool,
        reason: str,
        live_sessions: int,
        session_cap: float | None,
        signal_s: float | None,
        occupancy: float | None,
        saturation_s: float | None,
    ) -> None:
        """A call was let in or shed; a shed one's frames are not offered to the engine."""
        if not admitted:
            self._shed.add(session_id)
        self._decisions.append(
            (
                instant_s,
                session_id,
                admitted,
                reason,
                live_sessions,
                session_cap,
                signal_s,
                occupancy,
                saturation_s,
            )
        )

    def interval(
        self,
        end_s: float,
        *,
        signal_s: float | None,
        num_frames: int,
        live_sessions: int,
        congested: bool,
        session_cap: float,
    ) -> None:
        """A control interval was judged."""
        self._intervals.append((end_s, signal_s, num_frames, live_sessions, congested, session_cap))

    @property
    def latest_pool(self) -> PoolState | None:
        """The last reading of the scheduler."""
        return self._pool[-1][1] if self._pool else None

    def notices(self, notices: list[Notice]) -> None:
        """Add what the engine itself noted about sessions."""
        for notice in notices:
            self.event(notice.kind, notice.instant_s, notice.session_id, notice.detail)

    def write(self, directory: Path, diagnosis: DiagnosisConfig) -> None:
        """Write frames, pool, events, decisions and control intervals. Raises: TelemetryError."""
        schemas.FRAMES.write(self.frame_table(diagnosis), directory)
        schemas.POOL.write(self.pool_table(), directory)
        schemas.EVENTS.write(self.event_table(), directory)
        schemas.DECISIONS.write(self.decision_table(), directory)
        schemas.INTERVALS.write(self.interval_table(), directory)

    def frame_table(self, diagnosis: DiagnosisConfig) -> pd.DataFrame:
        """The frames of all sessions that were not shed, as in schemas.FRAMES."""
        tables = []
        for session_id, rows in self._schedule.groupby("session_id", sort=True):
            session = int(str(session_id))
            if session in self._shed:
                continue
            released = _padded(self._released[session], len(rows)) - self._start_s
            arrivals = self._arrivals[session]
            tables.append(
                session_frames(
                    session_id=session,
                    release_s=rows["release_s"].to_numpy(dtype=float),
                    released_s=released,
                    ingest_s=_padded(self._ingest[session], len(rows)),
                    expected=rows["output_tokens"].to_numpy(dtype=np.int64),
                    arrival_s=np.array([t - self._start_s for t, _ in arrivals], dtype=float),
                    arrived=np.array([n for _, n in arrivals], dtype=np.int64),
                    frame_budget_s=self._frame_budget_s,
                    silent_after_frames=diagnosis.silent_after_frames,
                    tick_wait_share=diagnosis.tick_wait_share,
                )
            )
        return pd.concat(tables, ignore_index=True)

    def pool_table(self) -> pd.DataFrame:
        """All readings of the scheduler, as in schemas.POOL."""
        names = list(schemas.POOL.columns)
        if not self._pool:
            return pd.DataFrame(columns=names)
        first = self._pool[0][1]
        rows = [
            (
                t - self._start_s,
                t - s.stamp_s,
                s.total_blocks,
                s.used_blocks,
                s.occupancy,
                s.num_running,
                s.num_waiting,
                s.num_paused,
                s.num_preempted_waiting,
                s.num_preemptions - first.num_preemptions,
                s.num_steps - first.num_steps,
                s.num_scheduled_tokens - first.num_scheduled_tokens,
                host_bytes,
            )
            for t, s, host_bytes in self._pool
        ]
        return pd.DataFrame(rows, columns=names).astype({"host_bytes": "Int64"})

    def decision_table(self) -> pd.DataFrame:
        """Every arrival, as in schemas.DECISIONS."""
        return self._noted(schemas.DECISIONS, self._decisions)

    def interval_table(self) -> pd.DataFrame:
        """Every judged control interval, as in schemas.INTERVALS."""
        return self._noted(schemas.INTERVALS, self._intervals)

    def _noted(self, schema: schemas.TableSchema, rows: list[tuple[object, ...]]) -> pd.DataFrame:
        """Rows in the order of a schema's columns, the first of which is an instant."""
        table = pd.DataFrame(rows, columns=list(schema.columns))
        table["t_s"] = table["t_s"].astype(float) - self._start_s
        return table

    def event_table(self) -> pd.DataFrame:
        """All events in order, as in schemas.EVENTS."""
        table = pd.DataFrame(self._events, columns=["t_s", "kind", "session_id", "detail"])
        table["t_s"] = table["t_s"].astype(float) - self._start_s
        table["session_id"] = table["session_id"].astype("Int64")
        return table.sort_values("t_s", kind="stable", ignore_index=True)


def _padded(notes: list[float], length: int) -> Floats:
    """The notes, and NaN for the frames that never got so far."""
    padded = np.full(length, np.nan)
    padded[: len(notes)] = notes
    return padded
