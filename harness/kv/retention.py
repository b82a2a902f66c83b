"""Which tokens of a session stay in the KV cache: the policies, and their block arithmetic.

A *retention* says what a session keeps after `num_computed_tokens` tokens:

    Unbounded    everything (stock vLLM)
    Window       the last W tokens
    SinkWindow   the first S tokens (attention sinks) and the last W tokens
    native       the last W tokens, W being the model's own context: vLLM's own sliding window
    Recycle      at most W tokens, by the application: before a request would hold more, it
                 ends, and a new one begins with its last frames, which are encoded again

The engine knows nothing of recycling: it keeps all of a request, and what is taken over are whole
frames (`Recycling`). For the others, eviction works on whole blocks and is decided once per step,
from the tokens computed before it. A session keeps its sinks rounded up to blocks, and every block
that still holds one of the last W - 1 computed tokens (the query itself is the W-th):

    W=8, S=4, block 4, 20 computed tokens, 3 new ones

    block     0      1      2      3      4      5
    tokens    0..3   4..7   8..11  12..15 16..19 20..22
    kept      sink   free   free   13..19 is the window; 20..22 are new

Source: paper 4.1, and vllm/v1/core/single_type_kv_cache_manager.py (0.32) for the window half;
deviates from the paper by whole-block eviction.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.core.errors import ConfigError


class RetentionKind(enum.Enum):
    """Name of a retention policy, as it stands in conf/retention/ and in verdict.json."""

    unbounded = "unbounded"
    window = "window"
    sink_window = "sink_window"
    recycle = "recycle"


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What a session keeps of its KV cache.

    window_tokens: W, the most recent tokens a query sees; None keeps everything.
    sink_tokens: S, the first tokens of the session, never evicted; 0 pins nothing.
    native: W is the model's own context, kept by vLLM's sliding window and not by our bound.
    kept_share: share of W that a recycled request begins with, 0..1; None: nothing is recycled.

    Raises: ConfigError if W or S is impossible.
    """

    window_tokens: int | None = None
    sink_tokens: int = 0
    native: bool = False
    kept_share: float | None = None

    def __post_init__(self) -> None:
        if self.kept_share is not None:
            self._check_recycling(self.kept_share)
        if self.native and self.sink_tokens:
            raise ConfigError(
                f"retention.sink_tokens={self.sink_tokens} cannot be kept by retention=native, "
                "a model's own context, which has no sinks: choose retention=sink_window"
            )
        if self.window_tokens is None:
            if self.sink_tokens:
                raise ConfigError(
                    f"retention.sink_tokens={self.sink_tokens} needs retention.window_tokens: "
                    "an unbounded session keeps its first tokens anyway"
                )
            return
        if self.window_tokens < 1:
            raise ConfigError(
                f"retention.window_tokens={self.window_tokens} must be at least 1 "
                "(null keeps everything)"
            )
        if self.sink_tokens < 0:
            raise ConfigError(f"retention.sink_tokens={self.sink_tokens} must be 0 or more")

    def _check_recycling(self, kept_share: float) -> None:
        if not 0 <= kept_share < 1:
            raise ConfigError(
                f"retention.kept_share={kept_share} must be at least 0 and below 1: a recycled "
                "request needs room for new frames (null recycles nothing)"
            )
        if self.window_tokens is None:
            raise ConfigError(
                f"retention.kept_share={kept_share} needs retention.window_tokens: a request is "
                "recycled before it would hold more"
            )
        if self.sink_tokens or self.native:
            raise ConfigError(
                f"retention.kept_share={kept_share} goes with neither retention.sink_tokens nor "
                "retention.native, which bound the cache inside a request: leave one out"
            )

    @property
    def kind(self) -> RetentionKind:
        """The policy's name; a model's own context is a window."""
        if self.window_tokens is None:
            return RetentionKind.unbounded
        if self.is_recycled:
            return RetentionKind.recycle
        return RetentionKind.sink_window if self.sink_tokens else RetentionKind.window

    @property
    def is_bounded(self) -> bool:
        """Whether a session's cache stops growing."""
        return self.window_tokens is not None

    @property
    def is_recycled(self) -> bool:
        """Whether the application bounds a session, by one request after the other."""
        return self.kept_share is not None

    @property
    def is_evicting(self) -> bool:
        """Whether the engine itself frees what a session no longer keeps."""
        return self.is_bounded and not self.is_recycled

    @property
    def kept_tokens(self) -> int:
        """Most tokens that a recycled request begins with; 0 if nothing is recycled.

        Example: W=1024, kept_share 0.5 -> 512.
        """
        return int((self.window_tokens or 0) * (self.kept_share or 0.0) + 1e-9)


@dataclass(frozen=True, kw_only=True)
class Recycling:
    """A recycled session whose frames all add as many tokens: its requests, in whole frames.

    frames_per_request: most frames that a request holds; kept_frames: that a new one begins with.

    Example: W=8, kept_share 0.5, frames of 2 tokens -> 4 frames a request, 2 kept: after frames
    1, 2, 3, ... a request holds 1, 2, 3, 4, then 3, 4, 3, 4, ... frames.
    """

    frames_per_request: int
    kept_frames: int

    @property
    def period_frames(self) -> int:
        """Frames from one recycling to the next."""
        return self.frames_per_request - self.kept_frames

    @property
    def encoded_again(self) -> float:
        """Frames that are encoded again for each new one, on average, once a session is old."""
        return self.kept_frames / self.period_frames

    def begins_request(self, frame: int) -> bool:
        """Whether frame `frame`, from 0, is the first new one of a recycled request."""
        since = frame - self.frames_per_request
        return since >= 0 and since % self.period_frames == 0

    def request_frames(self, num_frames: int) -> int:
        """Frames that the open request holds after a session's first `num_frames`: a sawtooth."""
        since = num_frames - self.frames_per_request
        if since <= 0:
            return num_frames
        return self.kept_frames + (since - 1) % self.period_frames + 1


