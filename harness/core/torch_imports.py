"""Make PyTorch's media libraries harmless where they were built for CUDA and torch was not.

Beside a CPU build of torch, a package index may hand out torchvision, torchaudio and torchcodec
built for CUDA. They then fail to import with OSError or RuntimeError, which vLLM's and
transformers' `except ImportError` do not catch. The wheel ships `harness_torch_imports.pth`, so
every interpreter of the environment, spawned children included, imports this module at start-up:

    torchaudio, torchcodec   reported as not installed (the harness decodes with soundfile)
    torchvision              imports, with `nms` and `qnms` declared but not implemented

Nothing happens where torch has CUDA, or where the libraries are CPU builds as well.
A vLLM plugin is too late for this: vLLM imports transformers before it loads plugins.
Source: seen with torch 2.13.0+cpu, torchvision 0.28.0, torchaudio 2.11.1, torchcodec 0.17.0.
"""

import importlib.machinery
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_CUDA_LIBRARIES = (b"libc10_cuda.so", b"libtorch_cuda.so", b"libcudart.so")
_MISSING_OPS = ("nms", "qnms")


def _package_directory(name: str) -> Path | None:
    spec = importlib.machinery.PathFinder.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def torch_is_cpu_only() -> bool:
    """Whether an installed torch lacks its CUDA half; False when there is no torch."""
    torch = _package_directory("torch")
    return torch is not None and not (torch / "lib" / "libc10_cuda.so").exists()


def links_cuda(package: Path) -> bool:
    """Whether a package's compiled code asks for CUDA libraries; its smallest library tells."""
    libraries = [*package.glob("*.so"), *package.glob("lib/*.so")]
    if not libraries:
        return False
    smallest = min(libraries, key=lambda path: path.stat().st_size).read_bytes()
    return any(name in smallest for name in _CUDA_LIBRARIES)


class TorchvisionFinder(MetaPathFinder):
    """Declares torchvision's compiled operators just before its Python code looks for them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return torchvision's own spec, with a loader that declares the operators first."""
        if fullname != "torchvision":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def declare_then_execute(module: ModuleType) -> None:
            # The definitions live as long as the Library object, so the module keeps it.
            module.__dict__["_harness_operators"] = _declare_operators()
            execute(module)

        spec.loader.exec_module = declare_then_execute  # type: ignore[method-assign]
        return spec


def _declare_operators() -> Any:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _MISSING_OPS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def install() -> None:
    """Hide or mend the media libraries of this interpreter, where that is needed; idempotent."""
    if not torch_is_cpu_only():
        return
    for name in ("torchaudio", "torchcodec"):
        package = _package_directory(name)
        if package is not None and name not in sys.modules and links_cuda(package):
            # None makes `import` raise ModuleNotFoundError and importlib.util.find_spec return
            # None.
            sys.modules[name] = None  # type: ignore[assignment]
    torchvision = _package_directory("torchvision")
    already = any(isinstance(finder, TorchvisionFinder) for finder in sys.meta_path)
    if torchvision is not None and not already and links_cuda(torchvision):
        sys.meta_path.insert(0, TorchvisionFinder())


install()
