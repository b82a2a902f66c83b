"""States of frames, and who went silent when."""

import pandas as pd

from harness.report.strips import frame_states, silence_sentence, silent_since, strip


def _frames(*rows: str) -> pd.DataFrame:
    """One word a session: a(nswered), l(ate), s(ilent), one letter a frame of 2 s."""
    table = []
    for session, word in enumerate(rows):
        for frame, letter in enumerate(word):
            table.append(
                {
                    "session_id": session,
                    "frame": frame,
                    "release_s": 2.0 * frame,
                    "silent": letter == "s",
                    "missed": letter != "a",
                }
            )
    return pd.DataFrame(table)


def test_who_was_heard_longest_comes_first() -> None:
    assert frame_states(_frames("aals", "asss", "aaaa")).tolist() == [
        [0, 0, 0, 0],
        [0, 0, 1, 2],
        [0, 2, 2, 2],
    ]


def test_a_frame_that_was_never_offered_is_no_silence() -> None:
    frames = _frames("aaa", "aa")
    assert frame_states(frames).tolist() == [[0, 0, 0], [0, 0, -1]]


def test_silence_at_the_end_is_counted_from_its_first_frame() -> None:
    frames = _frames("asas", "ssss", "aaaa")
    assert silent_since(frames[frames["session_id"] == 0]) == 6.0
    assert silence_sentence(frames) == "2 of 3 callers silent at the end, since 0.0 to 6.0 s"
    assert silence_sentence(_frames("ass", "aaa")[3:]) == "none of 1 callers silent at the end"


def test_a_strip_is_one_pixel_a_session_and_frame() -> None:
    content = strip(_frames("aals", "asss"))
    # Width and height stand in a PNG's first chunk.
    assert (content[16:20], content[20:24]) == ((4).to_bytes(4), (2).to_bytes(4))
