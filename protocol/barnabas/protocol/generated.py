"""
Python source that is made at run time.
"""

from __future__ import annotations

import linecache
from typing import Any


def compile_function(name: str, source: str, namespace: dict[str, Any], title: str) -> Any:
    """
    The function *name* that *source* defines, with *namespace* as its globals.

    Tracebacks and debuggers show its lines, under *title* in angle brackets.
    """
    filename = f"<{title}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]
