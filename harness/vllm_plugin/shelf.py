"""Bytes of one session that are hardly ever needed again, kept in order and out of memory."""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Iterator
from typing import IO

_NOTHING = -1


class Shelf:
    """An append-only list of byte strings in a nameless temporary file.

    The file goes with the object, and with the process if that is killed. What the disk does not
    take (it is full, or files have run out) stays in memory: a session does not end for it.
    """

    def __init__(self) -> None:
        self._sizes = array("q")
        self._file: IO[bytes] | None = None
        self._in_memory: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._sizes)

    def put(self, item: bytes | None) -> None:
        """Append an item; None is kept as None."""
        if item is not None:
            try:
                self._write(item)
            except OSError:
                self._in_memory[len(self._sizes)] = item
        self._sizes.append(_NOTHING if item is None else len(item))

    def _write(self, item: bytes) -> None:
        if self._file is None:
            # Unbuffered, so that an item is on disk as a whole or its failure is known here.
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed below
            weakref.finalize(self, self._file.close)
        start = self._file.tell()
        if self._file.write(item) != len(item):
            self._file.seek(start)
            raise OSError("the disk took a part")

    def take_all(self) -> Iterator[bytearray | None]:
        """Yield every item in order, in memory of its own, and leave the shelf empty."""
        if self._file is not None:
            self._file.seek(0)
        for index, size in enumerate(self._sizes):
            if size == _NOTHING:
                yield None
            elif index in self._in_memory:
                yield bytearray(self._in_memory[index])
            else:
                assert self._file is not None
                yield bytearray(self._file.read(size))
        self._sizes, self._in_memory = array("q"), {}
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()
