"""
The two ways in which some modules run: as plain Python, and compiled.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("protocol", "storage", "client", "coordination", "server", "pipeline")


def compilable() -> list[Path]:
    hook = (ROOT / "hatch_build.py").read_text()
    (mark,) = re.findall(r'^MARK = "(.*)"$', hook, re.MULTILINE)
    return [
        source
        for folder in FOLDERS
        for source in sorted((ROOT / folder).rglob("*.py"))
        if mark in source.read_text().splitlines()
    ]


def name_of(source: Path) -> str:
    return ".".join(source.relative_to(ROOT).with_suffix("").parts[1:])


def compiled(name: str) -> ModuleType:
    """
    The compiled module *name*; skips the test if it is not compiled here.
    """
    module = import_module(name)
    if _file(module).suffix == ".py":
        pytest.skip(f"{name} is not compiled here (make unit COMPILED=1)")
    return module


def plain(*names: str) -> ModuleType:
    """
    Import the last of *names* as plain Python, together with those before it, which it imports.
    """
    imported = {name: sys.modules.pop(name, None) for name in names}
    try:
        for name in names:
            source = _source(name)
            spec = spec_from_file_location(name, source)
            assert spec is not None
            assert spec.loader is not None
            module = module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
        return module
    finally:
        for name, before in imported.items():
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before


def _source(name: str) -> Path:
    package, _, module = name.rpartition(".")
    for directory in import_module(package).__path__:
        source = Path(directory, f"{module}.py")
        if source.exists():
            return source
    raise AssertionError(f"{name} has no source")


def _file(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__)
