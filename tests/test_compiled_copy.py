"""
``compiled_copy.py`` runs commands on compiled modules only while these match the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import compiled_copy
import pytest

PRINT_MODULE = "import barnabas.storage.one as one; print(one.__file__)"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """
    A small checkout with a complete copy, in which one module of storage is compiled.
    """
    root = tmp_path / "checkout"
    for folder in compiled_copy.FOLDERS:
        package = root / folder / "barnabas" / folder
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "one.py").write_text(f"NAME = {folder!r}\n")
    for name in compiled_copy.INPUTS:
        (root / name).write_text(f"{name}\n")
    shutil.copy(compiled_copy.__file__, root)
    copy = root / "build" / "compiled"
    for folder in compiled_copy.FOLDERS:
        shutil.copytree(root / folder, copy, dirs_exist_ok=True)
    for name in compiled_copy.INPUTS:
        shutil.copy(root / name, copy)
    (copy / "barnabas" / "storage" / "two.so").touch()
    monkeypatch.setattr(compiled_copy, "ROOT", root)
    monkeypatch.setattr(compiled_copy, "COPY", copy)
    (copy / compiled_copy.PYTHON).write_text(compiled_copy._environment())
    return root


def run(checkout: Path, verb: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "compiled_copy.py", verb, sys.executable, "-c", PRINT_MODULE]
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command, cwd=checkout, env=without, capture_output=True, text=True, check=False
    )


def test_command_imports_the_copy_while_it_is_current(checkout: Path) -> None:
    done = run(checkout, "run")

    assert f"{checkout}/build/compiled/barnabas/storage/one.py" == done.stdout.strip(), done.stderr


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "storage/barnabas/storage/one.py").write_text("NAME = 'storagE'\n"),
        lambda root: (root / "server/barnabas/server/two.py").touch(),
        lambda root: (root / "testing/barnabas/testing/one.py").unlink(),
        lambda root: (root / "hatch_build.py").write_text("another\n"),
        lambda root: (root / "build/compiled/.python").write_text("another Python\n"),
        lambda root: (root / "build/compiled/.python").unlink(),
        lambda root: shutil.rmtree(root / "build"),
    ],
    ids=["edited", "added", "removed", "hook", "python", "incomplete", "none"],
)
def test_copy_of_other_sources_is_never_imported(
    checkout: Path, change: Callable[[Path], object]
) -> None:
    change(checkout)

    assert not compiled_copy.is_current()
    assert f"{checkout}/build" not in run(checkout, "run").stdout
    required = run(checkout, "require")
    assert 1 == required.returncode
    assert "make compile" in required.stderr


def test_copy_of_sources_that_change_while_they_are_compiled_is_discarded(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = checkout / "storage/barnabas/storage/one.py"
    source.write_text("NAME = 1\n")

    def compile_slowly(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        for folder in compiled_copy.FOLDERS:
            shutil.copytree(checkout / folder, compiled_copy.COPY, dirs_exist_ok=True)
        source.write_text("NAME = 2\n")
        return subprocess.CompletedProcess([], 0)

    monkeypatch.setattr(subprocess, "run", compile_slowly)

    assert 1 == compiled_copy.build()
    assert "changed meanwhile" in capsys.readouterr().out
    assert not compiled_copy.COPY.exists()


def test_compiling_again_without_a_change_does_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(subprocess, "run")

    assert 0 == compiled_copy.build()
    assert "build/compiled is current" in capsys.readouterr().out
