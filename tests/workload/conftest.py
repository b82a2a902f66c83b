"""A cache directory, and a small corpus in a source archive made on the spot."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from harness.workload.cache import CorpusCache
from harness.workload.manifest import load_manifest
from tests.workload.stand_ins import Sdist, noise, sdist_bytes, wav_bytes


@pytest.fixture
def cache(tmp_path: Path) -> CorpusCache:
    return CorpusCache(tmp_path / "cache")


@pytest.fixture
def make_sdist(tmp_path: Path) -> Callable[..., Sdist]:
    """Build an archive of recordings and its manifest; `changes` are made to the manifest alone."""

    def make(
        recordings: dict[str, bytes] | None = None,
        *,
        corpus: str = "small",
        changes: dict | None = None,
        clip_changes: dict | None = None,
    ) -> Sdist:
        if recordings is None:
            recordings = {
                name: wav_bytes(noise(16000, seed)) for seed, name in enumerate(["b", "a"])
            }
        archive = sdist_bytes(
            {"small-1.0/README": b"not audio"}
            | {f"small-1.0/data/{name}.wav": data for name, data in recordings.items()}
        )
        clips = []
        for name, data in recordings.items():
            clip = {
                "clip_id": name,
                "member": f"small-1.0/data/{name}.wav",
                "sha256": hashlib.sha256(data).hexdigest(),
                "duration_s": 1.0,
            }
            clips.append(clip)
        clips[-1].update(clip_changes or {})
        document = {
            "corpus": corpus,
            "title": "Noise",
            "sdist": {
                "package": "small",
                "version": "1.0",
                "filename": "small-1.0.tar.gz",
                "sha256": hashlib.sha256(archive).hexdigest(),
            },
            "licence": "CC0-1.0",
            "attribution": "nobody",
            "language": "en",
            "kind": "read",
            "sample_rate_hz": 16000,
            "clips": clips,
        } | (changes or {})
        path = tmp_path / f"{corpus}.yaml"
        path.write_text(yaml.safe_dump(document))
        return Sdist(archive, load_manifest(path))

    return make
