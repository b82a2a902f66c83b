"""Writing results so that a reader sees the whole file or none of it, whoever else is writing."""

import json
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from harness.core.errors import TelemetryError

COMPLETE = "COMPLETE"
# No file takes so long to write: what is older was left by a killed process.
_ABANDONED_S = 3600.0


def partial_of(path: Path) -> Path:
    """A temporary name beside `path` that no other writer has, on this machine or another."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place only if the block succeeds.

    Raises: TelemetryError if the directory cannot be written or the disk is full.
    """
    partial = partial_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise TelemetryError(
            f"cannot write {path}: {error.strerror or error}: "
            "choose another paths.results_dir or free the disk"
        ) from error
    finally:
        # A read-only file system refuses even to remove what is not there.
        with suppress(OSError):
            partial.unlink()


def _remove_abandoned(path: Path) -> None:
    for partial in path.parent.glob(f".{path.name}.*.partial"):
        # Its writer may be about to put it in place.
        with suppress(FileNotFoundError):
            if time.time() - partial.stat().st_mtime > _ABANDONED_S:
                partial.unlink()


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


def is_complete(directory: Path) -> bool:
    """Whether `building` went to its end."""
    return (directory / COMPLETE).exists()


@contextmanager
def building(target: Path) -> Iterator[Path | None]:
    """Yield a directory to fill, which becomes `target` only if the block succeeds.

    None if another process has built it meanwhile: of several, one builds and the others wait.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f".{target.name}.lock")):
        if is_complete(target):
            yield None
            return
        partial = partial_of(target)
        partial.mkdir()
        try:
            yield partial
            (partial / COMPLETE).touch()
            shutil.rmtree(target, ignore_errors=True)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
