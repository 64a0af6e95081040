"""
What is wrong with the files, told when all were dumped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.java_text import hash_order


class Finding(NamedTuple):
    """
    Two numbers of one file that should not be what they are.
    """

    kind: str
    """The key of ``TITLES``."""
    path: str
    first: int
    second: int


TITLES: Mapping[str, tuple[str, str]] = {
    "indexMismatch": ("Mismatches in :", "  Index offset: {}, log offset: {}"),
    "timestampMismatch": (
        "Found timestamp mismatch in :",
        "  Index timestamp: {}, log timestamp: {}",
    ),
    "outOfOrderTimestamp": (
        "Found out of order timestamp in :",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
    ),
    "offsetNotFound": (
        "The following indexed offsets are not found in :",
        "Indexed offset: {}, found log offset: {}",
    ),
    "gap": ("Non-consecutive offsets in ", "  {} is followed by {}"),
}
"""
Of each kind, in the order in which Kafka's tool tells them: what is said of a file, and of a pair.
"""


class Findings:
    """
    All findings of one run.

    Kafka's tool keeps pairs of offsets in sorted maps, so that a later one replaces an earlier one
    of the same first offset, and pairs of timestamps in lists.
    """

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[tuple[int, int]]]] = {kind: {} for kind in TITLES}

    def add(self, kind: str, path: str, first: int, second: int) -> None:
        self._found[kind].setdefault(path, []).append((first, second))

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        pairs = self._found["indexMismatch"].setdefault(path, [])
        replaced = dict(pairs) | {index_offset: log_offset}
        pairs[:] = sorted(replaced.items(), reverse=True)

    def gaps(self, path: str, pairs: Mapping[int, int]) -> None:
        """
        Add offsets and those that follow them.
        """
        if pairs:
            known = dict(self._found["gap"].get(path, ()))
            self._found["gap"][path] = sorted((known | dict(pairs)).items())

    def all(self) -> Iterator[Finding]:
        """
        The findings, by kind and then by file; files are in the order of a Java HashMap.
        """
        for kind, files in self._found.items():
            for path in hash_order(files):
                for first, second in files[path]:
                    yield Finding(kind, path, first, second)
