"""What a frame becomes: the catalogue's tokens against the code that vLLM and transformers run."""

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.config import RunConfig
from harness.core.errors import ConfigError
from harness.models.front_ends import load_front_end
from harness.models.front_ends.audio_item import HOP_SAMPLES
from harness.models.front_ends.minicpm_o import MiniCPMOFrontEnd
from harness.models.front_ends.qwen2_5_omni import Qwen25OmniFrontEnd
from harness.models.front_ends.qwen3_omni import Qwen3OmniFrontEnd
from harness.models.minicpm_o import ARCHITECTURE

Make = Callable[..., RunConfig]
NOWHERE = Path("hub/checkpoint")
# A token is at least 100 ms of audio.
MEL_FRAMES = range(10, 400)


@pytest.mark.parametrize(
    ("model", "prompt_tokens", "kv_tokens"),
    [("qwen2_5_omni", 52, 59), ("qwen3_omni", 28, 35), ("minicpm_o", 12, 19)],
)
def test_a_catalogued_frame_is_what_its_front_end_makes(
    run_config: Make, model: str, prompt_tokens: int, kv_tokens: int
) -> None:
    spec = run_config(f"model={model}").model
    load_front_end(spec, NOWHERE)
    assert spec.prompt_tokens_per_frame == prompt_tokens
    assert spec.kv_tokens_per_frame == kv_tokens


@pytest.mark.parametrize("budget_s", [0.25, 0.5, 1, 2])
def test_qwen2_5_omni_frames_of_other_lengths_are_catalogued_right(
    run_config: Make, budget_s: float
) -> None:
    load_front_end(
        run_config("model=qwen2_5_omni", f"model.frame_budget_s={budget_s}").model, NOWHERE
    )


def test_a_frame_that_the_catalogue_has_wrong_is_refused_with_the_number_that_is_right(
    run_config: Make,
) -> None:
    overrides = ["model=qwen3_omni", "model.frame_budget_s=0.25"]
    with pytest.raises(ConfigError) as caught:
        load_front_end(run_config(*overrides).model, NOWHERE)
    assert str(caught.value).endswith(
        "makes 6 prompt tokens of a frame, not the 5 that model.audio_tokens_per_s=13 says: "
        "set model.audio_tokens_per_s=16"
    )
    load_front_end(run_config(*overrides, "model.audio_tokens_per_s=16").model, NOWHERE)


def test_qwen2_5_omni_counts_tokens_as_transformers_does() -> None:
    import torch
    from transformers.models.qwen2_5_omni import modeling_qwen2_5_omni as upstream

    lengths = upstream.Qwen2_5OmniAudioEncoder._get_feat_extract_output_lengths(
        None, torch.tensor(MEL_FRAMES)
    )[1]
    assert [Qwen25OmniFrontEnd.prompt_tokens(n) - 2 for n in MEL_FRAMES] == lengths.tolist()


def test_qwen3_omni_counts_tokens_as_transformers_does() -> None:
    import torch
    from transformers.models.qwen3_omni_moe import processing_qwen3_omni_moe as upstream

    lengths = upstream._get_feat_extract_output_lengths(torch.tensor(MEL_FRAMES))
    assert [Qwen3OmniFrontEnd.prompt_tokens(n) - 2 for n in MEL_FRAMES] == lengths.tolist()


def test_minicpm_o_counts_tokens_as_vllm_does() -> None:
    with warnings.catch_warnings():
        # Importing vLLM meets deprecations of its own libraries, which are errors in our tests.
        warnings.simplefilter("ignore")
        from vllm.transformers_utils.processors.minicpmo import MiniCPMOProcessor

    processor = MiniCPMOProcessor.__new__(MiniCPMOProcessor)
    processor.pool_step = 5
    processor.tokenizer = object()
    processor.feature_extractor = type("Extractor", (), {"hop_length": HOP_SAMPLES})
    for num_mel_frames in MEL_FRAMES:
        text = processor.get_audio_placeholder(num_mel_frames * HOP_SAMPLES, True, 1)
        assert MiniCPMOFrontEnd.prompt_tokens(num_mel_frames) == text.count("<")


def test_a_chunk_never_ends_with_audio() -> None:
    # Qwen3-Omni's M-RoPE counts on a token after the audio; a chunk without one kills the core.
    for front_end in (Qwen25OmniFrontEnd, Qwen3OmniFrontEnd):
        first, audio, last = front_end.frame_text.removeprefix("<|")[:-2].split("|><|")
        assert audio.lower() in ("audio", "audio_pad")
        assert first.startswith("audio_")
        assert last.startswith("audio_e")


def test_a_prompt_is_the_frame_and_nothing_of_the_frames_before(run_config: Make) -> None:
    front_end = load_front_end(run_config("model=minicpm_o").model, NOWHERE)
    audio = np.zeros(16_000, np.float32)
    first, later = (front_end.open_session(3).prompt(index, audio) for index in (0, 9))
    assert first == later
    assert first["multi_modal_data"]["audio"] == [(audio, 16_000)]


def test_code_of_a_checkpoint_runs_only_where_the_checkpoint_brings_some(
    run_config: Make, tmp_path: Path
) -> None:
    model = run_config("model=minicpm_o").model
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "minicpmo_audio"}))
    made_here = load_front_end(model, tmp_path).engine_args
    assert made_here["trust_remote_code"] is False
    (tmp_path / "config.json").write_text(json.dumps({"auto_map": {"AutoConfig": "x.Y"}}))
    assert load_front_end(model, tmp_path).engine_args["trust_remote_code"] is True
    published = load_front_end(model, NOWHERE).engine_args
    assert published["trust_remote_code"] is True
    for arguments in (made_here, published):
        assert arguments["hf_overrides"] == {"architectures": [ARCHITECTURE]}
        assert arguments["limit_mm_per_prompt"] == {"audio": 1, "image": 0, "video": 0}


def test_qwen2_5_omni_pads_to_a_frame_and_not_to_five_minutes(run_config: Make) -> None:
    for budget_s in (1, 2):
        model = run_config("model=qwen2_5_omni", f"model.frame_budget_s={budget_s}").model
        arguments = load_front_end(model, NOWHERE).engine_args
        padding = arguments["mm_processor_kwargs"]["audio_kwargs"]["max_length"]
        assert padding == math.ceil(budget_s * 16_000)
