"""Mimi on the client, and the loop from answer to next prompt; no engine."""

import asyncio
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from harness.models.front_ends.moshi import PUBLISHED_CONFIG, MoshiCall, MoshiFrontEnd
    from harness.models.moshi.processor import FIELD

from harness.composition import compose
from harness.core.errors import ConfigError
from harness.models.moshi.codec import FRAME_SAMPLES, Mimi
from harness.models.moshi.config import MoshiConfig
from harness.models.tiny import ensure_tiny_checkpoint

CACHE = Path(__file__).resolve().parents[2] / ".cache"
SPEC = compose(["model=moshi", "scale=full"]).model


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    return ensure_tiny_checkpoint("moshi", CACHE)


@pytest.fixture(scope="module")
def front_end(checkpoint: Path) -> MoshiFrontEnd:
    return MoshiFrontEnd(SPEC, checkpoint)


@pytest.fixture(scope="module")
def audio() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(0).normal(0, 0.1, 20 * FRAME_SAMPLES).astype(np.float32)


def test_streamed_codes_are_those_of_the_whole_audio(
    checkpoint: Path, audio: np.ndarray[Any, Any]
) -> None:
    codec = Mimi(checkpoint / "mimi", num_codebooks=8)
    encoder = codec.open_call()
    streamed = [encoder.encode(frame) for frame in audio.reshape(-1, FRAME_SAMPLES)]
    with torch.inference_mode():
        whole = codec._model.encode(torch.from_numpy(audio)[None, None]).audio_codes[0].T
    assert streamed == whole.tolist()
    assert len(np.unique(streamed)) > 10


def test_a_call_is_decoded_to_as_many_samples_as_it_has_frames(checkpoint: Path) -> None:
    codec = Mimi(checkpoint / "mimi", num_codebooks=8)
    frames = np.random.default_rng(0).integers(0, 64, (10, 8)).tolist()
    assert codec.decode(frames).shape == (10 * FRAME_SAMPLES,)
    assert codec.decode([]).shape == (0,)


def test_a_frame_of_another_length_is_refused(checkpoint: Path) -> None:
    longer = compose(["model=moshi", "model.frame_budget_s=1"]).model
    with pytest.raises(ConfigError, match=r"use 0\.08 s at 24000 Hz"):
        MoshiFrontEnd(longer, checkpoint)


def test_kyutais_repository_goes_with_the_committed_configuration_of_moshi_7b() -> None:
    front_end = MoshiFrontEnd(SPEC, Path(SPEC.weights.repo))
    assert front_end.engine_args["hf_config_path"] == str(PUBLISHED_CONFIG)
    assert front_end.sampling_args == {"logprobs": 9}
    committed = MoshiConfig.from_pretrained(PUBLISHED_CONFIG)
    assert committed.to_diff_dict() == MoshiConfig().to_diff_dict()
    assert committed.sliding_window == SPEC.native_context_tokens
    assert committed.num_hidden_layers == SPEC.kv.num_layers
    assert committed.num_key_value_heads == SPEC.kv.num_kv_heads
    assert committed.head_dim == SPEC.kv.head_size


def _answer(call: MoshiCall, text: int, code: int) -> None:
    ids = call._ids
    leading = [text] + [
        ids.text_vocab_size + book * ids.codebook_size + code for book in range(ids.num_codebooks)
    ]
    call.receive(SimpleNamespace(logprobs=[dict.fromkeys(leading)]))


def _ids(prompt: Any) -> list[int]:
    found: list[int] = prompt["mm_kwargs"]["audio"][0][FIELD].data.tolist()
    return found


async def _prompt(call: MoshiCall, index: int, audio: np.ndarray[Any, Any]) -> Any:
    return await call.prompt(index, audio[index * FRAME_SAMPLES : (index + 1) * FRAME_SAMPLES])


def test_a_prompt_waits_for_the_answer_before_and_carries_it(
    front_end: MoshiFrontEnd, audio: np.ndarray[Any, Any]
) -> None:
    async def scenario() -> list[list[int]]:
        call = front_end.open_session(3)
        rows = [_ids(await _prompt(call, 0, audio))]
        early = asyncio.create_task(_prompt(call, 1, audio))
        await asyncio.sleep(0.02)
        assert not early.done()
        _answer(call, text=11, code=5)
        rows.append(_ids(await early))
        _answer(call, text=12, code=6)
        # On time: nothing to wait for.
        rows.append(_ids(await asyncio.wait_for(_prompt(call, 2, audio), 1)))
        return rows

    rows = asyncio.run(scenario())
    assert [row[0] for row in rows] == [256, 11, 12]
    assert [row[1] for row in rows] == [64, 5, 6]
    assert [row[2] for row in rows] == [64, 64, 6]


def test_no_two_frames_of_an_engine_share_an_identity(
    front_end: MoshiFrontEnd, audio: np.ndarray[Any, Any]
) -> None:
    async def scenario() -> list[str]:
        names = []
        # The same session twice, as after a rotation.
        for session_id in (3, 3, 4):
            call = front_end.open_session(session_id)
            for index in range(2):
                prompt = await _prompt(call, index, audio)
                names.append(prompt["mm_hashes"]["audio"][0])
                _answer(call, text=1, code=1)
        return names

    names = asyncio.run(scenario())
    assert len(set(names)) == len(names) == 6
