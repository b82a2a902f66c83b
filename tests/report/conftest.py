"""A results directory as a pair of live runs leaves it, and a corpus cache, both made by hand."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from harness.analysis.runs import run_summaries
from harness.analysis.tables import write_tables
from harness.composition import compose
from harness.config import RunConfig
from harness.core.digests import plain
from harness.core.files import write_json, write_text
from harness.diagnosis.summary import unserved
from harness.diagnosis.verdicts import Diagnosis, Verdict
from harness.telemetry import schemas
from harness.telemetry.frames import session_frames
from harness.telemetry.provenance import provenance
from harness.workload.audio import write_pcm16
from harness.workload.cache import CachedClip, CorpusCache, sha256_of
from harness.workload.corpus import load_corpus
from harness.workload.manifest import load_manifests
from harness.workload.schedule import build_schedule, draw_run_streams

MANIFESTS = Path(__file__).resolve().parents[2] / "audio_corpora"
RATE_HZ = 16_000


def fill_cache(cache: Path, **kinds: tuple[str, str]) -> None:
    """Two clips of noise, 30 s each, in every corpus named: corpus -> (licence, kind)."""
    store = CorpusCache(cache / "corpora")
    rng = np.random.default_rng(0)
    for corpus, (licence, kind) in kinds.items():
        clips = []
        for name in ("one", "two"):
            path = store.clip(corpus, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_pcm16(path, rng.normal(0, 0.1, 30 * RATE_HZ).astype(np.float32), RATE_HZ)
            clips.append(
                CachedClip(
                    corpus=corpus,
                    clip_id=name,
                    file=str(path.relative_to(store.directory)),
                    file_sha256=str(sha256_of(path)),
                    sample_rate_hz=RATE_HZ,
                    duration_s=30.0,
                    language="en",
                    kind=kind,
                    licence=licence,
                    source="made here",
                    sha256="0",
                )
            )
        store.write_index(load_manifests(MANIFESTS)[corpus], tuple(clips))


def record(results: Path, cache: Path, run: RunConfig, verdict: Verdict, heard_s: float) -> Any:
    """A run directory in which every session is answered until `heard_s`; returns its summary."""
    clips = load_corpus(run.workload.corpora, cache_dir=cache / "corpora", sample_rate_hz=RATE_HZ)
    schedule = build_schedule(run, draw_run_streams(run, clips))
    frames = []
    for session, offered in schedule.groupby("session_id"):
        release = offered["release_s"].to_numpy()
        answered = release[release < heard_s] + 0.05
        frames.append(
            session_frames(
                session_id=int(str(session)),
                release_s=release,
                released_s=release,
                ingest_s=np.zeros(len(release)),
                expected=offered["output_tokens"].to_numpy(),
                arrival_s=answered,
                arrived=offered["output_tokens"].to_numpy()[: len(answered)],
                frame_budget_s=run.model.frame_budget_s,
                silent_after_frames=3,
                tick_wait_share=0.8,
            )
        )
    directory = results / "runs" / run.experiment / run.digest
    directory.mkdir(parents=True)
    write_text(directory / "config.yaml", yaml.safe_dump(plain(run)))
    origin = provenance(run, command=["harness", "experiment=cliff"], evidence=run.evidence)
    write_json(directory / "provenance.json", origin)
    schemas.SCHEDULE.write(schedule, directory)
    schemas.FRAMES.write(pd.concat(frames, ignore_index=True), directory)
    measured = {
        "completeness": 1.0 if verdict is Verdict.alive else 0.5,
        "deadline_miss_share": 0.0 if verdict is Verdict.alive else 0.5,
        "tick_view_miss_share": 0.0,
        "schedule_digest": "the same",
    }
    summary = unserved(run, Diagnosis(verdict=verdict, cause="by hand <&>")) | measured
    write_json(directory / "verdict.json", summary)
    write_text(directory / "DONE", "")
    return summary


@pytest.fixture(scope="package")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stalled and an alive run of eight callers, tables of their artifact, and its figure."""
    folder = tmp_path_factory.mktemp("report")
    cache, results = folder / "cache", folder / "results"
    fill_cache(cache, librivox=("public-domain", "read"), silero_vad=("CC-BY-4.0", "broadcast"))
    common = ("workload.corpora=[librivox,silero_vad]", "workload.duration_s=20")
    summaries = []
    for retention, verdict, heard_s in (
        ("unbounded", Verdict.stalled, 9.0),
        ("sink_window", Verdict.alive, 99.0),
    ):
        run = compose([*common, f"retention={retention}"]).run_config
        summaries.append(record(results, cache, run, verdict, heard_s))
    write_tables(results, "cliff", {"": run_summaries([(s, None) for s in summaries])})
    figure = results / "figures" / "cliff.png"
    figure.parent.mkdir()
    figure.write_bytes(b"\x89PNG\r\n\x1a\n figure")
    return folder


@pytest.fixture
def results(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the results for a test to change; the cache lies beside it."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    return tmp_path / "results"
