"""The schedule of a run: every release, stream and answer length, drawn up front from the seed.

It is a table, written before the run, so that two variants can be shown to have had the same offer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from harness.config import RunConfig
from harness.core.digests import digest
from harness.core.seeding import named_rng
from harness.workload.answers import draw_answers
from harness.workload.arrivals import session_frames, session_starts
from harness.workload.corpus import Clip, load_corpus
from harness.workload.streams import AudioStream, NoAudio, SessionStream, draw_streams


def draw_run_streams(run: RunConfig, clips: Sequence[Clip]) -> list[AudioStream]:
    """The sessions' audio streams; a function of the seed, the sessions and the corpus alone."""
    return draw_streams(
        clips,
        num_sessions=run.workload.num_sessions,
        frame_budget_s=run.model.frame_budget_s,
        rng=named_rng(run.seed, "streams"),
    )


def load_run_streams(run: RunConfig, corpora_dir: Path) -> Sequence[SessionStream]:
    """The sessions' streams, from the cached corpora if the model hears. Raises: CorpusError."""
    if run.model.sample_rate_hz is None:
        return silent_streams(run)
    clips = load_corpus(
        run.workload.corpora, cache_dir=corpora_dir, sample_rate_hz=run.model.sample_rate_hz
    )
    return draw_run_streams(run, clips)


def silent_streams(run: RunConfig) -> list[NoAudio]:
    """Sessions without audio: a loop's, or those of an engine that hears nothing."""
    return [NoAudio(session_id) for session_id in range(run.workload.num_sessions)]


def build_schedule(run: RunConfig, streams: Sequence[SessionStream]) -> pd.DataFrame:
    """One row a frame, as in telemetry's SCHEDULE schema, ordered by release."""
    budget = run.model.frame_budget_s
    starts = session_starts(run)
    num_frames = session_frames(run, starts)
    answers = draw_answers(run)
    tables = []
    for session_id, (start_s, stream) in enumerate(zip(starts, streams, strict=True)):
        if not num_frames[session_id]:
            continue
        frames = np.arange(num_frames[session_id])
        tables.append(
            pd.DataFrame(
                {
                    "session_id": session_id,
                    "frame": frames,
                    "release_s": start_s + frames * budget,
                    "clip_id": stream.start.clip_id,
                    "offset_s": stream.start.offset_s,
                    "output_tokens": answers[session_id, : len(frames)],
                    "prefix_digest": stream.prefix_digest(),
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    return table.sort_values(["release_s", "session_id"], kind="stable", ignore_index=True)


def departures(run: RunConfig, schedule: pd.DataFrame) -> list[tuple[float, int]]:
    """(instant, session) of every call that ends before the run does, in order.

    A call hangs up at the deadline of its last frame. Nobody leaves a closed system.
    """
    if not run.workload.arrivals.is_open:
        return []
    ends = schedule.groupby("session_id")["release_s"].max() + run.model.frame_budget_s
    left = ends[ends < run.workload.duration_s - 1e-9].sort_values(kind="stable")
    return [(float(end_s), int(str(session))) for session, end_s in left.items()]


def schedule_digest(schedule: pd.DataFrame) -> str:
    """Digest of everything that was offered; equal offers have equal digests."""
    return digest(schedule.to_dict(orient="list"))
