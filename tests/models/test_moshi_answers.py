"""Nine ids through one row of logits."""

import pytest
import torch

from harness.core.errors import EngineError
from harness.models.moshi.answers import AnswerIds

IDS = AnswerIds(text_vocab_size=10, codebook_size=4, num_codebooks=3)
TEXT, CODES = torch.tensor([7, 0]), torch.tensor([[3, 0, 1], [0, 0, 0]])


def test_text_leads_and_the_codes_follow_in_their_order() -> None:
    leading = IDS.pack(TEXT, CODES).topk(IDS.num_leading).indices.tolist()
    assert leading == [[7, 10 + 3, 14 + 0, 18 + 1], [0, 10, 14, 18]]


def test_greedy_sampling_takes_the_text() -> None:
    assert IDS.pack(TEXT, CODES).argmax(-1).tolist() == [7, 0]


def test_what_is_packed_is_unpacked_whatever_the_order() -> None:
    leading = IDS.pack(TEXT, CODES).topk(IDS.num_leading).indices
    assert IDS.unpack(leading[0].tolist()) == (7, (3, 0, 1))
    assert IDS.unpack(reversed(leading[0].tolist())) == (7, (3, 0, 1))


@pytest.mark.parametrize("ids", [[7, 13, 14], [7, 8, 13, 14], [13, 14, 18, 19], [7, 10, 11, 18]])
def test_an_answer_with_a_missing_or_doubled_id_is_refused(ids: list[int]) -> None:
    with pytest.raises(EngineError, match="logprobs=4"):
        IDS.unpack(ids)