def recycling_of(retention: Retention, frame_tokens: int) -> Recycling | None:
    """How a session of equal frames is recycled; None if it is not.

    Raises: ConfigError if a recycled request has no room for a new frame.
    """
    if not retention.is_recycled or retention.window_tokens is None:
        return None
    room = retention.window_tokens - retention.kept_tokens
    if room < frame_tokens:
        raise ConfigError(
            f"retention.window_tokens={retention.window_tokens} with kept_share="
            f"{retention.kept_share} leaves {room} tokens for new frames, and one has up to "
            f"{frame_tokens}: raise the window or lower kept_share"
        )
    return Recycling(
        frames_per_request=retention.window_tokens // frame_tokens,
        kept_frames=retention.kept_tokens // frame_tokens,
    )


def validate_for_block_size(retention: Retention, block_size_tokens: int) -> None:
    """Refuse a window that is smaller than the unit of eviction.

    Raises: ConfigError if W is below the block size.
    """
    window = retention.window_tokens
    if window is not None and window < block_size_tokens:
        raise ConfigError(
            f"retention.window_tokens={window} must be at least "
            f"block_size_tokens={block_size_tokens}: raise the window or choose a smaller block"
        )


def num_sink_blocks(retention: Retention, block_size_tokens: int) -> int:
    """Count the blocks at the start of a session that are never freed.

    Example: S=5, block 4 -> 2.
    """
    return -(-retention.sink_tokens // block_size_tokens)


def first_window_block(
    num_computed_tokens: int, retention: Retention, block_size_tokens: int
) -> int:
    """Return the first block that holds a token of the window; 0 if nothing is behind it.

    Example: W=8, block 4, 20 computed tokens -> the window starts at token 13 -> block 3.
    """
    if retention.window_tokens is None or retention.is_recycled:
        return 0
    return max(0, num_computed_tokens - retention.window_tokens + 1) // block_size_tokens


def evicted_blocks(num_computed_tokens: int, retention: Retention, block_size_tokens: int) -> int:
    """Count the blocks between sinks and window, which are freed before the next step.

    Example: W=8, S=4, block 4, 20 computed tokens -> blocks 1 and 2 -> 2.
    """
    first = first_window_block(num_computed_tokens, retention, block_size_tokens)
    return max(0, first - num_sink_blocks(retention, block_size_tokens))


def live_blocks(
    num_computed_tokens: int,
    retention: Retention,
    block_size_tokens: int,
    *,
    num_new_tokens: int = 0,
) -> int:
    """Count the blocks a session holds while it computes `num_new_tokens` more.

    Example: W=8, S=4, block 4, 20 tokens -> sink block 0 and blocks 3..4 -> 3; 3 new ones -> 4.
    """
    num_blocks = -(-(num_computed_tokens + num_new_tokens) // block_size_tokens)
    return num_blocks - evicted_blocks(num_computed_tokens, retention, block_size_tokens)


def plateau_blocks(
    retention: Retention,
    block_size_tokens: int,
    in_flight_tokens: int,
    *,
    max_model_len: int | None = None,
) -> int | None:
    """Return the most blocks a session ever holds; None if it grows without end.

    in_flight_tokens: most new tokens of a session that are scheduled but not yet settled.
    max_model_len: longest session; None if sessions have no end.

    Example: W=8, S=4, block 4, 3 in flight -> 10 tokens on 3 blocks, 1 more since the window may
    start inside a block, 1 of sinks -> 5. Recycled, a request reaches W at most -> 2.
    Source: SlidingWindowSpec.max_admission_blocks_per_request, plus the sinks.
    """
    longest = None if max_model_len is None else -(-max_model_len // block_size_tokens)
    if retention.window_tokens is None:
        return longest
    if retention.is_recycled:
        recycled = -(-retention.window_tokens // block_size_tokens)
        return recycled if longest is None else min(recycled, longest)
    num_tokens = retention.window_tokens - 1 + in_flight_tokens
    blocks = -(-num_tokens // block_size_tokens) + 1 + num_sink_blocks(retention, block_size_tokens)
    # vLLM adds its block for the unaligned start to a session of full length, too.
    return blocks if longest is None else min(blocks, longest + 1)


def most_read_tokens(retention: Retention, block_size_tokens: int) -> int | None:
    """Return the most cached tokens that a decoding session reads; None if all it has.

    The sinks in whole blocks, and the window (part of a block more, which is left out).
    Example: W=8, S=2, block 4 -> 12.
    """
    if retention.window_tokens is None:
        return None
    sinks = num_sink_blocks(retention, block_size_tokens) * block_size_tokens
    return retention.window_tokens + sinks


def is_visible(
    key: int, query: int, chunk_start: int, retention: Retention, block_size_tokens: int
) -> bool:
    """Tell whether the token at position `query` attends to the one at position `key`.

    chunk_start: position of the first token of the step that computed `query`; a decode step is a
    chunk of one. Eviction is decided there, so within a chunk the window does not slide: a query at
    offset o of its chunk sees between W and W + o + block - 1 recent tokens, itself included. A
    model's own context is masked by the kernel, to the token.

    Example: W=8, S=2, block 4, query 22 in a chunk from 20 -> keys 0..3 and 12..22.
    """
    if key > query:
        return False
    if retention.native and retention.window_tokens is not None:
        return key > query - retention.window_tokens
    if key < num_sink_blocks(retention, block_size_tokens) * block_size_tokens:
        return True
    return key >= first_window_block(chunk_start, retention, block_size_tokens) * block_size_tokens
