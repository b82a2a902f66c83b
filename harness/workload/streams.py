"""Endless audio streams cut into frames: one a session, no two alike.

All clips are laid end to end in an order drawn from the seed and closed to a ring; a session enters
the ring at a drawn place and walks around it, one frame at a time. The ring is a whole number of
frames long and no two entries are whole frames apart, so two sessions never send the same frame
(digital silence aside): no cache of the engine can serve one with what it computed for another.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from harness.core.errors import ConfigError, CorpusError
from harness.workload.audio import SILENCE_PEAK, Samples
from harness.workload.corpus import Clip

_MAX_DRAWS = 1000
"""Entries drawn for one session before the corpus counts as too small."""


@dataclass(frozen=True, kw_only=True)
class StreamStart:
    """Where a session enters the audio.

    offset_s: of its first sample in the clip.
    """

    session_id: int
    corpus: str
    clip_id: str
    offset_s: float


class AudioRing:
    """Clips end to end in one array, closed to a ring, and the cut into frames.

    Frame k of a session covers samples edge(k)..edge(k + 1) after its entry, where edge(k) is
    k B rate, rounded half up in exact arithmetic. Frames therefore tile the stream without drift;
    where B rate is not whole, their lengths differ by one sample.
    Example: B = 0.0001 s at 16 kHz is 1.6 samples, and frames hold 2, 1, 2, 1, 2 samples.

    To make the ring whole frames long, less than one frame is cut off the end of the last clip.
    Where B rate is not whole, or the clips are shorter than one frame, nothing is cut, and sessions
    may meet after a round.

    clips: in ring order, all at one rate.
    frame_budget_s: B.

    Raises: CorpusError if the clips are none or of several rates; ConfigError if B is shorter than
    a sample, or not finite.
    """

    def __init__(self, clips: Sequence[Clip], frame_budget_s: float) -> None:
        rates = sorted({clip.sample_rate_hz for clip in clips})
        if len(rates) != 1:
            raise CorpusError(
                f"clips have sample_rate_hz={rates}: load at least one clip, and all at one rate"
            )
        self.sample_rate_hz = rates[0]
        if not 1 <= frame_budget_s * self.sample_rate_hz < math.inf:
            raise ConfigError(
                f"frame_budget_s={frame_budget_s} must hold at least one sample at "
                f"{self.sample_rate_hz} Hz and end at some time: choose another"
            )
        # repr() keeps B as it was written: 0.08 s is 2/25 s here, not the nearest binary number.
        self._frame_samples = Fraction(repr(float(frame_budget_s))) * self.sample_rate_hz
        self._clips = clips
        self._clip_starts = np.cumsum([0, *(clip.samples.size for clip in clips)])
        once = np.concatenate([clip.samples for clip in clips])
        if self._frame_samples.denominator == 1 and once.size >= self._frame_samples:
            once = once[: once.size - once.size % int(self._frame_samples)]
        self.num_samples = once.size
        # The head is repeated behind the end, so that every frame is one slice.
        self._samples: Samples = np.resize(once, self.num_samples + math.ceil(self._frame_samples))
        self._samples.flags.writeable = False

    @property
    def num_phases(self) -> int:
        """Places within one frame, in whole samples, that sessions can enter at."""
        return int(self._frame_samples)

    def edge(self, index: int) -> int:
        """Samples between a session's entry and its frame `index`."""
        scaled = 2 * index * self._frame_samples.numerator + self._frame_samples.denominator
        return scaled // (2 * self._frame_samples.denominator)

    def frame(self, entry: int, index: int) -> Samples:
        """Frame `index` of a session that entered at sample `entry`: a read-only view."""
        index = int(index)  # a numpy integer would overflow in edge()
        first, end = self.edge(index), self.edge(index + 1)
        begin = (entry + first) % self.num_samples
        return self._samples[begin : begin + end - first]

    def clips(self, entry: int, num_frames: int) -> list[Clip]:
        """Every clip that the first `num_frames` frames touch, in order, from sample `entry` on."""
        touched: list[Clip] = []
        position, end = entry, entry + self.edge(num_frames)
        while position < end:
            place = position % self.num_samples
            clip, offset_s = self.locate(place)
            touched.append(clip)
            left = clip.samples.size - round(offset_s * self.sample_rate_hz)
            # The last clip may have been cut where the ring closes.
            position += min(left, self.num_samples - place)
        return touched

    def locate(self, position: int) -> tuple[Clip, float]:
        """The clip at a sample of the ring, and the offset in it, seconds."""
        number = int(np.searchsorted(self._clip_starts, position, side="right")) - 1
        return self._clips[number], (position - self._clip_starts[number]) / self.sample_rate_hz


