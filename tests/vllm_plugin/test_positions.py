"""Positions that are counted on equal those that the model works out from the start."""

from types import SimpleNamespace

import pytest
import torch
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from harness.vllm_plugin.positions import Count, install_positions


def request(num_tokens, *modalities, positions=None, delta=0):
    """A request's state as the worker holds it after the model gave it positions."""
    if positions is None:
        positions = torch.arange(num_tokens).repeat(3, 1)
    return SimpleNamespace(
        num_prompt_tokens=num_tokens,
        prompt_embeds=None,
        mm_features=[SimpleNamespace(modality=modality) for modality in modalities],
        mrope_positions=positions,
        mrope_position_delta=delta,
    )


def grown(state, num_tokens, modality="audio"):
    state.num_prompt_tokens += num_tokens
    state.mm_features.append(SimpleNamespace(modality=modality))
    state.mrope_positions = None
    return state


def test_a_session_of_audio_is_counted_on_chunk_by_chunk():
    count, state = Count(), request(5, "audio")
    assert not count.go_on(state)
    count.begin(state)
    for _ in range(20):
        assert count.go_on(grown(state, 7))
        assert torch.equal(
            state.mrope_positions, torch.arange(state.num_prompt_tokens).repeat(3, 1)
        )
    assert state.mrope_position_delta == 0


def test_sessions_share_one_table_and_do_not_disturb_each_other():
    count, old, young = Count(), request(5, "audio"), request(3, "audio")
    for state in (old, young):
        count.begin(state)
    count.go_on(grown(old, 3))
    before = old.mrope_positions.clone()
    count.go_on(grown(young, 900))
    assert torch.equal(old.mrope_positions, before)


@pytest.mark.parametrize(
    "first",
    [
        request(4, "image"),
        request(4, "audio", delta=-2),
        request(4, "audio", positions=torch.tensor([[0, 1, 2, 2]] * 3)),
        request(4, "audio", positions=torch.arange(4).repeat(4, 1)),
    ],
    ids=["an image", "a shift", "a jump", "four rows"],
)
def test_a_session_that_the_model_does_not_count_plainly_is_left_to_the_model(first):
    count = Count()
    count.begin(first)
    assert not count.go_on(grown(first, 3))


def test_an_image_ends_the_count_for_good():
    count, state = Count(), request(5, "audio")
    count.begin(state)
    assert not count.go_on(grown(state, 3, "image"))
    state.mrope_positions = torch.arange(8).repeat(3, 1)
    count.begin(state)
    assert not count.go_on(grown(state, 3, "audio"))


@pytest.mark.parametrize(("is_bounded", "worked_out"), [(True, 1), (False, 3)])
def test_a_runner_works_positions_out_once_a_session_if_its_host_is_bounded(
    monkeypatch, is_bounded, worked_out
):
    asked = []

    def work_out(runner, state):
        asked.append(state)
        state.mrope_positions = torch.arange(state.num_prompt_tokens).repeat(3, 1)
        state.mrope_position_delta = 0

    monkeypatch.setattr(GPUModelRunner, "_init_mrope_positions", work_out)
    install_positions()
    install_positions()
    config = SimpleNamespace(additional_config={"metronome_host_bound": is_bounded})
    runner = SimpleNamespace(vllm_config=config)
    state = request(4, "audio")
    for _ in range(3):
        GPUModelRunner._init_mrope_positions(runner, state)
        assert state.mrope_positions.shape == (3, state.num_prompt_tokens)
        grown(state, 5)
    assert len(asked) == worked_out
