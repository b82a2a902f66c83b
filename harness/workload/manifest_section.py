"""One mapping of a manifest, read key by key, so that nothing misspelt or extra goes unnoticed."""

import enum
import math
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from harness.core.errors import CorpusError

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_EnumT = TypeVar("_EnumT", bound=enum.Enum)


class Section:
    """A mapping whose keys are each asked for once; `finish` refuses those nobody asked for.

    where: names the mapping in messages.

    Raises: CorpusError from every method.
    """

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise CorpusError(
                f"{where}: is {value!r:.40}, not a mapping: see audio_corpora/README.md"
            )
        self.where = where
        self._values: dict[Any, Any] = value
        self._asked: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._values

    def finish(self) -> None:
        """Refuse keys that were never asked for."""
        unknown = [str(key) for key in self._values if key not in self._asked]
        if unknown:
            raise CorpusError(
                f"{self.where}: unknown key {', '.join(unknown)}: "
                f"remove it, or did you mean one of {', '.join(sorted(self._asked))}?"
            )

    def text(self, key: str) -> str:
        """A string with something in it."""
        value = self._get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, value, "a string; put it in quotes if it looks like a number")
        return value

    def file_name(self, key: str) -> str:
        """A string that is safe as a file's name."""
        value = self.text(key)
        if not _FILE_NAME.fullmatch(value):
            raise self._wrong(key, value, "made of letters, digits, '_', '.' and '-'")
        return value

    def file_names(self, key: str) -> tuple[str, ...]:
        """A list of different strings that are safe as files' names, at least one."""
        values = self._get(key)
        if (
            not isinstance(values, list)
            or not values
            or not all(isinstance(name, str) and _FILE_NAME.fullmatch(name) for name in values)
            or len(set(values)) < len(values)
        ):
            raise self._wrong(key, values, "a list of different names of files, without suffix")
        return tuple(values)

    def sha256(self, key: str) -> str:
        """A SHA-256 in hexadecimal."""
        value = self.text(key)
        if not _SHA256.fullmatch(value):
            raise self._wrong(key, value, "64 lower-case hexadecimal digits")
        return value

    def count(self, key: str) -> int:
        """A whole number of at least 1."""
        value = self._get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._wrong(key, value, "a whole number of at least 1")
        return value

    def positive(self, key: str) -> float:
        """A finite number above 0."""
        value = self._get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value <= 0:
            raise self._wrong(key, value, "a number above 0")
        return float(value)

    def one_of(self, key: str, choices: type[_EnumT]) -> _EnumT:
        """A member of `choices`, by value."""
        value = self._get(key)
        try:
            return choices(value)
        except ValueError:
            names = ", ".join(str(choice.value) for choice in choices)
            raise self._wrong(key, value, f"one of {names}") from None

    def section(self, key: str) -> "Section":
        """A mapping inside this one."""
        return Section(self._get(key), f"{self.where}: {key}")

    def sections(self, key: str, *, inherited: Sequence[str]) -> list["Section"]:
        """A list of at least one mapping; each takes the `inherited` keys it lacks from here."""
        values = self._get(key)
        if not isinstance(values, list) or not values:
            raise self._wrong(key, values, "a list with at least one entry")
        defaults = {name: self._values[name] for name in inherited if name in self._values}
        sections = []
        for number, value in enumerate(values, start=1):
            where = f"{self.where}: {key} entry {number}"
            own = Section(value, where)
            sections.append(Section({**defaults, **own._values}, where))
        return sections

    def _get(self, key: str) -> Any:
        self._asked.add(key)
        if key not in self._values:
            raise CorpusError(f"{self.where}: {key} is missing: add it")
        return self._values[key]

    def _wrong(self, key: str, value: Any, expected: str) -> CorpusError:
        return CorpusError(f"{self.where}: {key}={value!r:.80} must be {expected}")
