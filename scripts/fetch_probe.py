#!/usr/bin/env python3
"""Fetch, verify and dequantise a probe's weights and texts; a second run does nothing."""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from harness.composition import compose
from harness.core.errors import HarnessError
from harness.models.probe import probe_directory
from harness.workload.probe_weights import fetch_probe

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="smollm2", help="a probe of conf/model/")
    parser.add_argument("--cache-dir", type=Path, default=ROOT / ".cache", help="default: .cache")
    asked = parser.parse_args()
    console = Console(highlight=False)
    try:
        model = compose([f"model={asked.model}"]).model
        with Progress(console=console) as progress:
            tasks = {}

            def show(label: str, done: int, total: int | None) -> None:
                if label not in tasks:
                    tasks[label] = progress.add_task(label, total=total)
                task = tasks[label]
                progress.update(task, completed=done, total=total)

            is_new = fetch_probe(
                model, asked.cache_dir, ROOT / "audio_corpora" / "texts", on_progress=show
            )
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: what is complete is kept; run again to go on", file=sys.stderr)
        return 130
    state = "fetched" if is_new else "in place, nothing to do"
    console.print(f"{model.title}: {state}: {probe_directory(model, asked.cache_dir)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
