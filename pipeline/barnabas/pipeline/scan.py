"""
The old name of ``barnabas.pipeline.rows``.

An import of this module gives its name to the package, where ``scan`` is a function. So the module
can be called, too.
"""

from __future__ import annotations

import sys
import warnings
from types import ModuleType
from typing import Any

from barnabas.pipeline.rows import (
    ReadOptions,
    SegmentRange,
    Work,
    parse_options,
    plan,
    read,
    scan,
    schema,
)

__all__ = [
    "ReadOptions",
    "SegmentRange",
    "Work",
    "parse_options",
    "plan",
    "read",
    "scan",
    "schema",
]


class _CallableModule(ModuleType):
    def __call__(self, *arguments: Any, **more: Any) -> Any:
        return scan(*arguments, **more)


sys.modules[__name__].__class__ = _CallableModule

warnings.warn(
    "barnabas.pipeline.scan is the old name of a module: use `from barnabas.pipeline import scan`,"
    " and barnabas.pipeline.rows for the rest",
    FutureWarning,
    stacklevel=2,
)
