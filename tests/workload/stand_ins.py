"""Recordings and source archives made on the spot, and a downloader that serves them."""

import io
import tarfile
from dataclasses import dataclass, field

import numpy as np
import soundfile

from harness.workload.manifest import CorpusManifest, SdistSource


def wav_bytes(
    samples: np.ndarray, sample_rate_hz: int = 16000, *, subtype: str = "PCM_16", form: str = "WAV"
) -> bytes:
    sink = io.BytesIO()
    soundfile.write(sink, samples, sample_rate_hz, format=form, subtype=subtype)
    return sink.getvalue()


def noise(num_samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, num_samples).astype(np.float32)


def sdist_bytes(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return sink.getvalue()


@dataclass
class Sdist:
    """An archive, the manifest that pins it, and how often it was downloaded."""

    archive: bytes
    manifest: CorpusManifest
    downloads: list[str] = field(default_factory=list)

    def download(self, source: SdistSource, sink, on_bytes) -> None:
        self.downloads.append(source.filename)
        sink.write(self.archive)
        on_bytes(len(self.archive), len(self.archive))


def refuse(*_arguments, **_options) -> None:
    raise AssertionError("nothing may be downloaded here")
