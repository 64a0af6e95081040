"""
Python source that is made at run time.
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import NoneType
from typing import Any, Final

FEW: Final = 50
"""
So many objects are made by a constructor of all classes in the time in which one is generated.
"""

_LITERALS = (NoneType, bool, int, str, bytes)
"""
Types, without those that inherit from them, whose values are what ``repr`` shows.
"""


class SourceWriter:
    """
    Collects the lines of a function, the names in it, and the objects that it refers to.
    """

    def __init__(self, reserved: str = "", **namespace: Any) -> None:
        """
        Args:
            reserved: names that the lines use on their own, with blanks between them.
            namespace: objects that they refer to.
        """
        self.namespace = namespace
        self._lines: list[str] = []
        self._depth = 0
        self._uses: Counter[str] = Counter([*namespace, *reserved.split()])

    def line(self, text: str) -> None:
        """
        Add a line to the innermost block.
        """
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """
        Open a block with the line *header*; what is added within belongs to it.

        Before it and at its end nothing is left put off.
        """
        self.flush()
        self.line(header)
        self._depth += 1
        yield
        self.flush()
        self._depth -= 1

    def flush(self) -> None:
        """
        Add the lines that were put off, in a writer that puts lines off.
        """

    def name(self, wish: str) -> str:
        """
        A name that nothing else in the function has: *wish*, or with a number if that is taken.
        """
        self._uses[wish] += 1
        return wish if self._uses[wish] == 1 else self.name(f"{wish}_{self._uses[wish]}")

    def variable(self, cls: type) -> str:
        """
        A name for an object of *cls*.
        """
        return self.name(re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower())

    def constant(self, wish: str, value: Any) -> str:
        """
        What to write for *value*: itself where that is short, otherwise a name like *wish*.
        """
        if type(value) in _LITERALS:
            return repr(value)
        name = self.name(wish)
        self.namespace[name] = value
        return name

    def compile(self, name: str, title: str) -> Any:
        """
        The function *name* that the lines define.

        Tracebacks and debuggers show them, under *title* in angle brackets.
        """
        lines = [f"{line}\n" for line in self._lines]
        source, filename = "".join(lines), f"<{title}>"
        linecache.cache[filename] = (len(source), None, lines, filename)
        exec(compile(source, filename, "exec"), self.namespace)
        return self.namespace[name]
