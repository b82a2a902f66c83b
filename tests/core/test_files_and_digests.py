import enum
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from harness.core.digests import digest
from harness.core.errors import TelemetryError
from harness.core.files import building, replacing, write_json
from harness.core.seeding import named_rng


class Colour(enum.Enum):
    red = "r"


@dataclass(frozen=True)
class Thing:
    name: str
    colour: Colour
    sizes: tuple[float, ...]


def test_equal_values_have_equal_digests_and_different_ones_do_not() -> None:
    thing = Thing("a", Colour.red, (1.0, 2.5))
    assert digest(thing) == digest(Thing("a", Colour.red, (1.0, 2.5)))
    assert digest(thing) != digest(Thing("a", Colour.red, (1.0, 2.6)))
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})


def test_a_digest_never_changes_between_versions() -> None:
    assert digest({"seed": 0, "model": "moshi"}) == "778940e3a3d89d3e"


def test_a_failed_write_leaves_the_old_file_and_no_partial(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"ok": 1})
    with pytest.raises(RuntimeError), replacing(path) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert "ok" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_or_read_only_disk_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(TelemetryError, match=r"cannot write .*result\.json"):
        write_json(blocker / "result.json", {})


def test_what_a_killed_writer_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    old, new = tmp_path / ".x.json.aa.partial", tmp_path / ".x.json.bb.partial"
    for partial in (old, new):
        partial.write_text("half")
    os.utime(old, (0, 0))
    write_json(tmp_path / "x.json", {})
    assert {path.name for path in tmp_path.iterdir()} == {"x.json", ".x.json.bb.partial"}


def test_of_two_builders_of_a_directory_one_builds_and_the_other_finds_it_built(
    tmp_path: Path,
) -> None:
    target, turns = tmp_path / "built", iter(("one", "other"))

    def build() -> str | None:
        with building(target) as directory:
            if directory is None:
                return None
            time.sleep(0.2)
            (directory / "who").write_text(name := next(turns))
            return name

    with ThreadPoolExecutor(2) as pool:
        done = {future.result() for future in [pool.submit(build), pool.submit(build)]}
    assert done == {"one", None}
    assert (target / "who").read_text() == "one"


def test_a_directory_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), building(tmp_path / "built"):
        raise RuntimeError
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_nan_never_reaches_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_named_streams_are_independent_of_each_other() -> None:
    first = named_rng(0, "streams").random(4)
    assert np.array_equal(first, named_rng(0, "streams").random(4))
    assert not np.array_equal(first, named_rng(0, "arrivals").random(4))
    assert not np.array_equal(first, named_rng(1, "streams").random(4))
