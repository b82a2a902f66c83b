"""The fetched corpora as one `datasets` table, for looking, listening and other tools.

The table holds the audio itself, so it can be moved and opened anywhere:
`datasets.load_from_disk(".cache/corpora/table")`. The harness reads the clips, not the table.
"""

import dataclasses
import shutil

from harness.core.digests import digest
from harness.core.files import partial_of
from harness.workload.cache import CachedClip, CorpusCache, unwritable

_STAMP = "corpora.sha256"
_COLUMNS = (
    "corpus",
    "clip_id",
    "path",
    "sample_rate_hz",
    "duration_s",
    "language",
    "kind",
    "licence",
    "source",
    "sha256",
)


def build_table(cache: CorpusCache) -> bool:
    """Make the table of every corpus in the cache; False if it is there and up to date.

    Columns: corpus, clip_id, path (relative to the cache), sample_rate_hz, duration_s, language,
    kind, licence, source, sha256 (of the source recording), audio (`datasets.Audio`, undecoded).

    Raises: CorpusError if the disk refuses.
    """
    clips = [clip for corpus in cache.corpora() for clip in cache.clips_of(corpus) or ()]
    stamp = digest(clips, length=64)
    stamp_file = cache.table / _STAMP
    if stamp_file.is_file() and stamp_file.read_text(encoding="utf-8") == stamp:
        return False
    building = partial_of(cache.table)
    try:
        _save(cache, clips, str(building))
        (building / _STAMP).write_text(stamp, encoding="utf-8")
        # A directory cannot replace a full one: between these two lines there is no table at all,
        # which the next run mends.
        shutil.rmtree(cache.table, ignore_errors=True)
        building.rename(cache.table)
    except OSError as error:
        raise unwritable(cache.table, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return True


def _save(cache: CorpusCache, clips: list[CachedClip], directory: str) -> None:
    # Imported here: `datasets` takes a second, and a table that is up to date needs none of it.
    import datasets

    rows = []
    for clip in clips:
        row = {"path": clip.file, **dataclasses.asdict(clip)}
        audio = {"bytes": None, "path": str(cache.directory / clip.file)}
        rows.append({name: row[name] for name in _COLUMNS} | {"audio": audio})
    bars_were_on = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        # Through a struct and a cast: encoding to Audio directly would import torchcodec.
        table = datasets.Dataset.from_list(rows).cast_column("audio", datasets.Audio(decode=False))
        table.save_to_disk(directory)
    finally:
        if bars_were_on:
            datasets.enable_progress_bars()
