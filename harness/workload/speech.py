"""Texts spoken by a program of the user's own, one file each."""

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harness.core.errors import CorpusError


def speak(texts: Mapping[str, str], command: str, folder: Path) -> None:
    """Write `<name>.wav` for every text, by name, into the folder.

    command: run without a shell, once a text, with {path} and {text} filled in.
        Example: "espeak-ng -w {path} {text}".

    Raises: CorpusError if the program is not there, fails or writes nothing.
    """
    words = shlex.split(command)
    for field in ("{path}", "{text}"):
        if not any(field in word for word in words):
            raise CorpusError(f"--tts {command!r}: lacks {field}: say where the program takes it")
    for name, text in texts.items():
        path = folder / f"{name}.wav"
        filled = [word.replace("{path}", str(path)).replace("{text}", text) for word in words]
        try:
            done = subprocess.run(filled, capture_output=True, text=True, check=False)
        except OSError as error:
            raise CorpusError(f"--tts {words[0]}: cannot be run ({error.strerror})") from error
        if done.returncode or not path.is_file():
            said = (done.stderr or done.stdout).strip().splitlines()
            raise CorpusError(
                f"--tts {words[0]}: wrote no {path.name} (exit code {done.returncode}"
                f"{': ' + said[-1] if said else ''})"
            )
