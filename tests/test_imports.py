"""
How the modules import each other.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


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
