"""The tables of a run: columns, types, units. Written with the files and checked when they are
read.

All `_s` columns are seconds after the run's start (the release of the first frame of session 0's
period), on the clock of harness/core/clock.py. Null means: it did not happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.core.errors import TelemetryError
from harness.core.files import replacing

# Raise the version of a table when its columns change: files of another are refused, not misread.
_VERSION = 2
_VERSION_KEY = b"harness_schema"


@dataclass(frozen=True)
class Column:
    """One column: its arrow type, its unit and what it means."""

    type: pa.DataType
    unit: str
    meaning: str


@dataclass(frozen=True)
class TableSchema:
    """One table of a run directory, stored as `<name>.parquet`."""

    name: str
    columns: dict[str, Column]
    version: int = _VERSION

    @property
    def arrow(self) -> pa.Schema:
        """The table's arrow schema, with units and meanings as metadata of its fields."""
        fields = [
            pa.field(name, column.type, metadata={"unit": column.unit, "meaning": column.meaning})
            for name, column in self.columns.items()
        ]
        return pa.schema(fields, metadata={_VERSION_KEY: self._stamp.encode()})

    @property
    def _stamp(self) -> str:
        return f"{self.name}/{self.version}"

    def write(self, frame: pd.DataFrame, directory: Path) -> Path:
        """Write the table atomically. Raises: TelemetryError if a column is missing or mistyped."""
        path = directory / f"{self.name}.parquet"
        try:
            table = pa.Table.from_pandas(frame, schema=self.arrow, preserve_index=False)
        except (KeyError, pa.ArrowException) as error:
            raise TelemetryError(f"{self.name} does not fit its schema: {error}") from error
        # pandas adds its own metadata; the schema's is what readers check.
        with replacing(path) as partial:
            pq.write_table(table.replace_schema_metadata(self.arrow.metadata), partial)
        return path

    def is_outdated(self, directory: Path) -> bool:
        """Tell whether the table is there, whole, and of another version."""
        try:
            metadata = pq.read_schema(directory / f"{self.name}.parquet").metadata or {}
        except (OSError, pa.ArrowException):
            return False
        return bool(metadata.get(_VERSION_KEY) != self.arrow.metadata[_VERSION_KEY])

    def read(self, directory: Path) -> pd.DataFrame:
        """Read the table. Raises: TelemetryError if it is missing, torn or of another version."""
        path = directory / f"{self.name}.parquet"
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException) as error:
            raise TelemetryError(
                f"{path} cannot be read: {error}: rerun the experiment with rerun=true, or remove "
                f"{directory}"
            ) from error
        found = (table.schema.metadata or {}).get(_VERSION_KEY, b"none").decode()
        if found != self._stamp:
            raise TelemetryError(
                f"{path} has schema {found}, this version reads {self._stamp}: rerun the "
                f"experiment with rerun=true, or remove {directory}"
            )
        loaded: pd.DataFrame = table.to_pandas()
        return loaded


_F = pa.float64()
_I = pa.int64()
_B = pa.bool_()
_T = pa.string()

SCHEDULE = TableSchema(
    "schedule",
    {
        "session_id": Column(_I, "1", "session"),
        "frame": Column(_I, "1", "index of the frame in its session"),
        "release_s": Column(_F, "s", "instant at which the frame is due to be released"),
        "clip_id": Column(_T, "-", "clip in which the session's stream starts"),
        "offset_s": Column(_F, "s", "where in that clip the session's stream starts"),
        "output_tokens": Column(_I, "tokens", "tokens the frame must be answered with"),
        "prefix_digest": Column(_T, "-", "digest of the session's first frame of audio"),
    },
)

FRAMES = TableSchema(
    "frames",
    {
        "session_id": Column(_I, "1", "session"),
        "frame": Column(_I, "1", "index of the frame in its session"),
        "release_s": Column(_F, "s", "scheduled release"),
        "deadline_s": Column(_F, "s", "scheduled release + B"),
        "released_s": Column(_F, "s", "actual release; null if the engine was dead by then"),
        "release_lag_s": Column(_F, "s", "lateness of the replayer itself"),
        "ingest_s": Column(
            _F, "s", "front end and input processing, before the engine's own steps"
        ),
        "first_token_s": Column(_F, "s", "first token of this frame"),
        "last_token_s": Column(_F, "s", "last token of this frame"),
        "tokens": Column(_I, "tokens", "tokens of this frame that arrived before the run ended"),
        "expected_tokens": Column(_I, "tokens", "tokens the frame must be answered with"),
        "latency_s": Column(_F, "s", "release to last token; null if it never came"),
        "missed": Column(_B, "-", "not complete at the deadline"),
        "empty": Column(_B, "-", "the session received no token between release and deadline"),
        "silent": Column(_B, "-", "part of enough empty frames in a row to count as silence"),
        "backlog": Column(_I, "frames", "released minus completed frames, at the deadline"),
        "staleness_s": Column(_F, "s", "at the deadline: age of the newest audio answered so far"),
        "tick_wait_s": Column(_F, "s", "what the paper's gateway would log as latency"),
    },
)

