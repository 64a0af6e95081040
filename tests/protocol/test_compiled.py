"""
Compiled modules stand for the sources that lie beside them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.support.compiled import ROOT, compilable, fingerprint


@pytest.mark.parametrize(("folder", "modules"), compilable().items())
def test_what_is_compiled_is_what_is_written(folder: str, modules: list[str]) -> None:
    """
    Python prefers a compiled module to its source: one that is out of date must not go unnoticed.
    """
    package = ".".join(Path(folder).parts[1:])
    installed = Path(next(iter(import_module(package).__path__)))
    libraries = {path.name.split("__mypyc")[0] for path in installed.glob("_compiled_*__mypyc.*")}

    sources = [installed / f"{module}.py" for module in modules]
    assert all(source.exists() for source in sources)
    assert libraries <= {f"_compiled_{fingerprint(sources)}"}, (
        f"{installed} has compiled modules of other sources: "
        "install again, with BARNABAS_COMPILE=1 or without"
    )


@pytest.mark.parametrize(("folder", "modules"), compilable().items())
def test_all_modules_of_a_package_are_compiled_or_none(folder: str, modules: list[str]) -> None:
    """
    A build that was cut off leaves no mixture.
    """
    package = ".".join(Path(folder).parts[1:])

    suffixes = {
        Path(import_module(f"{package}.{module}").__file__ or "").suffix for module in modules
    }

    assert 1 == len(suffixes)


def test_the_hook_takes_the_same_fingerprint() -> None:
    """
    The one of the build hook is the one that is compared with.
    """
    hook = pytest.importorskip("hatch_build", reason="hatchling is not installed")
    sources = [ROOT / "hatch_build.py", ROOT / "pyproject.toml"]

    assert hook.fingerprint(sources) == fingerprint(sources)
    assert fingerprint(reversed(sources)) != fingerprint(sources)
