#!/usr/bin/env python3
"""Fetch, verify and convert the audio that audio_corpora/ describes; a second run does nothing."""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from harness.core.errors import CorpusError, HarnessError, HarnessWarning
from harness.workload.cache import CorpusCache
from harness.workload.fetch import Fetched, fetch_corpora
from harness.workload.manifest import CorpusManifest, SdistSource, load_manifests
from harness.workload.questions import spoken_texts
from harness.workload.speech import speak

ROOT = Path(__file__).resolve().parents[1]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "corpus",
        nargs="*",
        help="manifest in audio_corpora/; none means all that come from a package's archive",
    )
    own = parser.add_mutually_exclusive_group()
    own.add_argument(
        "--folder", type=Path, help="holds the recordings of a corpus that is a folder of your own"
    )
    own.add_argument(
        "--tts",
        metavar="COMMAND",
        help="speaks spoken_questions, such as 'espeak-ng -w {path} {text}'",
    )
    parser.add_argument(
        "--cache-dir",
        type=Path,
        default=ROOT / ".cache" / "corpora",
        help="where the audio is kept (default: .cache/corpora of the project)",
    )
    return parser.parse_args()


def chosen(names: list[str], manifests: dict[str, CorpusManifest]) -> list[CorpusManifest]:
    if not names:
        return [each for each in manifests.values() if isinstance(each.source, SdistSource)]
    for name in names:
        if name not in manifests:
            raise CorpusError(
                f"corpus {name}: audio_corpora/ has no {name}.yaml: "
                f"choose from {', '.join(manifests)}"
            )
    return [manifests[name] for name in dict.fromkeys(names)]


def fetch(
    wanted: list[CorpusManifest],
    cache: CorpusCache,
    console: Console,
    folder: Path | None,
    tts: str | None,
) -> Fetched:
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
        console=console,
    )
    tasks = {}

    def show(label: str, done: int, total: int | None) -> None:
        if label not in tasks:
            tasks[label] = progress.add_task(label, total=total, amount="")
        whole = "?" if total is None else total
        amount = f"{done} of {whole}"
        if not label.endswith("clips"):
            amount = f"{done / 1e6:.1f} of {'?' if total is None else f'{total / 1e6:.1f}'} MB"
        progress.update(tasks[label], completed=done, total=total, amount=amount)

    with progress, tempfile.TemporaryDirectory() as scratch:
        if tts is not None:
            folder = Path(scratch)
            speak(spoken_texts(), tts, folder)
        return fetch_corpora(wanted, cache, folder=folder, on_progress=show)


def report(
    wanted: list[CorpusManifest], cache: CorpusCache, fetched: Fetched, console: Console
) -> None:
    table = Table("corpus", "clips", "minutes", "Hz", "kind", "licence", "state", box=None)
    for manifest in wanted:
        clips = cache.clips_of(manifest.corpus) or ()
        table.add_row(
            manifest.corpus,
            str(len(clips)),
            f"{sum(clip.duration_s for clip in clips) / 60:.1f}",
            "/".join(sorted({str(clip.sample_rate_hz) for clip in clips})),
            "/".join(sorted({clip.kind for clip in clips})),
            "/".join(sorted({clip.licence for clip in clips})),
            "fetched" if manifest.corpus in fetched.new_corpora else "in place",
        )
    console.print(table)
    state = "rebuilt" if fetched.table_rebuilt else "up to date"
    console.print(f"table: {cache.table} ({state})", soft_wrap=True)
    if not fetched.new_corpora and not fetched.table_rebuilt:
        console.print("Nothing to do: everything is in place and verified.")


def main() -> int:
    arguments = parse_arguments()
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HarnessWarning)
        try:
            wanted = chosen(arguments.corpus, load_manifests(ROOT / "audio_corpora"))
            cache = CorpusCache(arguments.cache_dir)
            fetched = fetch(wanted, cache, console, arguments.folder, arguments.tts)
            report(wanted, cache, fetched, console)
        except HarnessError as error:
            errors.print(f"error: {error}", markup=False, soft_wrap=True)
            return error.exit_code
        except KeyboardInterrupt:
            errors.print("interrupted: what is complete is kept; run again to go on")
            return 130
    for warning in caught:
        if issubclass(warning.category, HarnessWarning):
            errors.print(f"warning: {warning.message}", markup=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
