"""Texts told to a live engine in streaming sessions, against float32 transformers."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from harness.composition import expand
from harness.config import EngineKind, Invocation
from harness.core.errors import ConfigError
from harness.engines.reference import ReferenceScorer, frame_mask
from harness.experiments.checks import check
from harness.experiments.grid import run_all
from harness.kv.retention import Retention, is_visible
from harness.models.probe import probe_directory

TOLERANCE = 1e-3
CLEARLY_DIFFERENT = 0.1
NUM_TOKENS = 192


def points(tmp_path: Path, *overrides: str) -> list[Invocation]:
    return expand(
        [
            "experiment=sinks",
            "grid={}",
            "more_grids=[]",
            "retention=sink_window",
            "retention.window_tokens=64",
            "retention.sink_tokens=32",
            "workload.num_sessions=3",
            f"workload.duration_s={NUM_TOKENS // 16}",
            "engine.dtype=float32",
            "engine.kv_pool_blocks=40",
            f"paths.results_dir={tmp_path / 'results'}",
            f"paths.cache_dir={tmp_path}",
            *overrides,
        ]
    )


@pytest.fixture
def tiny_probe(tmp_path: Path) -> dict[str, list[int]]:
    """Random float32 weights, scaled so that attention matters, in the probe's place."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    directory = probe_directory(points(tmp_path)[0].model, tmp_path)
    config = Qwen2Config(
        vocab_size=256,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(directory)
    rng = np.random.default_rng(0)
    texts = {name: rng.integers(2, 256, 300).tolist() for name in ("a", "b", "c", "d")}
    (directory / "texts.json").write_text(json.dumps(texts))
    (directory / "COMPLETE").touch()
    return texts


async def _reference(invocation: Invocation, cache: Path, ids: list[int]) -> np.ndarray:
    scorer = ReferenceScorer(invocation.run_config, cache)
    await scorer.start()
    return np.concatenate([part async for part in scorer.score(0, ids)])


@pytest.mark.live
def test_every_token_of_a_told_text_is_scored_as_by_the_reference_with_the_same_mask(
    tmp_path: Path, tiny_probe: dict[str, list[int]]
) -> None:
    (finished,) = run_all(points(tmp_path), Console(quiet=True))
    assert finished.summary["verdict"] == "alive", finished.summary["cause"]
    assert finished.summary["evidence"] == "live-smollm2"
    assert finished.summary["completeness"] == 1.0
    scores = finished.scores()
    assert scores is not None
    assert list(dict.fromkeys(scores["text_id"])) == ["a", "b", "c"]
    for name, found in scores.groupby("text_id"):
        ids = tiny_probe[str(name)][:NUM_TOKENS]
        assert found["token_id"].tolist() == ids[1:]
        expected = asyncio.run(_reference(points(tmp_path)[0], tmp_path, ids))
        assert np.abs(found["logprob"].to_numpy() - expected).max() < TOLERANCE
    for wrong in ("retention.sink_tokens=0", "retention.sink_tokens=31", "retention=unbounded"):
        (other,) = points(tmp_path, *([wrong] if "=unb" not in wrong else _unbounded()))
        expected = asyncio.run(_reference(other, tmp_path, ids))
        assert np.abs(found["logprob"].to_numpy() - expected).max() > CLEARLY_DIFFERENT, wrong


def _unbounded() -> list[str]:
    return ["retention.window_tokens=null", "retention.sink_tokens=0"]


@pytest.mark.parametrize(("window", "sinks"), [(4, 2), (5, 0), (8, 4), (4, 6)])
def test_the_references_mask_is_the_engines_where_sinks_are_whole_blocks(
    window: int, sinks: int
) -> None:
    retention = Retention(window_tokens=window, sink_tokens=sinks)
    mask = frame_mask(30, 4, retention, 2)
    for query in range(30):
        for key in range(30):
            assert mask[query, key] == is_visible(key, query, query // 4 * 4, retention, 2)


def test_attention_on_the_first_tokens_grows_to_all_of_it(
    tmp_path: Path, tiny_probe: dict[str, list[int]]
) -> None:
    async def attended() -> np.ndarray:
        scorer = ReferenceScorer(points(tmp_path)[0].run_config, tmp_path)
        await scorer.start()
        before = [part async for part in scorer.score(0, tiny_probe["a"][:64])]
        mass = await scorer.attention_mass(tiny_probe["a"][:64], (1, 8, 64))
        after = [part async for part in scorer.score(0, tiny_probe["a"][:64])]
        assert np.array_equal(before[0], after[0])
        return mass

    mass = asyncio.run(attended())
    assert mass.shape == (2, 3)
    assert np.allclose(mass[:, 2], 1.0, atol=1e-5)
    assert (mass[:, 0] < mass[:, 1]).all()
    assert (mass[:, 1] < mass[:, 2]).all()


def test_the_references_sinks_are_exactly_s_tokens() -> None:
    mask = frame_mask(8, 2, Retention(window_tokens=4, sink_tokens=1), 2)
    assert mask[7].nonzero()[0].tolist() == [0, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["engine=sim"], r"engine=sim does not do workload\.regime=score: choose vllm or ref"),
        (["workload.regime=replay", "engine=reference"], r"engine=reference does not do .*replay"),
    ],
)
def test_a_run_that_cannot_be_scored_is_refused_before_it_starts(
    tmp_path: Path, overrides: list[str], words: str
) -> None:
    (point,) = points(tmp_path, *overrides)
    with pytest.raises(ConfigError, match=words):
        check(point.run_config)


def test_without_the_probes_weights_the_command_says_how_to_fetch_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model=smollm2 has no weights in .*make probe"):
        run_all(points(tmp_path), Console(quiet=True))
    assert not (tmp_path / "results").exists()


def test_listed_points_are_run_as_they_stand_and_the_user_may_fix_a_key() -> None:
    listed = expand(["experiment=sinks"])
    kept = {
        (p.engine.kind.name, p.retention.window_tokens, p.retention.sink_tokens) for p in listed
    }
    assert len(kept) == len(listed) == 16
    fixed = expand(["experiment=sinks", "workload.duration_s=24"])
    assert {p.workload.duration_s for p in fixed} == {24}
    live = expand(["experiment=sinks", "engine=vllm"])
    assert live == [p for p in listed if p.engine.kind is EngineKind.vllm]
