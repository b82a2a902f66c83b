"""A real vLLM engine against a plain transformers forward with the mask that the bound means."""

import numpy as np
import pytest

from harness.kv.retention import Retention, is_visible, live_blocks

pytestmark = pytest.mark.live

BLOCK_SIZE_TOKENS = 32
TOLERANCE = 1e-4
# A wrong mask must be told from rounding by a wide margin.
CLEARLY_DIFFERENT = 0.1
OWN_WINDOW_TOKENS = 48


SHAPE = {
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


class Reference:
    """A random float32 checkpoint, and what plain transformers says about it."""

    def __init__(self, model, directory):
        model.float().save_pretrained(directory)
        self.directory = str(directory)
        self._model = model.eval()

    def logprobs(self, token_ids, visible, **masks_by_layer_type):
        """Log-probability of each token after the first, under `visible` (query, key)."""
        import torch

        def additive(mask):
            return torch.zeros(mask.shape).masked_fill_(~torch.from_numpy(mask), -1e30)[None, None]

        mask = additive(visible)
        if masks_by_layer_type:
            mask = {"full_attention": mask}
            mask |= {kind: additive(other) for kind, other in masks_by_layer_type.items()}
        ids = torch.tensor([token_ids])
        with torch.no_grad():
            logits = self._model(ids, attention_mask=mask).logits[0, :-1]
        table = torch.log_softmax(logits, dim=-1)
        return table.gather(1, ids[0, 1:, None])[:, 0].numpy()


@pytest.fixture(scope="module")
def qwen2(tmp_path_factory):
    """Two full-attention layers, scaled so that attention matters: logits span tens of nats."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(**SHAPE, initializer_range=0.2, attn_implementation="eager")
    torch.manual_seed(0)
    return Reference(Qwen2ForCausalLM(config), tmp_path_factory.mktemp("qwen2"))


@pytest.fixture(scope="module")
def gemma2(tmp_path_factory):
    """One layer with a window of 48 tokens of its own, one with full attention."""
    import torch
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(
        **{**SHAPE, "tie_word_embeddings": True},
        head_dim=32,
        query_pre_attn_scalar=32,
        sliding_window=OWN_WINDOW_TOKENS,
        layer_types=["sliding_attention", "full_attention"],
        initializer_range=0.2,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    return Reference(Gemma2ForCausalLM(config), tmp_path_factory.mktemp("gemma2"))


def effective_mask(num_tokens, steps, retention):
    """What each query saw, given the chunks that the engine really computed."""
    visible = np.zeros((num_tokens, num_tokens), dtype=bool)
    for start, length, _ in steps:
        for query in range(start, min(start + length, num_tokens)):
            visible[query, : query + 1] = [
                is_visible(key, query, start, retention, BLOCK_SIZE_TOKENS)
                for key in range(query + 1)
            ]
    # The last token was sampled and never computed: it is no one's key, and its row is not used.
    visible[num_tokens - 1, num_tokens - 1] = True
    return visible


def tokens(seed, count):
    return np.random.default_rng(seed).integers(2, 256, count).tolist()


def worst(left, right):
    return float(np.max(np.abs(np.asarray(left) - np.asarray(right))))


PROMPTS = [tokens(1, 230), tokens(2, 90), tokens(3, 21)]


@pytest.mark.parametrize(
    ("window", "sinks"), [(64, 4), (100, 40), (64, 0), (33, 1)], ids=lambda value: str(value)
)
def test_a_bounded_engine_computes_attention_over_sinks_and_window(
    engine_room, qwen2, window, sinks
):
    retention = Retention(window_tokens=window, sink_tokens=sinks)
    result = engine_room.serve(
        model=qwen2.directory, bound=[window, sinks], prompts=PROMPTS, max_tokens=20
    )
    assert result["report"]["state"] == "bounded", result
    assert result["report"]["num_bounded_layers"] == 2
    for answer in result["answers"]:
        ids, steps = answer["token_ids"], answer["steps"]
        mask = effective_mask(len(ids), steps, retention)
        assert worst(answer["logprobs"], qwen2.logprobs(ids, mask)) < TOLERANCE
    # The oldest session tells the mask from its neighbours.
    oldest = result["answers"][0]
    ids, steps = oldest["token_ids"], oldest["steps"]
    for wrong in (
        Retention(),
        Retention(window_tokens=window + BLOCK_SIZE_TOKENS, sink_tokens=sinks),
        Retention(window_tokens=window, sink_tokens=sinks + BLOCK_SIZE_TOKENS),
        *([Retention(window_tokens=window)] if sinks else []),
    ):
        mask = effective_mask(len(ids), steps, wrong)
        assert worst(oldest["logprobs"], qwen2.logprobs(ids, mask)) > CLEARLY_DIFFERENT, wrong


def test_an_engine_without_the_key_computes_full_attention_and_reports_unbounded(
    engine_room, qwen2
):
    result = engine_room.serve(model=qwen2.directory, bound=None, prompts=PROMPTS, max_tokens=20)
    assert result["report"]["state"] == "unbounded", result
    assert result["report"]["groups"][0]["spec"] == "FullAttentionSpec"
    assert set(result["backends"].values()) == {"CPUAttentionBackend"}
    for answer in result["answers"]:
        ids = answer["token_ids"]
        full = np.tri(len(ids), dtype=bool)
        assert worst(answer["logprobs"], qwen2.logprobs(ids, full)) < TOLERANCE


def test_sessions_younger_than_the_window_answer_bit_for_bit_as_without_a_bound(engine_room, qwen2):
    job = {"model": qwen2.directory, "prompts": [tokens(4, 60), tokens(5, 33)], "max_tokens": 20}
    bounded = engine_room.serve(bound=[96, 4], **job)
    free = engine_room.serve(bound=None, **job)
    for left, right in zip(bounded["answers"], free["answers"], strict=True):
        assert left["token_ids"] == right["token_ids"]
        assert left["logprobs"] == right["logprobs"]


def test_a_streaming_session_keeps_its_sinks_and_window_over_many_turns(engine_room, qwen2):
    retention = Retention(window_tokens=64, sink_tokens=4)
    turns = [tokens(10 + turn, 17) for turn in range(14)]
    result = engine_room.serve(model=qwen2.directory, bound=[64, 4], turns=turns, max_tokens=4)
    (answer,) = result["answers"]
    ids = answer["token_ids"]
    assert len(ids) == 14 * (17 + 3) + 1
    expected = qwen2.logprobs(ids, effective_mask(len(ids), answer["steps"], retention))
    positions = np.asarray(answer["positions"])
    assert worst(answer["logprobs"], expected[positions - 1]) < TOLERANCE
    full = qwen2.logprobs(ids, np.tri(len(ids), dtype=bool))
    assert worst(answer["logprobs"], full[positions - 1]) > CLEARLY_DIFFERENT
    for start, length, held in answer["steps"]:
        assert held == live_blocks(start, retention, BLOCK_SIZE_TOKENS, num_new_tokens=length)
    assert max(held for *_, held in answer["steps"]) <= result["report"]["blocks_per_session"]


def test_a_freed_block_is_never_read_again_even_if_it_holds_nan(engine_room, qwen2):
    turns = [tokens(40 + turn, 17) for turn in range(10)]
    job = {"model": qwen2.directory, "bound": [64, 32], "turns": turns, "max_tokens": 4}
    clean = engine_room.serve(**job)["answers"][0]
    poisoned = engine_room.serve(**job, poison="freed")["answers"][0]
    assert poisoned["steps"][-1][2] < len(poisoned["token_ids"]) // BLOCK_SIZE_TOKENS
    assert poisoned["token_ids"] == clean["token_ids"]
    assert poisoned["logprobs"] == clean["logprobs"]
    # Poison in blocks that are read does show.
    spoiled = engine_room.serve(**job, poison="all")["answers"][0]
    assert np.isnan(spoiled["logprobs"]).any() or spoiled["token_ids"] != clean["token_ids"]


def test_a_preempted_session_recomputes_its_sinks_and_answers_by_the_same_mask(engine_room, qwen2):
    retention = Retention(window_tokens=64, sink_tokens=4)
    result = engine_room.serve(
        model=qwen2.directory,
        bound=[64, 4],
        prompts=[tokens(20 + session, 20) for session in range(4)],
        max_tokens=200,
        # Four sessions plateau at 4 blocks each: 11 usable ones cannot hold them all.
        engine={"num_gpu_blocks_override": 12},
    )
    num_restarts = 0
    for answer in result["answers"]:
        ids, steps = answer["token_ids"], answer["steps"]
        restarts = [index for index, (start, *_) in enumerate(steps) if index and start == 0]
        num_restarts += len(restarts)
        # What was said before the last restart came of chunks that are computed anew since.
        recomputed = [s for s in steps[restarts[-1] :] if s[1] > 1] if restarts else []
        first = sum(length for _, length, _ in recomputed)
        expected = qwen2.logprobs(ids, effective_mask(len(ids), steps, retention))
        assert worst(answer["logprobs"][first:], expected[first:]) < TOLERANCE
    assert num_restarts > 0


def test_an_engine_that_cannot_keep_the_bound_does_not_start(engine_room, qwen2):
    result = engine_room.serve(
        model=qwen2.directory,
        bound=[64, 4],
        prompts=[tokens(1, 10)],
        max_tokens=1,
        engine={"enable_prefix_caching": True},
    )
    assert result["error"] == "ConfigError", result
    assert "set enable_prefix_caching=False" in result["message"]


def test_a_layer_with_its_own_window_is_left_alone(engine_room, gemma2):
    retention = Retention(window_tokens=64, sink_tokens=4)
    result = engine_room.serve(
        model=gemma2.directory, bound=[64, 4], prompts=[tokens(6, 200)], max_tokens=10
    )
    assert sorted(group["spec"] for group in result["report"]["groups"]) == [
        "SinkWindowSpec",
        "SlidingWindowSpec",
    ], result
    assert sorted(result["backends"].values()) == [
        "BoundedCPUAttentionBackend",
        "CPUAttentionBackend",
    ]
    (answer,) = result["answers"]
    ids = answer["token_ids"]
    full = np.tri(len(ids), dtype=bool)
    own = full & ~np.tri(len(ids), k=-OWN_WINDOW_TOKENS, dtype=bool)
    bound = effective_mask(len(ids), answer["steps"], retention)
    expected = gemma2.logprobs(ids, bound, sliding_attention=own)
    assert worst(answer["logprobs"], expected) < TOLERANCE
    unbounded = gemma2.logprobs(ids, full, sliding_attention=own)
    assert worst(answer["logprobs"], unbounded) > CLEARLY_DIFFERENT


def test_a_window_that_a_layer_has_already_is_refused_with_sinks(engine_room, gemma2):
    result = engine_room.serve(
        model=gemma2.directory,
        bound=[OWN_WINDOW_TOKENS, 4],
        prompts=[tokens(6, 10)],
        max_tokens=1,
    )
    assert result["error"] == "ConfigError", result
    assert "choose another window" in result["message"]


def test_five_hundred_sessions_that_end_or_are_cut_off_leave_the_pool_as_it_was(engine_room, qwen2):
    result = engine_room.serve(
        model=qwen2.directory,
        bound=[64, 4],
        churn=500,
        seed=3,
        engine={"max_num_seqs": 12, "num_gpu_blocks_override": 73},
    )
    assert result["free_after"] == result["free_before"] == 72, result
    assert result["blocks_kept_by_aborted"] == 0
    assert result["requests_left"] == result["tables_left"] == 0
    assert result["wrong_answers"] == 0
    # It is what it says: both kinds in one step, cut off at every stage, windows that had slid.
    aborted = result["aborted_in_mid_frame"] + result["aborted_paused_or_waiting"]
    assert result["ended"] + aborted == 500
    assert result["aborted_in_mid_frame"] > 100
    assert 200 < result["streams"] < 300
    assert result["mixed_steps"] > 100
    assert result["most_held_by_one"] <= 6
