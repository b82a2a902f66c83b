"""Host memory of a run: of its process and of the engine processes below it."""

from __future__ import annotations

import contextlib

import psutil


class ProcessTreeMemory:
    """Resident memory of this process and of the descendants that it has now, bytes.

    Pages that forked processes share count in each: read the growth, not the level.
    """

    def __init__(self) -> None:
        this = psutil.Process()
        self._processes = [this, *this.children(recursive=True)]

    def read(self) -> int:
        """Return the sum over those that still live."""
        total = 0
        for process in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total
