"""
Attaches the checkers when the broker is imported, and not before: most processes of Python that a
test starts are no brokers, and pay nothing.

Loaded at the start of each of these processes, so it imports nothing that Python has not.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

BROKER = "barnabas.server.broker"


class Hook:
    """
    Finds the module of the broker once, as the usual finder does.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != BROKER:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_attach(module: ModuleType) -> None:
            execute(module)
            _attach(module, self._root)

        spec.loader.exec_module = execute_and_attach  # type: ignore[method-assign]
        return spec


def install(root: str) -> None:
    """
    Watch the brokers of this process.

    Args:
        root: the folder of the checkout, where ``tests`` is.
    """
    module = sys.modules.get(BROKER)
    if module is None:
        sys.meta_path.insert(0, Hook(root))
    else:
        _attach(module, root)


def _attach(module: ModuleType, root: str) -> None:
    if root not in sys.path:
        sys.path.append(root)
    from tests.support.checkers.attaching import attach  # noqa: PLC0415  # in brokers only

    attach(module.Broker)