SCORES = TableSchema(
    "scores",
    {
        "text_id": Column(_T, "-", "passage that was told"),
        "position": Column(_I, "tokens", "of the token in its session, from 0"),
        "token_id": Column(_I, "1", "the token that the text goes on with"),
        "logprob": Column(_F, "nats", "log-probability that the model gave it"),
    },
)

ANSWERS = TableSchema(
    "answers",
    {
        "session_id": Column(_I, "1", "session"),
        "turn": Column(_I, "1", "index of the turn in its session"),
        "question_id": Column(_T, "-", "what was asked (harness/workload/questions.py)"),
        "keywords": Column(pa.list_(_T), "-", "a right answer holds one of them"),
        "position": Column(_I, "tokens", "tokens of the session before the answer"),
        "token_ids": Column(pa.list_(_I), "1", "the answer"),
        "text": Column(_T, "-", "the answer in words"),
        "entropy_nats": Column(_F, "nats", "of the next token, mean over the answer; lower bound"),
        "ended": Column(_B, "-", "the model ended its turn itself"),
    },
    version=3,
)

ATTENTION = TableSchema(
    "attention",
    {
        "text_id": Column(_T, "-", "passage of the probe's texts"),
        "layer": Column(_I, "1", "layer of the model, from 0"),
        "first_tokens": Column(_I, "tokens", "first tokens of the text that are looked at"),
        "mass": Column(_F, "0..1", "attention they get; mean over heads and late queries"),
    },
)

POOL = TableSchema(
    "pool",
    {
        "t_s": Column(_F, "s", "instant of the sample"),
        "state_age_s": Column(_F, "s", "age of the scheduler's record at that instant"),
        "total_blocks": Column(_I, "blocks", "KV pool"),
        "used_blocks": Column(_I, "blocks", "held by requests"),
        "occupancy": Column(_F, "0..1", "used / total"),
        "running": Column(_I, "requests", "in the running batch"),
        "waiting": Column(_I, "requests", "could run if blocks were free"),
        "paused": Column(_I, "requests", "wait for their next frame, holding their blocks"),
        "preempted": Column(_I, "requests", "waiting, and their blocks were taken away"),
        "preemptions": Column(_I, "1", "since the run's start"),
        "steps": Column(_I, "1", "scheduler steps since the run's start"),
        "scheduled_tokens": Column(_I, "tokens", "since the run's start"),
        "host_bytes": Column(_I, "bytes", "host memory of the run's processes; null if simulated"),
    },
)

STEPS = TableSchema(
    "steps",
    {
        "begin_s": Column(_F, "s", "the scheduler decided on the step; negative: warm-up"),
        "end_s": Column(_F, "s", "the scheduler had taken in what the step sampled"),
        "num_requests": Column(_I, "requests", "in the step"),
        "num_prefill_tokens": Column(_I, "tokens", "prompt tokens computed in the step"),
        "num_frames": Column(_I, "frames", "whose audio was encoded in the step"),
        "num_context_tokens": Column(_I, "tokens", "cached tokens that its attention reads"),
    },
)

EVENTS = TableSchema(
    "events",
    {
        "t_s": Column(_F, "s", "instant of the event"),
        "kind": Column(
            _T,
            "-",
            "session_start | session_end | session_left | preempted | rotated | recycled "
            "| engine_dead | interrupted | run_end",
        ),
        "session_id": Column(pa.int64(), "1", "session, if the event is about one"),
        "detail": Column(_T, "-", "what a person needs to know"),
    },
)

DECISIONS = TableSchema(
    "decisions",
    {
        "t_s": Column(_F, "s", "instant of the arrival"),
        "session_id": Column(_I, "1", "session that asked to be let in"),
        "admitted": Column(_B, "-", "let in, or shed"),
        "reason": Column(_T, "-", "what decided"),
        "live_sessions": Column(_I, "1", "sessions that were in, without this one"),
        "session_cap": Column(_F, "1", "sessions that might be in at once"),
        "signal_s": Column(
            _F, "s", "latency of the last judged interval; infinite: its percentile missed"
        ),
        "occupancy": Column(_F, "0..1", "of the KV pool"),
        "saturation_s": Column(_F, "s", "forecast of the time until the pool is full, with it in"),
    },
)

INTERVALS = TableSchema(
    "intervals",
    {
        "t_s": Column(_F, "s", "end of the control interval"),
        "signal_s": Column(_F, "s", "percentile of the latencies seen in it"),
        "num_frames": Column(_I, "frames", "latencies seen in it"),
        "live_sessions": Column(_I, "1", "sessions that were in"),
        "congested": Column(_B, "-", "the signal was over the target"),
        "session_cap": Column(_F, "1", "as it stands afterwards"),
    },
)
