"""A run as a picture: one row a session, one column a frame, coloured by what the caller heard."""

from __future__ import annotations

import base64
import io

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import pyplot as plt

from harness.figures.style import COLOURS

# What the caller heard -> colour; a frame takes the last one that holds.
STATES = {
    "answered in time": COLOURS["answer"],
    "late or incomplete": COLOURS["budget"],
    "silent": COLOURS["dead"],
}


def data_uri(content: bytes, media_type: str) -> str:
    """The bytes as a URI that a page can hold."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def frame_states(frames: pd.DataFrame) -> npt.NDArray[np.int64]:
    """States as numbers, in the order of STATES; shape (num_sessions, num_frames), -1: no frame.

    Who was heard longest comes first, so that the picture shows when callers were lost.
    """
    state = np.where(frames["silent"], 2, np.where(frames["missed"], 1, 0))
    wide = frames.assign(state=state).pivot(index="session_id", columns="frame", values="state")
    states = wide.fillna(-1).to_numpy(dtype=np.int64)
    heard = states != 2
    last_heard = np.where(heard.any(axis=1), heard.shape[1] - heard[:, ::-1].argmax(axis=1), 0)
    return states[np.argsort(-last_heard, kind="stable")]


def strip(frames: pd.DataFrame) -> bytes:
    """A PNG of one pixel a session and frame; the page scales it."""
    colours = [mpl.colors.to_rgb(colour) for colour in (*STATES.values(), "#dddddd")]
    pixels = np.array(colours)[frame_states(frames)]
    sink = io.BytesIO()
    plt.imsave(sink, pixels, format="png", metadata={"Software": None})
    return sink.getvalue()


def silence_sentence(frames: pd.DataFrame) -> str:
    """Who went silent for good, and when. Example: `8 of 8 callers silent, from 19.5 to 21.2 s`."""
    last = frames.loc[frames.groupby("session_id")["frame"].idxmax()]
    gone = last.loc[last["silent"], "session_id"]
    total = frames["session_id"].nunique()
    if gone.empty:
        return f"none of {total} callers silent at the end"
    onsets = [silent_since(frames[frames["session_id"] == session]) for session in gone]
    first, latest = min(onsets), max(onsets)
    return f"{len(gone)} of {total} callers silent at the end, since {first:.1f} to {latest:.1f} s"


def silent_since(frames: pd.DataFrame) -> float:
    """Release of the first frame of the silence that one session ends in, seconds."""
    ordered = frames.sort_values("frame")
    heard = np.flatnonzero(~ordered["silent"].to_numpy())
    first = int(heard[-1]) + 1 if len(heard) else 0
    return float(ordered["release_s"].iloc[first])
