"""The delays between Moshi's streams, against an example worked out by hand."""

import pytest

from harness.models.moshi.streams import SpokenFrame, TokenStreams

TEXT_INITIAL, CODE_INITIAL = 900, 99
# Two codebooks a speaker: streams are text, own first, own second, user first, user second.
# At step n the model says text 10 + n and codes (20 + n, 30 + n), the user (40 + n, 50 + n).
READ = [
    [900, 99, 99, 99, 99],
    [10, 20, 99, 41, 99],
    [11, 21, 31, 42, 51],
    [12, 22, 32, 43, 52],
    [13, 23, 33, 44, 53],
]
SPOKEN = [
    None,
    SpokenFrame(text=10, codes=(20, 31)),
    SpokenFrame(text=11, codes=(21, 32)),
    SpokenFrame(text=12, codes=(22, 33)),
    SpokenFrame(text=13, codes=(23, 34)),
]


@pytest.fixture
def streams() -> TokenStreams:
    return TokenStreams(num_codebooks=2, text_initial_id=TEXT_INITIAL, code_initial_id=CODE_INITIAL)


def test_five_steps_read_and_speak_what_the_example_says(streams: TokenStreams) -> None:
    for step, (read, spoken) in enumerate(zip(READ, SPOKEN, strict=True)):
        assert streams.next_input([40 + step, 50 + step]) == read
        assert streams.answered(10 + step, [20 + step, 30 + step]) == spoken


def test_eight_codebooks_are_delayed_like_the_second() -> None:
    streams = TokenStreams(num_codebooks=8, text_initial_id=900, code_initial_id=99)
    for step in range(3):
        read = streams.next_input([100 * book + step for book in range(8)])
        streams.answered(0, [1000 + 100 * book + step for book in range(8)])
    own, user = read[1:9], read[9:]
    assert own == [1000 + 100 * book + 1 for book in range(8)]
    assert user == [2, *(100 * book + 1 for book in range(1, 8))]


def test_the_users_first_frame_is_never_read(streams: TokenStreams) -> None:
    read = streams.next_input([40, 50])
    for step in range(1, 6):
        streams.answered(0, [0, 0])
        read += streams.next_input([40 + step, 50 + step])
    assert 40 not in read
    assert 50 not in read
    assert {41, 45, 51, 54} <= set(read)
