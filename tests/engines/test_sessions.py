import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest

from harness.composition import compose
from harness.core.notices import Notice
from harness.engines.base import Frame
from harness.engines.sessions import (
    Said,
    preemption_notice,
    request_id,
    session_of,
    session_requests,
)
from harness.kv.retention import Recycling, recycling_of

# (frame, tokens of its answer)
PAIRS = [(0, 3), (1, 1), (2, 2)]


async def _frames(answers: list[int]) -> AsyncIterator[Frame]:
    for index, length in enumerate(answers):
        yield Frame(0, index, np.zeros(1, dtype=np.float32), length)


def test_a_request_id_leads_back_to_its_session() -> None:
    assert session_of(request_id(12, 3) + "-8f3a") == 12
    assert session_of(request_id(-1, 0) + "-8f3a") == -1


def _requests(
    answers: list[int], *overrides: str
) -> tuple[list[tuple[str, list[int], list[int]]], list[str]]:
    """Name, kept and new frames of each request, and the kinds of the notices."""
    run = compose(list(overrides)).run_config
    notices: list[Notice] = []

    async def main() -> list[tuple[str, list[int], list[int]]]:
        found = []
        async for part in session_requests(run, 5, _frames(answers), notices):
            new = [frame.index async for frame in part.frames]
            found.append((part.name, [frame.index for frame in part.kept], new))
        return found

    return asyncio.run(main()), [notice.kind for notice in notices]


def test_a_session_is_rotated_into_requests_that_end_before_max_model_len() -> None:
    # 3 frames of 59 tokens fit below 180: one more token is sampled than is computed.
    rotate = ("engine.on_max_model_len=rotate", "engine.max_model_len=178")
    requests, kinds = _requests([8] * 7, *rotate)
    assert requests == [
        ("call5.0", [], [0, 1, 2]),
        ("call5.1", [], [3, 4, 5]),
        ("call5.2", [], [6]),
    ]
    assert kinds == ["rotated"] * 2
    assert _requests([8] * 3, *rotate[:1], "engine.max_model_len=177")[0][0][2] == [0, 1]


def test_a_session_that_is_to_end_ends_with_its_first_request() -> None:
    end = ("engine.max_model_len=180", "engine.on_max_model_len=end")
    assert _requests([8] * 7, *end) == ([("call5.0", [], [0, 1, 2])], [])
    assert _requests([8] * 7) == ([("call5.0", [], list(range(7)))], [])


RECYCLE = ("retention=recycle", "retention.window_tokens=250", "retention.kept_share=0.5")


def test_a_recycled_request_begins_with_the_last_frames_that_fit_what_is_kept() -> None:
    # 4 frames of 59 tokens fit 250, 2 fit 125.
    requests, kinds = _requests([8] * 9, *RECYCLE)
    assert [(kept, new) for _, kept, new in requests] == [
        ([], [0, 1, 2, 3]),
        ([2, 3], [4, 5]),
        ([4, 5], [6, 7]),
        ([6, 7], [8]),
    ]
    assert kinds == ["recycled"] * 3
    recycling = recycling_of(compose(list(RECYCLE)).retention, 59)
    assert recycling == Recycling(frames_per_request=4, kept_frames=2)
    assert [index for index in range(9) if recycling.begins_request(index)] == [4, 6, 8]


def test_a_recycled_request_leaves_room_for_the_longest_answer_that_may_come() -> None:
    # Frames of 52 tokens and an answer of 1 to 32, so the next one may need 83: a request of 193
    # tokens is full. The long answers of frames 1 and 2 do not fit what is kept together.
    answers = [1, 32, 32, 1, 1, 1, 1]
    requests, _ = _requests(answers, *RECYCLE, "workload.answers=geometric")
    assert [(kept, new) for _, kept, new in requests] == [
        ([], [0, 1, 2]),
        ([2], [3, 4]),
        ([3, 4], [5, 6]),
    ]


def test_what_was_said_is_kept_frame_by_frame_without_its_last_token() -> None:
    said = Said()
    frames = [Frame(0, index, np.zeros(1, dtype=np.float32), length) for index, length in PAIRS]
    for frame in frames:
        said.expect(frame)
    for tokens in ([10], [11, 12, 20], [30, 31]):
        said.receive(tokens)
    assert [list(each.said) for each in said.with_answers(frames)] == [[10, 11], [], [30]]
    said.forget_all_but(frames[2:])
    assert [each.index for each in said.with_answers(frames[2:])] == [2]
    with pytest.raises(KeyError):
        said.with_answers(frames)


def test_a_preemption_is_told_of_its_session() -> None:
    notice = preemption_notice(3.0, "call7.1-8f3a", 400)
    assert (notice.instant_s, notice.kind, notice.session_id) == (3.0, "preempted", 7)
    assert notice.detail == "400 computed tokens lost"
