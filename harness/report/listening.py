"""The listening panel: what one caller said, and when a collapsed and a healthy run heard them.

Both runs were offered the same schedule, so one recording serves both. Only audio that may be
passed on goes into the page.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import soundfile

from harness.core.errors import CorpusError
from harness.core.seeding import named_rng
from harness.diagnosis.verdicts import Verdict
from harness.report.recorded import RecordedRun
from harness.workload.audio import Samples
from harness.workload.cache import CachedClip, CorpusCache
from harness.workload.corpus import load_corpus
from harness.workload.manifest import load_manifests
from harness.workload.streams import AudioStream, draw_streams

REDISTRIBUTABLE = frozenset({"public-domain", "CC0-1.0", "CC-BY-4.0"})
# Of a broadcast the licence may cover the selection, not the recording.
_NOT_OURS_TO_PASS_ON = frozenset({"broadcast"})
MAX_AUDIO_S = 60.0
NUM_BARS = 240
_MANIFESTS = Path(__file__).resolve().parents[2] / "audio_corpora"


@dataclass(frozen=True, kw_only=True)
class Lane:
    """How one run answered the caller.

    silences: (start_s, end_s); answers: instants of frames' last tokens, seconds into the call.
    """

    title: str
    verdict: str
    silences: tuple[tuple[float, float], ...]
    answers: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Listening:
    """One caller's audio, with both runs' answers to it.

    audio: MP3, mono. bars: peak level of equal parts of the audio, 0..1.
    """

    session_id: int
    audio: bytes
    duration_s: float
    bars: tuple[float, ...]
    lanes: tuple[Lane, Lane]
    credits: tuple[str, ...]


def listening_pair(runs: Sequence[RecordedRun]) -> tuple[RecordedRun, RecordedRun] | None:
    """A collapsed and an alive live run of one schedule, the first there is; None if none."""
    live = [run for run in runs if run.summary["evidence"].startswith("live")]
    for collapsed in live:
        for healthy in live:
            is_pair = collapsed.verdict.is_collapse and healthy.verdict is Verdict.alive
            offered = (run.summary["schedule_digest"] for run in (collapsed, healthy))
            if is_pair and len({*offered}) == 1:
                return collapsed, healthy
    return None


def listen(pair: tuple[RecordedRun, RecordedRun], cache: Path) -> Listening:
    """The panel for a pair of runs.

    Raises: CorpusError if the audio is not in the cache, is not what the run heard, or no caller's
    may be passed on; TelemetryError if a recording is torn.
    """
    collapsed, _ = pair
    config = collapsed.origin["config"]
    budget_s = float(config["model"]["frame_budget_s"])
    num_frames = int(min(MAX_AUDIO_S, config["workload"]["duration_s"]) / budget_s + 1e-9)
    corpora, rate_hz = config["workload"]["corpora"], int(config["model"]["sample_rate_hz"])
    streams = draw_streams(
        load_corpus(corpora, cache_dir=cache / "corpora", sample_rate_hz=rate_hz),
        num_sessions=int(config["workload"]["num_sessions"]),
        frame_budget_s=budget_s,
        rng=named_rng(collapsed.seed, "streams"),
    )
    licences = _licences(CorpusCache(cache / "corpora"), corpora)
    session = _caller(streams, num_frames, licences)
    offered = collapsed.schedule().drop_duplicates("session_id").set_index("session_id")
    if streams[session].prefix_digest() != offered.loc[session, "prefix_digest"]:
        raise CorpusError(
            f"session {session} of {collapsed.digest} was offered other audio than is in {cache}: "
            "run the experiment again"
        )
    samples = np.concatenate([streams[session].frame(index) for index in range(num_frames)])
    heard = streams[session].clips(num_frames)
    return Listening(
        session_id=session,
        audio=_compressed(samples, rate_hz),
        duration_s=len(samples) / rate_hz,
        bars=_bars(samples),
        lanes=(_lane(pair[0], session), _lane(pair[1], session)),
        credits=tuple(_credits([licences[clip.corpus, clip.clip_id] for clip in heard])),
    )


def _licences(cache: CorpusCache, corpora: Sequence[str]) -> dict[tuple[str, str], CachedClip]:
    return {
        (clip.corpus, clip.clip_id): clip for name in corpora for clip in cache.clips_of(name) or ()
    }


def _caller(
    streams: Sequence[AudioStream],
    num_frames: int,
    licences: dict[tuple[str, str], CachedClip],
) -> int:
    """The first session whose every clip may be passed on. Raises: CorpusError if there is none."""
    for session, stream in enumerate(streams):
        clips = [licences[clip.corpus, clip.clip_id] for clip in stream.clips(num_frames)]
        if all(c.licence in REDISTRIBUTABLE and c.kind not in _NOT_OURS_TO_PASS_ON for c in clips):
            return session
    raise CorpusError(
        f"none of {len(streams)} callers speaks only in clips under "
        f"{', '.join(sorted(REDISTRIBUTABLE))}: run the experiment with another seed"
    )


def _credits(clips: Sequence[CachedClip]) -> list[str]:
    """Who is to be credited for each clip, once."""
    manifests = load_manifests(_MANIFESTS)
    return [
        f"{clip.clip_id} of {clip.corpus} ({clip.licence}, {manifests[clip.corpus].attribution})"
        for clip in dict.fromkeys(clips)
    ]


def _lane(run: RecordedRun, session: int) -> Lane:
    frames = run.frames()
    assert frames is not None, "a run with a schedule digest has frames"
    own = frames[frames["session_id"] == session].sort_values("frame")
    start_s = float(own["release_s"].iloc[0])
    ends = own["last_token_s"].dropna() - start_s
    return Lane(
        title=run.label,
        verdict=run.summary["verdict"],
        silences=tuple(_spans(own, start_s)),
        answers=tuple(round(float(end), 2) for end in ends),
    )


def _spans(frames: pd.DataFrame, start_s: float) -> list[tuple[float, float]]:
    """Stretches of silent frames, from the first release to the last deadline of each."""
    silent = frames["silent"].to_numpy()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], silent, [False]]).astype(int)))
    release, deadline = frames["release_s"].to_numpy(), frames["deadline_s"].to_numpy()
    return [
        (round(float(release[first] - start_s), 2), round(float(deadline[end - 1] - start_s), 2))
        for first, end in zip(edges[::2], edges[1::2], strict=True)
    ]


def _bars(samples: Samples) -> tuple[float, ...]:
    peaks = np.array([np.abs(part).max() for part in np.array_split(samples, NUM_BARS)])
    return tuple(np.round(peaks / max(float(peaks.max()), 1e-9), 3).tolist())


def _compressed(samples: Samples, rate_hz: int) -> bytes:
    sink = io.BytesIO()
    soundfile.write(sink, samples, rate_hz, format="MP3", subtype="MPEG_LAYER_III")
    return sink.getvalue()
