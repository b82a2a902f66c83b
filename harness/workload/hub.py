"""Recordings of a dataset on the Hugging Face hub, as the bytes that were published.

`datasets` is asked not to decode: its audio decoder needs libraries that a CPU machine often lacks,
and every other clip of the harness goes through soundfile.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.core.errors import CorpusError
from harness.workload.manifest import CorpusManifest, HubSource
from harness.workload.package_index import one_line, quiet
from harness.workload.recording import Recording

LoadDataset = Callable[..., Any]
"""`datasets.load_dataset`, or a stand-in with its signature."""


def hub_recordings(
    manifest: CorpusManifest, source: HubSource, load_dataset: LoadDataset | None = None
) -> Iterator[Recording]:
    """The first `source.num_clips` recordings of the split, in published order.

    load_dataset: None imports the one of `datasets`, which takes a second.

    Raises: CorpusError if the hub cannot be read or has fewer clips.
    """
    num_found = 0
    for row in _published(source, load_dataset):
        num_found += 1
        yield Recording(
            corpus=manifest.corpus,
            clip_id=row.clip_id,
            data=row.data,
            source=f"{source.dataset}@{source.revision}: {row.clip_id}",
            sha256=None,
            sample_rate_hz=manifest.sample_rate_hz,
            duration_s=None,
            language=manifest.language,
            kind=manifest.kind.value,
            licence=manifest.licence,
            question=row.question,
            answers=row.answers,
        )
    if num_found < source.num_clips:
        raise CorpusError(
            f"dataset {source.dataset}: split {source.split} has {num_found} clips, fewer than "
            f"num_clips={source.num_clips}: lower it in audio_corpora/{manifest.corpus}.yaml"
        )


@dataclass(frozen=True, kw_only=True)
class _Row:
    clip_id: str
    data: bytes
    question: str | None
    answers: tuple[str, ...]


def _published(source: HubSource, load_dataset: LoadDataset | None) -> Iterator[_Row]:
    import datasets

    load = datasets.load_dataset if load_dataset is None else load_dataset
    try:
        with quiet("huggingface_hub"), quiet("datasets"):
            split = load(
                source.dataset,
                source.config,
                split=source.split,
                revision=source.revision,
                streaming=True,
            )
            rows = split.cast_column("audio", datasets.Audio(decode=False))
            for number, row in enumerate(rows.take(source.num_clips)):
                yield _row(source, number, row)
    except CorpusError:
        raise
    except Exception as error:
        # The hub's client raises the errors of several HTTP libraries and of a file system on top.
        raise CorpusError(
            f"dataset {source.dataset}: the hub cannot be read ({one_line(error)}): check "
            "the network and HF_ENDPOINT, or leave this corpus out"
        ) from error


def _row(source: HubSource, number: int, row: dict[str, Any]) -> _Row:
    """A row of the split; one without an id is named after its place."""
    question, answers = None, ()
    if missing := [name for name in (source.question, source.answer) if name and name not in row]:
        raise CorpusError(
            f"dataset {source.dataset}: has no column {' and '.join(missing)}, but "
            f"{', '.join(row)}: correct question and answer in the manifest"
        )
    if source.question is not None:
        question, found = str(row[source.question]), row[str(source.answer)]
        answers = tuple(found) if isinstance(found, list) else (str(found),)
    return _Row(
        clip_id=str(row.get("id", f"{number:04d}")),
        data=row["audio"]["bytes"],
        question=question,
        answers=answers,
    )
