"""Recordings out of a folder of the user's own, such as what a text-to-speech program spoke."""

from collections.abc import Iterator
from pathlib import Path

from harness.core.errors import CorpusError
from harness.workload.manifest import CorpusManifest, FolderSource
from harness.workload.recording import Recording


def folder_recordings(
    manifest: CorpusManifest, source: FolderSource, folder: Path | None
) -> Iterator[Recording]:
    """The file of each clip, by its name without suffix, in the manifest's order.

    Raises: CorpusError if no folder is given, or a clip has no file there or several.
    """
    if folder is None:
        raise CorpusError(
            f"corpus {manifest.corpus}: is a folder of your own: name it with --folder DIR, with "
            f"audio files {', '.join(source.clip_ids)} in it (audio_corpora/README.md)"
        )
    if not folder.is_dir():
        raise CorpusError(f"corpus {manifest.corpus}: --folder {folder} is not a folder")
    files = {name: sorted(folder.glob(f"{name}.*")) for name in source.clip_ids}
    if missing := [name for name, found in files.items() if not found]:
        raise CorpusError(f"corpus {manifest.corpus}: {folder} has no file {', '.join(missing)}")
    for name, found in files.items():
        if len(found) > 1:
            raise CorpusError(
                f"clip {manifest.corpus}/{name}: {folder} has {' and '.join(f.name for f in found)}"
                ": keep one"
            )
    return (_recording(manifest, name, found[0]) for name, found in files.items())


def _recording(manifest: CorpusManifest, name: str, path: Path) -> Recording:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"clip {manifest.corpus}/{name}: {path}: {error.strerror}") from error
    return Recording(
        corpus=manifest.corpus,
        clip_id=name,
        data=data,
        source=path.name,
        sha256=None,
        sample_rate_hz=None,
        duration_s=None,
        language=manifest.language,
        kind=manifest.kind.value,
        licence=manifest.licence,
    )
