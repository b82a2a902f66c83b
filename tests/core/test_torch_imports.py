import subprocess
import sys
from pathlib import Path

import pytest

from harness.core import torch_imports


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_torchvision_imports_in_a_plain_interpreter() -> None:
    assert _run("import torchvision; print(torchvision.__name__)") == "torchvision"


def test_broken_audio_libraries_read_as_not_installed_in_a_child() -> None:
    if not torch_imports.torch_is_cpu_only():
        pytest.skip("torch has CUDA here: nothing is hidden")
    code = (
        "import importlib.util, multiprocessing as m\n"
        "def f(q): q.put([importlib.util.find_spec(n) is None for n in NAMES])\n"
        "NAMES = ['torchaudio', 'torchcodec']\n"
        "fork = m.get_context('fork')\n"
        "q = fork.Queue(); fork.Process(target=f, args=(q,)).start()\n"
        "print(q.get())"
    )
    expected = [
        (package := torch_imports._package_directory(name)) is None
        or torch_imports.links_cuda(package)
        for name in ("torchaudio", "torchcodec")
    ]
    assert _run(code) == str(expected)


def test_libraries_built_for_the_cpu_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "_C.so").write_bytes(b"\x7fELF libtorch_cpu.so libc10.so")
    assert not torch_imports.links_cuda(tmp_path)
    (tmp_path / "_C.so").write_bytes(b"\x7fELF libtorch_cpu.so libc10_cuda.so")
    assert torch_imports.links_cuda(tmp_path)


def test_nothing_happens_where_torch_has_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_imports, "torch_is_cpu_only", lambda: False)
    monkeypatch.setattr(torch_imports, "links_cuda", lambda _: pytest.fail("looked for CUDA"))
    before = list(sys.meta_path)
    torch_imports.install()
    assert sys.meta_path == before
