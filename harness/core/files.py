"""Writing results so that a reader sees the whole file or none of it."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.core.errors import TelemetryError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place only if the block succeeds.

    Raises: TelemetryError if the directory cannot be written or the disk is full.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise TelemetryError(
            f"cannot write {path}: {error.strerror or error}: "
            "choose another paths.results_dir or free the disk"
        ) from error
    finally:
        if partial.parent.is_dir():
            partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; one that holds this text already is left alone.

    Raises: TelemetryError.
    """
    if path.is_file() and path.read_bytes() == text.encode():
        return
    with replacing(path) as partial:
        partial.write_text(text)


def write_json(path: Path, value: Any) -> None:
    """Write plain values as indented JSON, atomically; NaN is refused. Raises: TelemetryError."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")
