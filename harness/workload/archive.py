"""Recordings out of the source archive of a package."""

import tarfile
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from harness.core.errors import CorpusError
from harness.workload.cache import CorpusCache, publish, sha256_of
from harness.workload.manifest import CorpusManifest, SdistSource
from harness.workload.package_index import OnBytes
from harness.workload.recording import Recording

DownloadSdist = Callable[[SdistSource, BinaryIO, OnBytes], None]
"""`package_index.download_sdist`, or a stand-in with its signature."""


def bring_archive(
    source: SdistSource, cache: CorpusCache, download: DownloadSdist, on_bytes: OnBytes
) -> Path:
    """The archive in the cache, downloaded unless a file with its hash is already there.

    Raises: CorpusError if it cannot be had or has another hash than the manifest pins.
    """
    path = cache.archive(source.filename)
    if sha256_of(path) == source.sha256:
        return path
    on_bytes(0, None)
    with publish(path) as partial:
        with partial.open("wb") as sink:
            download(source, sink, on_bytes)
        found = sha256_of(partial)
        if found != source.sha256:
            raise CorpusError(
                f"archive {source.filename}: sha256={found} is not the manifest's {source.sha256}: "
                "try again; if it stays so, the index serves another file than the manifest pins"
            )
    return path


def archive_recordings(
    manifest: CorpusManifest, source: SdistSource, archive: Path
) -> Iterator[Recording]:
    """Every recording that the manifest lists, in the archive's own order.

    Raises: CorpusError if the archive cannot be unpacked or lacks a member.
    """
    wanted = {_normal(clip.member): clip for clip in manifest.clips}
    for member, data in _members(archive, set(wanted)):
        clip = wanted.pop(member)
        yield Recording(
            corpus=manifest.corpus,
            clip_id=clip.clip_id,
            data=data,
            source=f"{source.package}=={source.version}: {clip.member}",
            sha256=clip.sha256,
            sample_rate_hz=clip.sample_rate_hz,
            duration_s=clip.duration_s,
            language=clip.language,
            kind=clip.kind.value,
            licence=clip.licence,
        )
    for clip in wanted.values():
        raise CorpusError(
            f"clip {manifest.corpus}/{clip.clip_id}: {archive.name} has no {clip.member}: "
            f"correct member in audio_corpora/{manifest.corpus}.yaml"
        )


def _members(archive: Path, names: set[str]) -> Iterator[tuple[str, bytes]]:
    """The named files; a compressed archive is read once, front to back, and nothing is written."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = _normal(member.name)
                stream = tar.extractfile(member) if name in names else None
                if stream is not None:
                    yield name, stream.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise CorpusError(
            f"archive {archive.name}: cannot be unpacked ({error}) although its hash is the "
            "manifest's: pin a sound file there"
        ) from error


def _normal(name: str) -> str:
    # Archives spell accented names composed or decomposed, by the system that packed them.
    return unicodedata.normalize("NFC", name)
