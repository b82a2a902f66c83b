"""Questions asked aloud: out of a folder, out of a program, out of a published set."""

import dataclasses
import sys
from pathlib import Path

import datasets
import pytest

from harness.core.errors import CorpusError
from harness.workload.cache import CorpusCache
from harness.workload.fetch import fetch_corpora
from harness.workload.manifest import (
    CorpusManifest,
    FolderSource,
    HubSource,
    load_manifest,
    load_manifests,
)
from harness.workload.questions import spoken_texts
from harness.workload.speech import speak
from harness.workload.spoken import load_spoken_questions
from tests.workload.stand_ins import noise, refuse, wav_bytes

SHIPPED = Path(__file__).resolve().parents[2] / "audio_corpora"
# Writes a second of noise, of its own for each text.
TTS = (
    f"{sys.executable} -c 'import sys, zlib, numpy as np, soundfile;"
    "rng = np.random.default_rng(zlib.crc32(sys.argv[2].encode()));"
    "soundfile.write(sys.argv[1], rng.normal(0, 0.1, 22050), 22050)' {path} {text}"
)


@pytest.fixture
def spoken() -> CorpusManifest:
    return load_manifests(SHIPPED)["spoken_questions"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    directory = tmp_path / "voices"
    directory.mkdir()
    for seed, name in enumerate(spoken_texts()):
        (directory / f"{name}.wav").write_bytes(wav_bytes(noise(8000, seed), 8000))
    return directory


def test_the_shipped_folder_asks_the_probes_questions(spoken: CorpusManifest) -> None:
    assert isinstance(spoken.source, FolderSource)
    assert set(spoken.source.clip_ids) == set(spoken_texts())


def test_a_folder_of_any_rate_becomes_questions_at_the_models_rate(
    spoken: CorpusManifest, folder: Path, cache: CorpusCache
) -> None:
    fetch_corpora([spoken], cache, download=refuse, folder=folder)
    found = load_spoken_questions(
        ["spoken_questions"], cache_dir=cache.directory, sample_rate_hz=16000
    )
    first, *_, last = found.asked.asked(0, 3)
    assert first.keywords == ("portuguese",)
    assert last.question_id == "recall:brazil"
    assert found.audio_of(first).size == found.audio_of(last).size == 16000
    assert (found.audio_of(first) != found.audio_of(last)).any()


def test_two_sets_with_clips_of_one_name_are_not_mixed_up(
    spoken: CorpusManifest, folder: Path, cache: CorpusCache
) -> None:
    other = dataclasses.replace(spoken, corpus="other_voice")
    fetch_corpora([spoken, other], cache, folder=folder)
    names = ["spoken_questions", "other_voice"]
    with pytest.raises(CorpusError, match=r"\[spoken_questions, other_voice\] have clips of one"):
        load_spoken_questions(names, cache_dir=cache.directory, sample_rate_hz=16000)


def test_a_folder_is_taken_anew_whenever_it_is_named(
    spoken: CorpusManifest, folder: Path, cache: CorpusCache
) -> None:
    fetch_corpora([spoken], cache, folder=folder)
    assert fetch_corpora([spoken], cache).new_corpora == ()
    (folder / "week.wav").write_bytes(wav_bytes(noise(4000, 99), 8000))
    assert fetch_corpora([spoken], cache, folder=folder).new_corpora == ("spoken_questions",)
    clips = {clip.clip_id: clip for clip in cache.clips_of("spoken_questions") or ()}
    assert clips["week"].duration_s == 0.5


def test_what_is_wrong_with_a_folder_is_said_by_name(
    spoken: CorpusManifest, folder: Path, cache: CorpusCache
) -> None:
    with pytest.raises(CorpusError, match=r"folder of your own: name it with --folder DIR"):
        fetch_corpora([spoken], cache)
    with pytest.raises(CorpusError, match=r"nowhere is not a folder"):
        fetch_corpora([spoken], cache, folder=folder / "nowhere")
    (folder / "hot.flac").write_bytes(b"")
    with pytest.raises(CorpusError, match=r"spoken_questions/hot: .* has hot\.flac and hot\.wav"):
        fetch_corpora([spoken], cache, folder=folder)
    (folder / "hot.flac").unlink()
    (folder / "hot.wav").unlink()
    (folder / "star.wav").unlink()
    with pytest.raises(CorpusError, match=r"has no file hot, star"):
        fetch_corpora([spoken], cache, folder=folder)
    (folder / "hot.wav").write_bytes(b"not audio")
    (folder / "star.wav").write_bytes(wav_bytes(noise(100)))
    with pytest.raises(CorpusError, match=r"spoken_questions/hot: .* cannot be decoded"):
        fetch_corpora([spoken], cache, folder=folder)
    assert cache.corpora() == []


def test_a_program_speaks_every_text_into_a_file_of_its_name(tmp_path: Path) -> None:
    speak({"a": "What is this?", "b": "It's a second; really"}, TTS, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a.wav", "b.wav"}
    assert (tmp_path / "a.wav").read_bytes() != (tmp_path / "b.wav").read_bytes()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("nobody {path} {text}", r"nobody: cannot be run"),
        ("espeak {text}", r"lacks \{path\}"),
        (f"{sys.executable} -c 'exit(\"no voice\")' {{path}} {{text}}", r"a\.wav .*: no voice"),
        (f"{sys.executable} -c '' {{path}} {{text}}", r"wrote no a\.wav \(exit code 0\)"),
    ],
)
def test_a_program_that_does_not_speak_is_named(tmp_path: Path, command: str, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        speak({"a": "What?"}, command, tmp_path)


MANIFEST = """
corpus: trivia
title: A stand-in for a published question set
hub_dataset:
  {dataset: org/trivia, config: default, split: test, revision: abc, num_clips: 2,
   question: question, answer: answers}
licence: CC0-1.0
attribution: nobody
language: en
kind: question
"""


def test_a_published_set_brings_its_own_questions_and_answers(
    tmp_path: Path, cache: CorpusCache
) -> None:
    (tmp_path / "trivia.yaml").write_text(MANIFEST)
    rows = [
        {
            "audio": {"bytes": wav_bytes(noise(2400, seed), 24000), "path": None},
            "question": f"What is {seed}?",
            "answers": [f"number {seed}", str(seed)],
        }
        for seed in range(3)
    ]
    table = datasets.Dataset.from_list(rows).cast_column("audio", datasets.Audio(decode=False))
    fetch_corpora(
        [load_manifest(tmp_path / "trivia.yaml")],
        cache,
        load_dataset=lambda *_, **__: table.to_iterable_dataset(),
    )
    found = load_spoken_questions(["trivia"], cache_dir=cache.directory, sample_rate_hz=16000)
    assert [q.text for q in found.asked.questions] == ["What is 0?", "What is 1?"]
    assert found.asked.asked(1, 2)[0].keywords == ("number 1", "1")
    assert not found.asked.has_recall
    assert found.audio_of(found.asked.questions[0]).size == 1600
    (tmp_path / "trivia.yaml").write_text(MANIFEST.replace("answer: answers", "answer: gold"))
    with pytest.raises(CorpusError, match=r"has no column gold, but audio, question, answers"):
        fetch_corpora(
            [load_manifest(tmp_path / "trivia.yaml")],
            cache,
            load_dataset=lambda *_, **__: table.to_iterable_dataset(),
        )


def test_the_shipped_set_is_pinned_and_says_where_its_answers_are() -> None:
    source = load_manifests(SHIPPED)["llama_questions"].source
    assert isinstance(source, HubSource)
    assert len(source.revision) == 40
    assert (source.question, source.answer) == ("question", "answer")


def test_a_corpus_that_asks_nothing_is_refused(
    cache: CorpusCache, make_sdist, tmp_path: Path
) -> None:
    sdist = make_sdist()
    fetch_corpora([sdist.manifest], cache, download=sdist.download)
    with pytest.raises(CorpusError, match=r"small/a: asks nothing .*\[spoken_questions\]"):
        load_spoken_questions(["small"], cache_dir=cache.directory, sample_rate_hz=16000)
