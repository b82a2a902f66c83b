"""Long texts that a probe model is made to say: manifests, and passages out of an archive.

One YAML file of audio_corpora/texts/ describes works in one package's source archive, and where in
them passages begin. White space is folded: line breaks and indentation are not spoken.
"""

import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.core.digests import digest
from harness.core.errors import CorpusError
from harness.workload.cache import sha256_of_bytes
from harness.workload.manifest import SdistSource, sdist_source
from harness.workload.manifest_section import Section


@dataclass(frozen=True, kw_only=True)
class PassageEntry:
    """A place in a work. begins: its first words, white space folded."""

    text_id: str
    begins: str


@dataclass(frozen=True, kw_only=True)
class WorkEntry:
    """One text file of an archive. sha256: of that file."""

    member: str
    title: str
    sha256: str
    passages: tuple[PassageEntry, ...]


@dataclass(frozen=True, kw_only=True)
class TextManifest:
    """Texts of one archive, their licence and whom to credit."""

    corpus: str
    title: str
    source: SdistSource
    licence: str
    attribution: str
    language: str
    works: tuple[WorkEntry, ...]

    @property
    def digest(self) -> str:
        """Changes whenever anything in the manifest does, comments aside."""
        return digest(self)

    @property
    def text_ids(self) -> tuple[str, ...]:
        """Names of the passages, in order."""
        return tuple(entry.text_id for work in self.works for entry in work.passages)


def load_text_manifest(path: Path) -> TextManifest:
    """Read one manifest. Raises: CorpusError if a key is unknown, missing or of another type."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CorpusError(
            f"manifest {path.name}: cannot be read: {' '.join(str(error).split())}"
        ) from error
    root = Section(document, f"manifest {path.name}")
    manifest = TextManifest(
        corpus=root.file_name("corpus"),
        title=root.text("title"),
        source=sdist_source(root.section("sdist")),
        licence=root.text("licence"),
        attribution=root.text("attribution"),
        language=root.text("language"),
        works=tuple(_work(section) for section in root.sections("works", inherited=())),
    )
    root.finish()
    repeated = {name for name in manifest.text_ids if manifest.text_ids.count(name) > 1}
    if repeated:
        raise CorpusError(f"{root.where}: text_id={sorted(repeated)[0]} stands more than once")
    return manifest


def passages(manifest: TextManifest, archive: Path) -> dict[str, str]:
    """Every passage by its name, from where it begins to the end of its work, in order.

    Raises: CorpusError if the archive lacks a work, a work has another hash, or does not hold the
        words that a passage begins with.
    """
    found = {}
    for work in manifest.works:
        text = " ".join(_member(manifest, work, archive).split())
        for passage in work.passages:
            start = text.find(passage.begins)
            if start < 0:
                raise CorpusError(
                    f"text {passage.text_id}: {work.member} does not hold begins="
                    f"{passage.begins!r}: correct it in the manifest of {manifest.corpus}"
                )
            found[passage.text_id] = text[start:]
    return found


def _member(manifest: TextManifest, work: WorkEntry, archive: Path) -> str:
    try:
        with tarfile.open(archive) as tar:
            stream = tar.extractfile(work.member)
            assert stream is not None
            data = stream.read()
    except KeyError:
        raise CorpusError(
            f"text {work.title}: {archive.name} has no {work.member}: correct member in the "
            f"manifest of {manifest.corpus}"
        ) from None
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise CorpusError(f"archive {archive.name}: cannot be unpacked ({error})") from error
    found = sha256_of_bytes(data)
    if found != work.sha256:
        raise CorpusError(
            f"text {work.title}: sha256={found} is not the manifest's {work.sha256}: pin the file "
            "that the archive holds"
        )
    return data.decode("utf-8", errors="replace")


def _work(section: Section) -> WorkEntry:
    work = WorkEntry(
        member=section.text("member"),
        title=section.text("title"),
        sha256=section.sha256("sha256"),
        passages=tuple(_passage(each) for each in section.sections("passages", inherited=())),
    )
    section.finish()
    return work


def _passage(section: Section) -> PassageEntry:
    passage = PassageEntry(text_id=section.file_name("text_id"), begins=section.text("begins"))
    section.finish()
    return passage
