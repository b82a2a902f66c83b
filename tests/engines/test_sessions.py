import asyncio
from collections.abc import AsyncIterator

import numpy as np

from harness.engines.base import Frame
from harness.engines.sessions import FrameSource, frames_per_request, request_id, session_of


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
