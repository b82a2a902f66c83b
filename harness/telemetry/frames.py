"""From raw instants to the frame table: every definition of the measurement contract, in one place.

Input are a session's scheduled releases and the instants at which its tokens arrived. Tokens answer
frames in order: the first `expected_tokens` belong to frame 0, and so on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def token_instants(arrival_s: Floats, arrived: Ints, expected: Ints) -> tuple[Floats, Floats, Ints]:
    """First and last token instant of each frame, NaN if it never came, and tokens that did.

    arrival_s, arrived: (num_arrivals,) instant and number of tokens of each arrival, in order.
    expected: (num_frames,) tokens of each frame.
    Example: two frames of 2, arrivals of 1, 2 tokens at 0.1, 0.3 -> first [0.1, 0.3],
    last [0.3, nan], tokens [2, 1].
    """
    total = np.cumsum(arrived) if len(arrived) else np.zeros(0, dtype=np.int64)
    padded = np.append(arrival_s, np.nan)
    ends = np.cumsum(expected)
    starts = ends - expected
    first = padded[np.searchsorted(total, starts + 1)]
    last = padded[np.searchsorted(total, ends)]
    delivered = total[-1] if len(total) else 0
    return first, last, np.clip(delivered - starts, 0, expected)


def tick_waits(release_s: Floats, arrival_s: Floats, wait_limit_s: float) -> Floats:
    """What the paper's gateway would log as each frame's latency.

    At every tick it waits until at least one token is buffered, at most `wait_limit_s`, then takes
    all that is buffered. A stalled engine therefore yields the limit, never a miss: the limit is
    below B.
    Source: PAPER 3, "the worker waits at most 0.8 B"; a miss there is "latency > B".
    """
    waits = np.empty(len(release_s))
    taken = 0
    for index, release in enumerate(release_s):
        buffered = int(np.searchsorted(arrival_s, release, side="right"))
        if buffered > taken:
            waits[index] = 0.0
            taken = buffered
        elif buffered < len(arrival_s) and arrival_s[buffered] <= release + wait_limit_s:
            waits[index] = arrival_s[buffered] - release
            taken = buffered + 1
        else:
            waits[index] = wait_limit_s
    return waits


def silent_frames(empty: Bools, in_a_row: int) -> Bools:
    """Marks every frame that belongs to a stretch of at least `in_a_row` empty ones."""
    silent = np.zeros(len(empty), dtype=bool)
    start = None
    for index, is_empty in enumerate([*empty, False]):
        if is_empty and start is None:
            start = index
        elif not is_empty and start is not None:
            if index - start >= in_a_row:
                silent[start:index] = True
            start = None
    return silent


def session_frames(
    *,
    session_id: int,
    release_s: Floats,
    released_s: Floats,
    ingest_s: Floats,
    expected: Ints,
    arrival_s: Floats,
    arrived: Ints,
    frame_budget_s: float,
    silent_after_frames: int,
    tick_wait_share: float,
) -> pd.DataFrame:
    """The frame table of one session; columns as in schemas.FRAMES.

    release_s, released_s: (num_frames,) scheduled and actual releases; NaN: never.
    ingest_s: (num_frames,) what the engine's input side took for the frame; NaN: it never did.
    expected: (num_frames,) tokens; arrival_s, arrived: (num_arrivals,) as in `token_instants`.
    """
    first, last, tokens = token_instants(arrival_s, arrived, expected)
    deadline = release_s + frame_budget_s
    index = np.arange(len(release_s))
    heard = np.searchsorted(arrival_s, deadline, side="right") > np.searchsorted(
        arrival_s, release_s, side="right"
    )
    # Frames complete in order, so the number completed by an instant is a search in `last`.
    finished = last[~np.isnan(last)]
    completed = np.searchsorted(finished, deadline, side="right")
    newest_answered_release = np.where(completed > 0, release_s[completed - 1], np.nan)
    return pd.DataFrame(
        {
            "session_id": session_id,
            "frame": index,
            "release_s": release_s,
            "deadline_s": deadline,
            "released_s": released_s,
            "release_lag_s": released_s - release_s,
            "ingest_s": ingest_s,
            "first_token_s": first,
            "last_token_s": last,
            "tokens": tokens,
            "expected_tokens": expected,
            "latency_s": last - release_s,
            "missed": ~(last <= deadline),
            "empty": ~heard,
            "silent": silent_frames(~heard, silent_after_frames),
            "backlog": index + 1 - completed,
            "staleness_s": deadline - newest_answered_release,
            "tick_wait_s": tick_waits(release_s, arrival_s, tick_wait_share * frame_budget_s),
        }
    )
