import dataclasses
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from harness.core.errors import TelemetryError
from harness.telemetry import schemas

EVENTS = pd.DataFrame(
    {"t_s": [0.5], "kind": ["run_end"], "session_id": pd.array([None], "Int64"), "detail": [""]}
)


def test_units_travel_with_the_file(tmp_path: Path) -> None:
    path = schemas.EVENTS.write(EVENTS, tmp_path)
    field = pq.read_schema(path).field("t_s")
    assert field.metadata[b"unit"] == b"s"
    pd.testing.assert_frame_equal(
        schemas.EVENTS.read(tmp_path), EVENTS, check_dtype=False, check_column_type=False
    )


def test_an_old_schema_is_refused_by_name(tmp_path: Path) -> None:
    schemas.EVENTS.write(EVENTS, tmp_path)
    newer = dataclasses.replace(schemas.EVENTS, version=schemas.EVENTS.version + 1)
    words = f"has schema events/{schemas.EVENTS.version}, this version reads events/{newer.version}"
    with pytest.raises(TelemetryError, match=words):
        newer.read(tmp_path)
    assert newer.is_outdated(tmp_path)
    assert not schemas.EVENTS.is_outdated(tmp_path)


def test_a_torn_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = schemas.EVENTS.write(EVENTS, tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TelemetryError, match=r"events\.parquet cannot be read"):
        schemas.EVENTS.read(tmp_path)


def test_a_missing_column_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="events does not fit its schema"):
        schemas.EVENTS.write(EVENTS.drop(columns="kind"), tmp_path)
    assert list(tmp_path.iterdir()) == []
