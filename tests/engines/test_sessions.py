import asyncio
from collections.abc import AsyncIterator

import numpy as np

from harness.composition import compose
from harness.core.notices import Notice
from harness.engines.base import Frame
from harness.engines.sessions import (
    FrameSource,
    frames_per_request,
    preemption_notice,
    request_id,
    session_of,
    session_requests,
)


async def _frames(count: int) -> AsyncIterator[Frame]:
    for index in range(count):
        yield Frame(0, index, np.zeros(1, dtype=np.float32), 1)


def _cut(count: int, limit: int | None) -> list[list[int]]:
    async def main() -> list[list[int]]:
        source = FrameSource(_frames(count))
        parts = []
        while not source.is_exhausted:
            parts.append([frame.index async for frame in source.take(limit)])
        return parts

    return asyncio.run(main())


def test_frames_are_cut_into_requests_without_losing_one() -> None:
    assert _cut(7, 3) == [[0, 1, 2], [3, 4, 5], [6]]
    assert _cut(4, None) == [[0, 1, 2, 3]]


def test_a_request_ends_a_token_before_the_limit() -> None:
    assert frames_per_request(119, 59) == 2
    assert frames_per_request(118, 59) == 1


def test_a_request_id_leads_back_to_its_session() -> None:
    assert session_of(request_id(12, 3) + "-8f3a") == 12
    assert session_of(request_id(-1, 0) + "-8f3a") == -1


def _rotated(count: int, *overrides: str) -> tuple[list[tuple[str, list[int]]], int]:
    run = compose(["engine.max_model_len=180", *overrides]).run_config
    notices: list[Notice] = []

    async def main() -> list[tuple[str, list[int]]]:
        return [
            (name, [frame.index async for frame in part])
            for name, part in session_requests(run, 5, _frames(count), notices)
        ]

    return asyncio.run(main()), len(notices)


def test_a_session_is_rotated_into_requests_that_end_before_max_model_len() -> None:
    # 3 frames of 59 tokens fit below 180.
    requests, num_notices = _rotated(7, "engine.on_max_model_len=rotate")
    assert requests == [("call5.0", [0, 1, 2]), ("call5.1", [3, 4, 5]), ("call5.2", [6])]
    assert num_notices == 2


def test_a_session_that_is_to_end_ends_with_its_first_request() -> None:
    assert _rotated(7, "engine.on_max_model_len=end") == ([("call5.0", [0, 1, 2])], 0)
    assert _rotated(7) == ([("call5.0", list(range(7)))], 0)


def test_a_preemption_is_told_of_its_session() -> None:
    notice = preemption_notice(3.0, "call7.1-8f3a", 400)
    assert (notice.instant_s, notice.kind, notice.session_id) == (3.0, "preempted", 7)
    assert notice.detail == "400 computed tokens lost"
