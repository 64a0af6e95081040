from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.compiled import FOLDERS, ROOT, compilable, name_of


def test_no_compiled_module_lies_beside_its_source() -> None:
    """
    Python would prefer it to the source, and an edit would have no effect.
    """
    beside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.so")]

    assert [] == beside, "make install removes them"
    assert len(compilable()) > 50


def test_either_all_modules_are_compiled_or_none() -> None:
    """
    An interrupted build leaves no mixture.
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
def test_slice_bounds_in_compiled_code_have_no_side_effects(source: Path) -> None:
    """
    mypyc 2.4 evaluates them twice, which once sent everything twice through TLS.
    """
    assert set(calls_in_slices(source)) <= PURE


NEVER_COMPARED = {
    "ConnectionLimits",
    "LogFormat",
    "MemberChange",
    "ProducerStateManagerConfig",
    "SegmentRoom",
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
def test_compiled_code_never_compares_structs_by_identity(source: Path) -> None:
    """
    mypyc compiles ``==`` to ``is`` for objects of its classes unless it sees their ``__eq__``. A
    struct gets it at run time, so modules with structs stay Python.
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
def test_compiled_generators_do_not_yield_within_except(source: Path) -> None:
    """
    Such a generator leaves its exception behind: whatever runs next handles it too, and its errors
    get it as their context.
    """
    assert [] == [*turns_while_handling(source)]