class AudioStream:
    """The audio of one session, in frames that can be asked for in any order and without end."""

    def __init__(self, ring: AudioRing, session_id: int, entry: int) -> None:
        clip, offset_s = ring.locate(entry)
        self.start = StreamStart(
            session_id=session_id,
            corpus=clip.corpus,
            clip_id=clip.clip_id,
            offset_s=float(offset_s),
        )
        self.sample_rate_hz = ring.sample_rate_hz
        self._ring = ring
        self._entry = entry

    def frame(self, index: int) -> Samples:
        """Frame `index`, from 0: float32, shape (num_samples,), a read-only view."""
        return self._ring.frame(self._entry, index)

    def clips(self, num_frames: int) -> list[Clip]:
        """Every clip that the first `num_frames` frames touch, in order."""
        return self._ring.clips(self._entry, num_frames)

    def prefix_digest(self) -> str:
        """Digest of the first frame: sessions that differ in it share no prefix."""
        return hashlib.sha256(self.frame(0).tobytes()).hexdigest()[:16]


class NoAudio:
    """A session without audio: every frame holds no samples, and its stream starts in no clip."""

    def __init__(self, session_id: int) -> None:
        self.start = StreamStart(session_id=session_id, corpus="", clip_id="", offset_s=0.0)
        self._samples: Samples = np.zeros(0, dtype=np.float32)

    def frame(self, index: int) -> Samples:
        """No samples, whatever the frame."""
        return self._samples

    def prefix_digest(self) -> str:
        """Digest of the session's name: a simulated session's prompts are made from it."""
        return hashlib.sha256(f"session {self.start.session_id}".encode()).hexdigest()[:16]


SessionStream = AudioStream | NoAudio


def draw_streams(
    clips: Sequence[Clip],
    *,
    num_sessions: int,
    frame_budget_s: float,
    rng: np.random.Generator,
) -> list[AudioStream]:
    """One stream a session; their first frames are audible and differ from one another.

    The sessions of a smaller `num_sessions` are the first of a larger one's.

    Raises: CorpusError if the clips have too few such frames.
    """
    order = rng.permutation(len(clips))
    ring = AudioRing([clips[number] for number in order], frame_budget_s)
    streams: list[AudioStream] = []
    taken_phases: set[int] = set()
    taken_prefixes: set[str] = set()
    draws = 0
    while len(streams) < num_sessions:
        if draws == _MAX_DRAWS:
            raise CorpusError(
                f"{len(clips)} clips, {ring.num_samples / ring.sample_rate_hz:.1f} s in all, give "
                f"{len(streams)} sessions a distinct and audible first frame of "
                f"{frame_budget_s} s, not num_sessions={num_sessions}: add a corpus, lower "
                "num_sessions or choose a longer frame"
            )
        draws += 1
        entry = int(rng.integers(ring.num_samples))
        stream = AudioStream(ring, len(streams), entry)
        phase, prefix = entry % ring.num_phases, stream.prefix_digest()
        audible = bool(np.abs(stream.frame(0)).max() >= SILENCE_PEAK)
        if audible and phase not in taken_phases and prefix not in taken_prefixes:
            taken_phases.add(phase)
            taken_prefixes.add(prefix)
            streams.append(stream)
            draws = 0
    return streams
