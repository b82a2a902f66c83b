"""The omni models on a real engine: what a frame adds, and whether a call says the right thing."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from harness.composition import compose
from harness.config import RunConfig
from harness.kv.geometry import blocks_for
from harness.kv.retention import plateau_blocks
from harness.models.tiny import ensure_tiny_checkpoint
from tests.models.recorded_call import RecordedCall, noise, record_call

pytestmark = pytest.mark.live

CACHE = Path(__file__).resolve().parents[2] / ".cache"
MODELS = ("qwen2_5_omni", "qwen3_omni", "minicpm_o")
NUM_FRAMES = 32
WINDOW_TOKENS = 128
# float32 on both sides; a position that is off by one moves log-probabilities 20 times further.
TOLERANCE = 1e-5
CLEARLY_DIFFERENT = 2e-4


@dataclass(frozen=True)
class Calls:
    """The same call into two engines of one model."""

    run: RunConfig
    bounded_run: RunConfig
    free: RecordedCall
    bounded: RecordedCall


@pytest.fixture(scope="module", params=MODELS)
def calls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Calls:
    model: str = request.param
    shared = (
        f"model={model}",
        "engine=vllm",
        "engine.dtype=float32",
        "engine.kv_pool_blocks=80",
        "engine.max_model_len=2048",
        "workload.num_sessions=1",
    )
    bound = ("retention=sink_window", f"retention.window_tokens={WINDOW_TOKENS}")
    run = compose([*shared, "retention=unbounded"]).run_config
    bounded_run = compose([*shared, *bound, "retention.sink_tokens=32"]).run_config
    found = [
        record_call(
            each, num_frames=NUM_FRAMES, directory=tmp_path_factory.mktemp(model), cache=CACHE
        )
        for each in (run, bounded_run)
    ]
    return Calls(run, bounded_run, *found)


def test_a_frame_adds_exactly_the_catalogued_tokens(calls: Calls) -> None:
    tokens = calls.run.model.kv_tokens_per_frame
    assert calls.free.computed_tokens == [tokens] * NUM_FRAMES
    # Over as many frames as a block has tokens, no other growth gives these blocks.
    block = calls.run.engine.block_size_tokens
    assert block <= NUM_FRAMES
    assert calls.free.used_blocks == [
        blocks_for(tokens * frames, block) for frames in range(1, NUM_FRAMES + 1)
    ]


def test_a_streamed_call_says_what_one_forward_over_its_whole_history_says(calls: Calls) -> None:
    from tests.models.references import reference

    model = calls.run.model
    plain = reference(
        model.name,
        ensure_tiny_checkpoint(model.name, CACHE),
        model.prompt_tokens_per_frame - model.wrapper_tokens_per_frame,
    )
    said = np.array(calls.free.token_ids)
    logprobs = np.array(calls.free.logprobs)
    audios = noise(calls.run, NUM_FRAMES)

    def worst(**wrong: int) -> float:
        table = plain.logprobs(calls.free.token_ids, audios, **wrong).numpy()
        there = np.take_along_axis(table, said[..., None], axis=2)[..., 0]
        return float(np.max(np.abs(there - logprobs)))

    assert worst() < TOLERANCE
    # M-RoPE off by one from the second frame on, either way.
    assert worst(late_by=-1) > CLEARLY_DIFFERENT
    assert worst(late_by=1) > CLEARLY_DIFFERENT
    table = plain.logprobs(calls.free.token_ids, audios).numpy()
    assert (table.argmax(axis=2) == said).all()
    # The audio is heard: the same call with its frames in another order is another call.
    turned = plain.logprobs(calls.free.token_ids, audios[::-1]).numpy()
    assert np.max(np.abs(turned - table)) > CLEARLY_DIFFERENT


def test_a_call_younger_than_the_window_says_the_same_with_and_without_a_bound(
    calls: Calls,
) -> None:
    young = WINDOW_TOKENS // calls.run.model.kv_tokens_per_frame
    assert young >= 2
    assert calls.bounded.token_ids[:young] == calls.free.token_ids[:young]
    assert calls.bounded.logprobs[:young] == calls.free.logprobs[:young]
    # An old one does not: else this would hold of an engine without the bound.
    assert calls.bounded.logprobs != calls.free.logprobs


def test_a_bounded_call_computes_as_much_and_holds_no_more_than_its_plateau(calls: Calls) -> None:
    tokens = calls.run.model.kv_tokens_per_frame
    plateau = plateau_blocks(calls.bounded_run.retention, 32, tokens)
    assert plateau is not None
    assert calls.bounded.computed_tokens == [tokens] * NUM_FRAMES
    assert max(calls.bounded.used_blocks) <= plateau < calls.free.used_blocks[-1]


def test_a_frame_reaches_the_engine_without_padding(calls: Calls) -> None:
    # 100 log-mel frames a second; the feature extractors by themselves pad to 30 or 300 seconds.
    frame = round(100 * calls.run.model.frame_budget_s)
    assert calls.free.feature_length == [frame] * NUM_FRAMES


@pytest.mark.parametrize("model", ["qwen2_5_omni", "qwen3_omni"])
def test_a_call_says_the_same_whether_its_host_work_is_bounded_or_not(
    model: str, tmp_path: Path
) -> None:
    shared = (f"model={model}", "engine=vllm", "engine.dtype=float32", "retention=sink_window")
    answers = []
    for is_bounded in ("true", "false"):
        run = compose([*shared, f"engine.host_bound={is_bounded}"]).run_config
        (tmp_path / is_bounded).mkdir()
        answers.append(
            record_call(run, num_frames=20, directory=tmp_path / is_bounded, cache=CACHE)
        )
    assert answers[0].token_ids == answers[1].token_ids
    assert answers[0].logprobs == answers[1].logprobs


@pytest.mark.benchmark
def test_a_frame_is_taken_in_within_milliseconds(calls: Calls) -> None:
    # Padding to 300 s, as the feature extractors do by themselves, takes half a second.
    assert np.median(calls.free.ingest_s) < 0.05


@pytest.mark.parametrize("calls", ["minicpm_o"], indirect=True)
def test_minicpm_o_in_its_published_layout_runs_on_the_audio_architecture(
    calls: Calls, tmp_path: Path
) -> None:
    """A stand-in for the published checkpoint: its own config class, vision and speech weights."""
    published = _published_layout(tmp_path)
    call = record_call(calls.run, num_frames=2, directory=tmp_path, cache=published)
    assert call.computed_tokens == [calls.run.model.kv_tokens_per_frame] * 2
    assert call.token_ids == calls.free.token_ids[:2]
    assert call.logprobs == calls.free.logprobs[:2]


def _published_layout(tmp_path: Path) -> Path:
    """A cache whose MiniCPM-o checkpoint is laid out as on the hub."""
    import torch
    from safetensors.torch import load_file, save_file

    made_here = ensure_tiny_checkpoint("minicpm_o", CACHE)
    checkpoint = tmp_path / "checkpoints" / made_here.name
    shutil.copytree(made_here, checkpoint)
    weights = load_file(checkpoint / "model.safetensors")
    for name in ("vpm.embeddings.patch_embedding.weight", "resampler.query", "tts.emb_text.weight"):
        weights[name] = torch.ones(2, 2, dtype=torch.bfloat16)
    save_file(weights, checkpoint / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((checkpoint / "config.json").read_text())
    config |= {
        "architectures": ["MiniCPMO"],
        "model_type": "minicpmo",
        "auto_map": {"AutoConfig": "configuration_minicpmo.MiniCPMOConfig"},
    }
    (checkpoint / "config.json").write_text(json.dumps(config))
    (checkpoint / "configuration_minicpmo.py").write_text(
        "from harness.models.minicpm_o.configuration import MiniCPMOAudioConfig\n\n\n"
        "class MiniCPMOConfig(MiniCPMOAudioConfig):\n    model_type = 'minicpmo'\n"
    )
    return tmp_path
