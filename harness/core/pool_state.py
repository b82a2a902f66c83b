"""The state of an engine's scheduler and KV pool, readable while the engine is stalled.

vLLM's own gauges travel with outputs, so they freeze at the moment a reader needs them most. Here
the scheduler writes one fixed-size record into a memory-mapped page after every step, and any
process reads it at any time: a stalled engine still schedules (nothing) every millisecond, so its
record stays fresh; a hung or dead one is seen by its age. One writer, any number of readers, no
locks: the writer fills one of two slots and then counts it, so the last counted slot is whole even
if the writer dies while it writes the other.
"""

import mmap
import struct
from dataclasses import astuple, dataclass
from pathlib import Path

from harness.core.errors import EngineError

_COUNT = struct.Struct("<q")
_RECORD = struct.Struct("<d9q")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """One reading of an engine.

    stamp_s: instant at which the scheduler wrote it, on the run's clock.
    total_blocks, used_blocks: KV pool; blocks that a request holds.
    num_running: requests in the running batch.
    num_waiting: requests that could run if blocks were free (new, continued or preempted).
    num_paused: streaming sessions that wait for their next frame, holding their blocks.
    num_preempted_waiting: of the waiting ones, those whose blocks were taken away.
    num_preemptions, num_steps, num_scheduled_tokens: counted since the engine started.
    """

    stamp_s: float
    total_blocks: int
    used_blocks: int
    num_running: int
    num_waiting: int
    num_paused: int
    num_preempted_waiting: int
    num_preemptions: int
    num_steps: int
    num_scheduled_tokens: int

    @property
    def occupancy(self) -> float:
        """Share of the pool that is held, 0..1."""
        return self.used_blocks / self.total_blocks


class PoolStatePage:
    """A page shared by the scheduler that writes it and the sampler that reads it."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Map the page at `path`. Raises: EngineError if it is not there and `create` is False."""
        if create:
            path.write_bytes(bytes(mmap.PAGESIZE))
        try:
            with path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        except (OSError, ValueError) as error:
            raise EngineError(
                f"the engine's state page {path} cannot be mapped: {error}"
            ) from error

    def write(self, state: PoolState) -> None:
        """Publish one reading; only the scheduler calls this."""
        count = self._count() + 1
        _RECORD.pack_into(self._map, _slot(count), *astuple(state))
        _COUNT.pack_into(self._map, 0, count)

    def read(self) -> PoolState | None:
        """The last complete reading, or None if the scheduler has not written yet."""
        count = self._count()
        while count:
            record = _RECORD.unpack_from(self._map, _slot(count))
            # The slot is written again only after the other one has been counted.
            if (latest := self._count()) == count:
                return PoolState(**dict(zip(PoolState.__dataclass_fields__, record, strict=True)))
            count = latest
        return None

    def _count(self) -> int:
        return int(_COUNT.unpack_from(self._map)[0])


def _slot(count: int) -> int:
    """Offset of the slot that reading number `count` goes to."""
    return _COUNT.size + (count % 2) * _RECORD.size
