"""
How the modules import each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.support.compiled import ROOT


def test_no_modules_import_each_other_in_a_cycle() -> None:
    """
    Not even for their types: a module is read after those that it names, and never at once with
    them. (The contracts in pyproject.toml are about folders.)
    """
    graph = grimp.build_graph("barnabas", exclude_type_checking_imports=False, cache_dir=None)
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    assert len(imports) > 500

    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_coordination_is_tested_without_the_server() -> None:
    """
    Neither a test of it nor a helper of such a test imports the server, which would be missed if
    the package needed it.
    """
    left = [*(ROOT / "tests" / "coordination").rglob("*.py")]
    assert len(left) > 50
    seen = set(left)
    offending = set()
    while left:
        source = left.pop()
        for name in imported(source):
            if name.startswith("barnabas.server"):
                offending.add(f"{source.relative_to(ROOT)} imports {name}")
            helper = (ROOT / name.replace(".", "/")).with_suffix(".py")
            if name.startswith("tests.") and helper.exists() and helper not in seen:
                seen.add(helper)
                left.append(helper)

    assert set() == offending


def imported(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
