"""Streams: drawn from the seed, no two alike, cut without gap, overlap or drift, and endless."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import ConfigError, CorpusError
from harness.core.seeding import named_rng
from harness.workload.corpus import Clip
from harness.workload.streams import AudioStream, draw_streams
from tests.workload.stand_ins import noise


def clip(samples: np.ndarray, clip_id: str = "clip", rate: int = 16000) -> Clip:
    return Clip(corpus="test", clip_id=clip_id, sample_rate_hz=rate, samples=samples)


def noise_clips(*lengths: int, rate: int = 16000) -> list[Clip]:
    return [clip(noise(size, seed), f"clip{seed}", rate) for seed, size in enumerate(lengths)]


def draw(
    clips: list[Clip], num_sessions: int = 1, frame_budget_s: float = 1.0, seed: int = 0
) -> list[AudioStream]:
    return draw_streams(
        clips,
        num_sessions=num_sessions,
        frame_budget_s=frame_budget_s,
        rng=named_rng(seed, "streams"),
    )


CLIPS = noise_clips(480001, 113600, 47840, 96800)


def test_one_seed_gives_one_set_of_streams_and_another_seed_another() -> None:
    starts = [[stream.start for stream in draw(CLIPS, 16, seed=seed)] for seed in (1, 1, 2)]
    frames = [[stream.frame(7).tobytes() for stream in draw(CLIPS, 16, seed=s)] for s in (1, 1, 2)]
    assert starts[0] == starts[1] != starts[2]
    assert frames[0] == frames[1] != frames[2]


def test_clip_and_offset_spread_over_the_corpus() -> None:
    starts = [stream.start for stream in draw(CLIPS, 64)]
    assert [start.session_id for start in starts] == list(range(64))
    assert {start.clip_id for start in starts} == {each.clip_id for each in CLIPS}
    assert len({start.offset_s for start in starts}) == 64


def test_the_clips_of_a_stretch_are_those_that_its_samples_come_from() -> None:
    tones = [
        clip(np.full(size, k + 1, np.float32), f"tone{k}") for k, size in enumerate((7, 9, 10))
    ]
    for seed in range(6):
        (stream,) = draw(tones, frame_budget_s=4 / 16000, seed=seed)
        for num_frames in (1, 3, 6, 7):
            heard = np.concatenate([stream.frame(index) for index in range(num_frames)])
            changes = np.flatnonzero(np.append(True, np.diff(heard) != 0))
            named = [touched.samples[0] for touched in stream.clips(num_frames)]
            assert named == heard[changes].tolist()


def test_a_start_names_the_place_that_the_first_frame_is_cut_from() -> None:
    by_id = {each.clip_id: each for each in CLIPS}
    for stream in draw(CLIPS, 32, frame_budget_s=0.08):
        begin = round(stream.start.offset_s * 16000)
        cut = by_id[stream.start.clip_id].samples[begin : begin + 1280]
        np.testing.assert_array_equal(stream.frame(0)[: cut.size], cut)


def test_a_start_on_a_seam_belongs_to_the_clip_that_begins_there() -> None:
    clips = [clip(np.array([(n + 1) / 10], dtype=np.float32), f"clip{n}") for n in range(5)]
    for seed in range(5):
        (stream,) = draw(clips, frame_budget_s=1 / 16000, seed=seed)
        assert stream.start.offset_s == 0.0
        (named,) = [each for each in clips if each.clip_id == stream.start.clip_id]
        assert stream.frame(0)[0] == named.samples[0]


def test_fewer_sessions_are_the_first_of_more() -> None:
    more = [stream.start for stream in draw(CLIPS, 64)]
    assert [stream.start for stream in draw(CLIPS, 8)] == more[:8]


@pytest.mark.parametrize("frame_budget_s", [0.08, 1.0, 2.0])
def test_256_sessions_have_256_prefixes(frame_budget_s: float) -> None:
    streams = draw(CLIPS, 256, frame_budget_s)
    assert len({stream.frame(0).tobytes() for stream in streams}) == 256
    assert len({stream.prefix_digest() for stream in streams}) == 256


def test_two_sessions_never_send_the_same_frame() -> None:
    # 64 samples a frame and 40 sessions: drawn freely, some would be whole frames apart.
    streams = draw(noise_clips(9000, 11000), 40, frame_budget_s=0.004)
    frames = [{stream.frame(index).tobytes() for index in range(1000)} for stream in streams]
    # A round is 312 frames, and a session does repeat itself, round after round.
    assert [len(each) for each in frames] == [312] * 40
    assert len(set.union(*frames)) == 40 * 312


def test_the_seed_draws_the_order_of_the_clips() -> None:
    levels = [clip(np.full(100, level / 10, dtype=np.float32)) for level in range(1, 7)]
    orders = set()
    for seed in range(8):
        (stream,) = draw(levels, frame_budget_s=0.00625, seed=seed)
        heard = [round(float(stream.frame(index)[0]) * 10) for index in range(6)]
        assert sorted(heard) == [1, 2, 3, 4, 5, 6]
        begin = heard.index(1)
        orders.add(tuple(heard[begin:] + heard[:begin]))
    assert len(orders) > 4


def test_repeated_audio_is_too_small_a_corpus() -> None:
    # One period of 100 samples, over and over: 100 distinct first frames exist.
    periodic = clip(np.tile(noise(100), 1000))
    assert len(draw([periodic], 20, frame_budget_s=0.1)) == 20
    with pytest.raises(CorpusError) as refusal:
        draw([periodic], 101, frame_budget_s=0.1)
    message = str(refusal.value)
    assert message.startswith("1 clips, 6.2 s in all, give ")
    assert "num_sessions=101" in message
    assert "\n" not in message


def test_a_session_starts_where_something_is_heard() -> None:
    # Nine tenths silence; about nine draws in ten must be thrown away.
    mostly_silent = np.zeros(160000, dtype=np.float32)
    mostly_silent[:16000] = noise(16000)
    for stream in draw([clip(mostly_silent)], 32, frame_budget_s=0.08):
        assert np.abs(stream.frame(0)).max() >= 1e-3


def test_a_silent_corpus_has_no_place_to_start() -> None:
    with pytest.raises(CorpusError, match="give 0 sessions a distinct and audible first frame"):
        draw([clip(np.zeros(160000, dtype=np.float32))])


@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=5),
    rate=st.integers(10, 400),
    frame_budget_s=st.floats(0.1, 3.0) | st.sampled_from([0.5, 1.0, 2.0]),
    seed=st.integers(0, 2**32),
    num_frames=st.integers(1, 40),
)
def test_frames_tile_the_stream_without_gap_or_overlap(
    lengths: list[int], rate: int, frame_budget_s: float, seed: int, num_frames: int
) -> None:
    # Every sample is its own place in the corpus, so a gap, an overlap or a bad seam shows.
    places = np.arange(1, sum(lengths) + 1, dtype=np.float32)
    bounds = np.cumsum([0, *lengths])
    clips = [clip(places[begin:end], f"clip{begin}", rate) for begin, end in pairwise(bounds)]
    (stream,) = draw(clips, frame_budget_s=frame_budget_s, seed=seed)
    frames = [stream.frame(index) for index in range(num_frames)]
    walked = np.concatenate(frames)
    # The right length: no drift after any number of frames.
    assert abs(walked.size - num_frames * frame_budget_s * rate) <= 0.5 + 1e-6
    assert {frame.size for frame in frames} <= {
        int(frame_budget_s * rate),
        int(frame_budget_s * rate) + 1,
    }
    # Each clip is played to its end, then another from its beginning, in one fixed cyclic order.
    last = {int(places[end - 1]) for end in bounds[1:]}
    first = {int(places[begin]) for begin in bounds[:-1]}
    follows: dict[int, int] = {}
    cut_short = set()
    for here, there in pairwise(walked.astype(int).tolist()):
        assert follows.setdefault(here, there) == there
        if there != here + 1:
            assert there in first
            cut_short |= {here} - last
    # Only the end of the ring may be cut, and by less than a frame.
    assert len(cut_short) <= 1
    if cut_short:
        cut = next(end for end in sorted(last) if end > min(cut_short)) - min(cut_short)
        assert (frame_budget_s * rate).is_integer()
        assert cut < frame_budget_s * rate


def test_a_whole_number_of_samples_makes_equal_frames_for_hours() -> None:
    (stream,) = draw(noise_clips(4801, rate=24000), frame_budget_s=0.08)
    sizes = {stream.frame(index).size for index in [*range(1000), *range(10**7, 10**7 + 1000)]}
    assert sizes == {1920}


def test_a_fraction_of_a_sample_does_not_add_up() -> None:
    # 1.6 samples a frame: 2, 1, 2, 1, 2 and again.
    (stream,) = draw(noise_clips(4801), frame_budget_s=0.0001)
    assert [stream.frame(index).size for index in range(10)] == [2, 1, 2, 1, 2, 2, 1, 2, 1, 2]


def test_half_samples_are_rounded_as_the_budget_was_written() -> None:
    # 0.0115 s is a little less than that in binary: 11.5 samples at 1 kHz must still round up.
    (stream,) = draw(noise_clips(4801, rate=1000), frame_budget_s=0.0115)
    assert [stream.frame(index).size for index in range(4)] == [12, 11, 12, 11]


def test_numpy_integers_count_frames_too() -> None:
    (stream,) = draw(CLIPS, frame_budget_s=1 / 3)
    np.testing.assert_array_equal(stream.frame(np.int64(10**6)), stream.frame(10**6))


def test_a_stream_wraps_around_and_goes_on() -> None:
    samples = noise(1000)
    (stream,) = draw([clip(samples, rate=100)], frame_budget_s=1.0)
    begin = round(stream.start.offset_s * 100)
    expected = np.take(samples, np.arange(begin, begin + 2500), mode="wrap")
    np.testing.assert_array_equal(
        np.concatenate([stream.frame(index) for index in range(25)]), expected
    )


def test_a_corpus_shorter_than_a_frame_is_repeated_within_it() -> None:
    samples = noise(70)
    (stream,) = draw([clip(samples, rate=100)], frame_budget_s=2.0)
    begin = round(stream.start.offset_s * 100)
    expected = np.take(samples, np.arange(begin, begin + 200), mode="wrap")
    np.testing.assert_array_equal(stream.frame(0), expected)


def test_frames_can_be_asked_for_in_any_order_and_not_be_written() -> None:
    (stream,) = draw(CLIPS)
    later, earlier = stream.frame(50).copy(), stream.frame(3).copy()
    np.testing.assert_array_equal(stream.frame(3), earlier)
    np.testing.assert_array_equal(stream.frame(50), later)
    assert stream.frame(0).dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        stream.frame(0)[0] = 1.0


@pytest.mark.parametrize(
    ("clips", "complaint"),
    [
        ([], r"sample_rate_hz=\[\]"),
        ([*noise_clips(100), *noise_clips(100, rate=8000)], r"sample_rate_hz=\[8000, 16000\]"),
    ],
)
def test_no_clips_or_several_rates_are_refused(clips: list[Clip], complaint: str) -> None:
    with pytest.raises(CorpusError, match=complaint):
        draw(clips)


@pytest.mark.parametrize("frame_budget_s", [0.0, -1.0, 1e-6, float("nan"), float("inf")])
def test_an_impossible_frame_budget_is_refused(frame_budget_s: float) -> None:
    with pytest.raises(ConfigError, match="must hold at least one sample"):
        draw(CLIPS, frame_budget_s=frame_budget_s)
