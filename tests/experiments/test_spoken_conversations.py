"""A model that hears, asked aloud and told texts, on a live engine; its words are noise."""

import asyncio
import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from rich.console import Console

from harness.composition import expand
from harness.config import Invocation
from harness.core.errors import ConfigError, CorpusError, EngineError
from harness.engines.conversing import _check_given
from harness.experiments.checks import check, check_design
from harness.experiments.conversations import draw, tabulate
from harness.experiments.grid import run_all
from harness.experiments.plan import plan
from harness.experiments.scoring_run import score_run
from harness.models.tiny import ensure_tiny_checkpoint
from harness.reproduce.registry import at_full_scale, load_artifacts
from harness.telemetry.schemas import SCORES
from harness.workload import told
from harness.workload.cache import CorpusCache
from harness.workload.fetch import fetch_corpora
from harness.workload.manifest import load_manifests
from harness.workload.questions import spoken_texts

PROJECT = Path(__file__).resolve().parents[2]
CACHE = PROJECT / ".cache"
# Not whole frames, and none as long as another: the last is 3.3 s.
LENGTHS_S = {name: 0.83 + 0.247 * number for number, name in enumerate(spoken_texts())}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with tiny weights and questions that are noise."""
    directory = tmp_path / "cache"
    checkpoint = ensure_tiny_checkpoint("qwen3_omni", CACHE)
    shutil.copytree(checkpoint, directory / "checkpoints" / checkpoint.name)
    voices = tmp_path / "voices"
    voices.mkdir()
    rng = np.random.default_rng(0)
    for name, length_s in LENGTHS_S.items():
        soundfile.write(voices / f"{name}.wav", rng.normal(0, 0.1, int(length_s * 16000)), 16000)
    manifest = load_manifests(PROJECT / "audio_corpora")["spoken_questions"]
    fetch_corpora([manifest], CorpusCache(directory / "corpora"), folder=voices)
    return directory


@pytest.fixture
def points(tmp_path: Path, cache: Path) -> Callable[..., list[Invocation]]:
    def make(experiment: str, *overrides: str) -> list[Invocation]:
        return expand(
            [
                f"experiment={experiment}",
                "model=qwen3_omni",
                "grid={}",
                "more_grids=[]",
                "workload.num_sessions=2",
                "workload.duration_s=10",
                "workload.corpora=[spoken_questions]",
                "engine.kv_pool_blocks=100",
                f"paths.results_dir={tmp_path / 'results'}",
                f"paths.cache_dir={cache}",
                *overrides,
            ]
        )

    return make


ASKED = ("model.other_tokens_per_frame=160", "model.output_tokens_per_frame=6")


@pytest.mark.live
@pytest.mark.parametrize("experiment", ["free_running", "turns"])
def test_every_question_is_heard_at_its_place_and_answered(
    points: Callable[..., list[Invocation]], experiment: str, tmp_path: Path
) -> None:
    finished = run_all(points(experiment, *ASKED), Console(quiet=True))
    summary = finished[0].summary
    assert summary["verdict"] == "alive", summary["cause"]
    assert summary["evidence"] == "live-tiny"
    answers = finished[0].answers()
    assert answers is not None
    assert len(answers) == 10
    first = answers[answers["session_id"] == 0]
    assert first["question_id"].tolist()[0] == "brazil"
    assert first["question_id"].tolist()[-1] == "recall:brazil"
    # That vLLM counts as many prompt tokens is asserted turn by turn in the engine itself.
    steps = np.diff(first["position"])
    heard = [LENGTHS_S[name.partition(":")[0]] for name in first["question_id"][1:]]
    assert (np.argsort(steps[:-1]) == np.argsort(heard[:-1])).all()
    if experiment == "free_running":
        assert set(answers["token_ids"].map(len)) == {6}
        assert not answers["ended"].any()
    # Nothing was older than a window here: there is a table of turns, and nothing to draw.
    tables = tabulate(finished)
    assert len(tables["turns"]) == 10
    assert draw(tables, tmp_path / "figure") == []


def _tell(point: Invocation, directory: Path) -> None:
    """As an experiment does in a process of its own, but with texts that need not be fetched."""
    told._heads = lambda cache, length: {"a": "abc " * 90, "b": "xyz " * 90}
    asyncio.run(score_run(point.run_config, directory, point.paths.cache, lambda progress: None))


@pytest.mark.live
def test_a_text_is_told_in_the_models_own_tokens(
    points: Callable[..., list[Invocation]], tmp_path: Path
) -> None:
    (point,) = points("sinks")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["harness.experiments.vllm_preload"])
    process = context.Process(target=_tell, args=(point, tmp_path))
    process.start()
    process.join()
    scores = SCORES.read(tmp_path)
    assert scores.groupby("text_id").size().to_dict() == {"a": 139, "b": 139}
    assert (scores["logprob"] < 0).all()


def test_turns_longer_than_planned_are_refused(
    points: Callable[..., list[Invocation]],
) -> None:
    (finished,) = run_all(points("turns"), Console(quiet=True))
    assert finished.summary["verdict"] == "never_served"
    assert "over the 28 a turn that the run was planned for" in finished.summary["cause"]


def test_a_layout_that_vllm_counts_otherwise_is_refused() -> None:
    _check_given(3, [1, 2, 3], 0)
    with pytest.raises(EngineError, match="was given 4 tokens by the chat layout and 3 by vLLM"):
        _check_given(4, [1, 2, 3], 0)


def test_questions_that_were_not_fetched_are_asked_for_before_an_engine_starts(
    points: Callable[..., list[Invocation]], tmp_path: Path
) -> None:
    with pytest.raises(CorpusError, match=r"fetch_corpora\.py llama_questions"):
        run_all(points("turns", "workload.corpora=[llama_questions]"), Console(quiet=True))
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("experiment", "overrides", "words"),
    [
        ("turns", ["model=moshi"], r"model=moshi holds no conversations here"),
        ("sinks", ["model=moshi"], r"model=moshi cannot be told a text"),
        ("sinks", ["engine=reference"], r"engine=reference is for a probe"),
        ("cliff", ["model.other_tokens_per_frame=5"], r"is not replayed by a live engine"),
        ("turns", ["retention=recycle"], r"retention=recycle cuts a call's frames"),
    ],
)
def test_what_cannot_be_asked_or_told_is_refused(
    points: Callable[..., list[Invocation]], experiment: str, overrides: list[str], words: str
) -> None:
    point = points(experiment, *overrides)[0]
    with pytest.raises(ConfigError, match=words):
        check(point.run_config)


def test_the_quality_probes_have_a_plan_on_real_weights(tmp_path: Path) -> None:
    plans = {a.id: a.points(tmp_path) for a in at_full_scale(load_artifacts())}
    for name, words in {
        "sinks_full": "8, each 73 frames of a text",
        "free_running_full": "32, each 80 questions (aloud, from llama_questions)",
        "turns_full": "96, each 28 questions (aloud, from llama_questions)",
    }.items():
        runs = [point.run_config for point in plans[name]]
        assert {run.evidence for run in runs} == {"live-full"}
        for run in runs:
            check_design(run)
        console = Console(width=200, record=True, quiet=False)
        with console.capture() as shown:
            console.print(plan(runs[0]))
        assert words in shown.get()
        assert "never full" in shown.get()
