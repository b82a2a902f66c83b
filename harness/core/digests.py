"""Digests that name a configuration or a table by its content."""

import dataclasses
import enum
import hashlib
import json
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """A dataclass tree as dicts, lists, strings and numbers, with enums by name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value


def digest(value: Any, *, length: int = 16) -> str:
    """Hex digest of a value's canonical JSON; equal values have equal digests on every machine."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]
