"""Fetch a package's source archive through pip, as a file and nothing more.

`pip download` would build the package to learn its metadata. What is wanted here is the archive
alone, from wherever the user's pip would take it: its index, mirrors, certificates, proxy and
credentials. So pip's own finder and session are asked, which `pip index versions` is made of.
Source: pip/_internal/cli/req_command.py, tried with 23.2 and 26.3. The interface is not public; a
pip that changed it is reported with the way around.
"""

import importlib
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

from harness.core.errors import CorpusError
from harness.workload.manifest import SdistSource

_CHUNK_BYTES = 1 << 16

OnBytes = Callable[[int, int | None], None]
"""Told the bytes that have come and the bytes in all, None if the index does not say."""


def download_sdist(source: SdistSource, sink: BinaryIO, on_bytes: OnBytes) -> None:
    """Write the archive to `sink`; its hash is for the caller to check.

    Raises: CorpusError if pip is missing or of an unknown kind, finds no such archive, or the
        download breaks off.
    """
    with quiet("pip"), warnings.catch_warnings():
        # pip warns of what it itself still uses, and leaves pages of indexes on disk open.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        # setuptools minds that torch, say, has imported distutils before pip does.
        warnings.filterwarnings("ignore", message="Setuptools is replacing distutils")
        _download(source, sink, on_bytes)


@contextmanager
def quiet(logger_name: str) -> Iterator[None]:
    """Hide a library's warnings, whose gist the caller reports in one line of its own."""
    logger = logging.getLogger(logger_name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def one_line(error: BaseException) -> str:
    """A library's message without its line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def _download(source: SdistSource, sink: BinaryIO, on_bytes: OnBytes) -> None:
    with ExitStack() as stack:
        session, links = _ask_pip(source, stack)
        link = next((link for link in links if link.filename == source.filename), None)
        if link is None:
            raise CorpusError(
                f"archive {source.filename}: pip finds no such file of {source.package}: check the "
                "network and `pip config list`, or put the file into the cache's archives/ by hand"
            )
        try:
            _stream(session, link.url_without_fragment, sink, on_bytes)
        except OSError as error:
            raise CorpusError(
                f"archive {source.filename}: the download broke off ({one_line(error)}): "
                "try again, or put the file into the cache's archives/ by hand"
            ) from error


def _ask_pip(source: SdistSource, stack: ExitStack) -> tuple[Any, list[Any]]:
    """Open pip's HTTP session, which lives as long as `stack`, and list the package's links."""
    try:
        command: Any = importlib.import_module("pip._internal.commands").create_command("download")
        options, _ = command.parse_args([])
        stack.enter_context(command.main_context())
        session = command.get_default_session(options)
        # Nothing is installed, so the package's own Python range is of no interest.
        finder = command._build_package_finder(
            options=options, session=session, ignore_requires_python=True
        )
        return session, [found.link for found in finder.find_all_candidates(source.package)]
    except (ImportError, AttributeError, TypeError) as error:
        raise CorpusError(
            f"archive {source.filename}: this environment's pip is missing or unknown "
            f"({one_line(error)}): install pip 23 or later, or put the file into the cache's "
            "archives/ by hand"
        ) from error


def _stream(session: Any, url: str, sink: BinaryIO, on_bytes: OnBytes) -> None:
    # Left to itself, requests would undo the archive's compression.
    with session.get(url, headers={"Accept-Encoding": "identity"}, stream=True) as response:
        response.raise_for_status()
        num_bytes = response.headers.get("Content-Length")
        done = 0
        for chunk in response.iter_content(_CHUNK_BYTES):
            sink.write(chunk)
            done += len(chunk)
            on_bytes(done, int(num_bytes) if num_bytes else None)
