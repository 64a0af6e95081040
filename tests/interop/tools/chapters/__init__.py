"""
What the tour visits, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Final

from tests.interop.tools.chapters import (
    cluster,
    configs,
    files,
    groups,
    kcat,
    performance,
    records,
    topics,
    transactions,
)
from tests.interop.tools.guide import Guide

_MODULES: Final[tuple[ModuleType, ...]] = (
    topics,
    configs,
    groups,
    records,
    transactions,
    kcat,
    performance,
    files,
    cluster,
)

PARTS: Final[Mapping[str, Callable[[Guide], None]]] = {
    part.__name__: part for module in _MODULES for part in module.PARTS
}
"""
By name, each part of a chapter.
"""
