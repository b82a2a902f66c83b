import threading
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.errors import EngineError
from harness.core.pool_state import PoolState, PoolStatePage

STATE = PoolState(
    stamp_s=12.5,
    total_blocks=100,
    used_blocks=25,
    num_running=1,
    num_waiting=2,
    num_paused=3,
    num_preempted_waiting=4,
    num_preemptions=5,
    num_steps=6,
    num_scheduled_tokens=7,
)


def test_a_reading_comes_back_as_it_was_written(tmp_path: Path) -> None:
    page = PoolStatePage(tmp_path / "page", create=True)
    assert page.read() is None
    page.write(STATE)
    assert PoolStatePage(tmp_path / "page").read() == STATE
    assert STATE.occupancy == 0.25


def test_a_reader_never_sees_half_a_reading(tmp_path: Path) -> None:
    writer = PoolStatePage(tmp_path / "page", create=True)
    reader = PoolStatePage(tmp_path / "page")
    writer.write(replace(STATE, num_steps=0, num_scheduled_tokens=0))

    def write() -> None:
        for step in range(5_000):
            writer.write(replace(STATE, num_steps=step, num_scheduled_tokens=step))

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        seen = reader.read()
        assert seen is not None
        assert seen.num_steps == seen.num_scheduled_tokens
    thread.join()


def test_a_writer_that_dies_while_writing_leaves_the_last_whole_reading(tmp_path: Path) -> None:
    page = PoolStatePage(tmp_path / "page", create=True)
    page.write(replace(STATE, num_steps=1))
    whole = (tmp_path / "page").read_bytes()
    page.write(replace(STATE, num_steps=2))
    content = bytearray((tmp_path / "page").read_bytes())
    # The second reading was written but not yet counted.
    content[:8] = whole[:8]
    (tmp_path / "page").write_bytes(content)
    seen = PoolStatePage(tmp_path / "page").read()
    assert seen is not None
    assert seen.num_steps == 1


def test_a_missing_page_is_an_engine_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be mapped"):
        PoolStatePage(tmp_path / "nowhere")
