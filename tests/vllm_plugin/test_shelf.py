"""What is put on a shelf comes back, whatever the disk does."""

import errno
import io
import tempfile

import pytest

from harness.vllm_plugin.shelf import Shelf

ITEMS = [b"first", None, b"", b"x" * 70_000, b"last"]


def filled(items=ITEMS):
    shelf = Shelf()
    for item in items:
        shelf.put(item)
    return shelf


def test_items_come_back_in_order_and_the_shelf_is_empty_then():
    shelf = filled()
    assert len(shelf) == len(ITEMS)
    assert list(shelf.take_all()) == ITEMS
    assert len(shelf) == 0
    shelf.put(b"again")
    assert list(shelf.take_all()) == [b"again"]


def test_a_returned_item_may_be_written_to():
    (item,) = filled([b"ab"]).take_all()
    item[0] = ord("z")
    assert item == b"zb"


class FullDisk(io.BytesIO):
    """Takes the first item, a part of the second, and then nothing."""

    room = 8

    def write(self, data):
        if self.tell() >= self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data[: self.room - self.tell()])


def test_what_a_full_disk_does_not_take_stays_in_memory(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda buffering: FullDisk())
    items = [b"first", b"second", None, b"third"]
    shelf = filled(items)
    assert list(shelf.take_all()) == items


def test_without_a_file_everything_stays_in_memory(monkeypatch):
    def refuse(buffering):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert list(filled().take_all()) == ITEMS


@pytest.mark.parametrize("count", [0, 1])
def test_an_unused_shelf_opens_no_file(monkeypatch, count):
    opened = []
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda buffering: opened.append(1))
    filled([None] * count)
    assert opened == []
