"""
Compiled modules stand for the sources that lie beside them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.compiled import FOLDERS, ROOT, compilable, fingerprint, name_of


def test_what_is_compiled_is_what_is_written() -> None:
    """
    Python prefers a compiled module to its source: one that is out of date must not go unnoticed.
    """
    sources = compilable()
    libraries = {
        path.name.split("__mypyc")[0]
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("_compiled_*__mypyc.*")
    }

    assert len(sources) > 50
    assert libraries <= {f"_compiled_{fingerprint(sources)}"}, (
        "there are compiled modules of other sources: "
        "install again, with BARNABAS_COMPILE=1 or without"
    )


def test_all_modules_are_compiled_or_none() -> None:
    """
    A build that was cut off leaves no mixture.
    """
    files = [import_module(name_of(source)).__file__ for source in compilable()]

    assert 1 == len({Path(file or "").suffix for file in files})


PURE = {"bisect_left", "bisect_right", "len", "max", "min"}


def calls_in_slices(source: Path) -> Iterator[str]:
    """
    What is called in the bounds of slices.
    """
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Slice):
            for called in ast.walk(node):
                if isinstance(called, ast.Call):
                    yield ast.unparse(called.func)


@pytest.mark.parametrize("source", compilable(), ids=lambda source: source.stem)
def test_bounds_of_slices_have_no_effect(source: Path) -> None:
    """
    mypyc 2.4 evaluates them twice, which has sent everything twice through TLS.
    """
    assert set(calls_in_slices(source)) <= PURE


def test_the_hook_takes_the_same_fingerprint() -> None:
    """
    The one of the build hook is the one that is compared with.
    """
    hook = pytest.importorskip("hatch_build", reason="hatchling is not installed")
    sources = [ROOT / "hatch_build.py", ROOT / "pyproject.toml"]

    assert hook.fingerprint(sources) == fingerprint(sources)
    assert fingerprint(reversed(sources)) != fingerprint(sources)


NEVER_COMPARED = {
    "Change",
    "ConnectionLimits",
    "LogFormat",
    "ProducerStateManagerConfig",
    "Room",
}


def structs_of(source: Path) -> Iterator[str]:
    """
    The classes whose methods ``struct`` and ``message`` make.
    """
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ClassDef):
            for decorator in node.decorator_list:
                if ast.unparse(decorator).partition("(")[0] in {"struct", "message"}:
                    yield node.name


@pytest.mark.parametrize("source", compilable(), ids=lambda source: source.stem)
def test_no_struct_is_compared_by_its_identity(source: Path) -> None:
    """
    Between objects of a class that it compiles, mypyc takes ``==`` for ``is`` unless it sees their
    ``__eq__``. That of a struct is made later: modules with structs stay Python.
    """
    assert set(structs_of(source)) <= NEVER_COMPARED


def turns_while_handling(source: Path) -> Iterator[str]:
    """
    Where a generator or a coroutine gives up its turn while it handles an exception.
    """
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Try):
            for part in (*node.handlers, *node.finalbody):
                for inner in ast.walk(part):
                    if isinstance(inner, ast.Yield | ast.YieldFrom | ast.Await):
                        yield f"{source.name}:{inner.lineno}"


@pytest.mark.parametrize("source", compilable(), ids=lambda source: source.stem)
def test_no_turn_is_given_up_while_an_exception_is_handled(source: Path) -> None:
    """
    A compiled generator that yields within ``except`` leaves its exception behind: whatever runs
    next handles it, too, and each error that it raises has it as its context.
    """
    assert [] == [*turns_while_handling(source)]
