"""Where fetched audio lies, and how to tell that a corpus is there in full.

<cache_dir>/archives/<filename>                             archives as downloaded, hash checked
<cache_dir>/clips/<corpus>/<clip_id>.wav                    mono, 16 bit, the recording's own rate
<cache_dir>/clips/<corpus>/index.json                       one row a clip; written last
<cache_dir>/resampled/<rate>/<corpus>/<clip_id>-<hash>.npy  float32, made when first asked for
<cache_dir>/table/                                          all of it as one `datasets` table
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import CorpusError
from harness.core.files import partial_of
from harness.workload.manifest import CorpusManifest

_INDEX_FORMAT = 1
"""Raise it when the stored form of the clips changes: every cache is then filled anew."""


@dataclass(frozen=True, kw_only=True)
class CachedClip:
    """One clip of the cache.

    file: relative to the cache directory, with forward slashes.
    file_sha256: of that file.
    source, sha256: the recording it was made from, and that recording's hash.
    question, answers: what is asked in it, and what is right; None and none where nothing is.
    """

    corpus: str
    clip_id: str
    file: str
    file_sha256: str
    sample_rate_hz: int
    duration_s: float
    language: str
    kind: str
    licence: str
    source: str
    sha256: str
    question: str | None = None
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class CorpusCache:
    """The layout of one cache directory, and its index files."""

    directory: Path

    def archive(self, filename: str) -> Path:
        """Where an archive lies; one placed here by hand is used like a downloaded one."""
        return self.directory / "archives" / filename

    def clip(self, corpus: str, clip_id: str) -> Path:
        """Where a clip lies."""
        return self.directory / "clips" / corpus / f"{clip_id}.wav"

    def index(self, corpus: str) -> Path:
        """Where a corpus's index lies; it is there only if every clip is."""
        return self.directory / "clips" / corpus / "index.json"

    def resampled(self, clip: CachedClip, sample_rate_hz: int) -> Path:
        """Where a clip at another rate lies."""
        name = f"{clip.clip_id}-{clip.file_sha256[:12]}.npy"
        return self.directory / "resampled" / str(sample_rate_hz) / clip.corpus / name

    @property
    def table(self) -> Path:
        """Where the `datasets` table lies."""
        return self.directory / "table"

    def corpora(self) -> list[str]:
        """Names of the corpora that are there in full, in alphabetical order."""
        return sorted(path.parent.name for path in self.directory.glob("clips/*/index.json"))

    def clips_of(self, corpus: str) -> tuple[CachedClip, ...] | None:
        """The clips of a corpus, None if it is not there in full."""
        stored = self._read_index(corpus)
        return None if stored is None else stored[1]

    def holds(self, manifest: CorpusManifest) -> bool:
        """Whether a corpus is there as this manifest describes it, every file with its hash."""
        stored = self._read_index(manifest.corpus)
        return (
            stored is not None
            and stored[0] == manifest.digest
            and all(sha256_of(self.directory / clip.file) == clip.file_sha256 for clip in stored[1])
        )

    def discount(self, corpus: str) -> None:
        """Make a corpus count as absent, before its files change. Raises: CorpusError."""
        path = self.index(corpus)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error

    def write_index(self, manifest: CorpusManifest, clips: tuple[CachedClip, ...]) -> None:
        """Declare a corpus complete. Raises: CorpusError if the disk refuses."""
        document = {
            "format": _INDEX_FORMAT,
            "manifest_digest": manifest.digest,
            "clips": [dataclasses.asdict(clip) for clip in clips],
        }
        with publish(self.index(manifest.corpus)) as partial:
            partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    def _read_index(self, corpus: str) -> tuple[str, tuple[CachedClip, ...]] | None:
        path = self.index(corpus)
        if not path.is_file():
            return None
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] != _INDEX_FORMAT:
                return None
            clips = tuple(
                CachedClip(**{**row, "answers": tuple(row.get("answers", ()))})
                for row in document["clips"]
            )
            return str(document["manifest_digest"]), clips
        except (ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"{path}: is no index of a corpus ({error}): delete it and run `make corpora`"
            ) from error


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place only if the block succeeds.

    Raises: CorpusError if the directory cannot be written or the disk is full.
    """
    partial = partial_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> CorpusError:
    """The error of a cache that refuses a change."""
    return CorpusError(
        f"cannot write {path} ({error.strerror or error}): "
        "free the disk or choose another cache directory"
    )


def sha256_of(path: Path) -> str | None:
    """Hex SHA-256 of a file, None if there is no such file."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_of_bytes(data: bytes) -> str:
    """Hex SHA-256 of what a file holds."""
    return hashlib.sha256(data).hexdigest()
