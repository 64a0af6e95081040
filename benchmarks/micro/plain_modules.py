"""
Imports the sources of Barnabas, where compiled modules lie beside them.
"""

from __future__ import annotations

import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGE: Final = "barnabas"
ONE_OF_THEM: Final = "barnabas.protocol.records.record"


def are_compiled() -> bool:
    """
    Whether there are compiled modules here.
    """
    found = find_spec(ONE_OF_THEM)
    return found is not None and not str(found.origin).endswith(".py")


def import_sources() -> None:
    """
    From now on modules of the package are what their sources say.

    Raises:
        AssertionError: one of them is imported already.
    """
    assert PACKAGE not in sys.modules, "modules that are there stay what they are"
    sources = FileFinder.path_hook((SourceFileLoader, SOURCE_SUFFIXES))

    def hook(path: str) -> object:
        if PACKAGE not in Path(path).parts:
            raise ImportError("others come as they are")
        return sources(path)

    sys.path_hooks.insert(0, hook)  # type: ignore[arg-type]  # a finder, whatever its class
    sys.path_importer_cache.clear()
