"""
Flaws of the files, which are printed when all files were dumped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.java_text import hash_order


class FindingKind(NamedTuple):
    """
    The words for the findings of one kind: a title for each file, a line for each pair of numbers.
    """

    title: str
    line: str
    fields: tuple[str, str]
    """The names of the two numbers in JSON."""


KINDS: Final[Mapping[str, FindingKind]] = {
    "indexMismatch": FindingKind(
        "Mismatches in :", "  Index offset: {}, log offset: {}", ("indexOffset", "logOffset")
    ),
    "timestampMismatch": FindingKind(
        "Found timestamp mismatch in :",
        "  Index timestamp: {}, log timestamp: {}",
        ("indexTimestamp", "logTimestamp"),
    ),
    "outOfOrderTimestamp": FindingKind(
        "Found out of order timestamp in :",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
        ("indexTimestamp", "previousTimestamp"),
    ),
    "offsetNotFound": FindingKind(
        "The following indexed offsets are not found in :",
        "Indexed offset: {}, found log offset: {}",
        ("indexOffset", "logOffset"),
    ),
    "gap": FindingKind(
        "Non-consecutive offsets in ", "  {} is followed by {}", ("offset", "nextOffset")
    ),
}
"""In the order in which Kafka's tool prints them."""


class Mismatch(NamedTuple):
    """
    Two numbers of one file that contradict each other.
    """

    kind: str
    """The key of ``KINDS``."""
    path: str
    first: int
    second: int


class Findings:
    """
    All findings of one run.

    Kafka's tool keeps pairs of offsets in sorted maps, so that a later one replaces an earlier one
    of the same first offset, and pairs of timestamps in lists.
    """

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[tuple[int, int]]]] = {kind: {} for kind in KINDS}

    def add(self, kind: str, path: str, first: int, second: int) -> None:
        self._found[kind].setdefault(path, []).append((first, second))

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        pairs = self._found["indexMismatch"].setdefault(path, [])
        replaced = dict(pairs) | {index_offset: log_offset}
        pairs[:] = sorted(replaced.items(), reverse=True)

    def gaps(self, path: str, pairs: Mapping[int, int]) -> None:
        """
        Add pairs of an offset and the offset of the next record.
        """
        if pairs:
            known = dict(self._found["gap"].get(path, ()))
            self._found["gap"][path] = sorted((known | dict(pairs)).items())

    def all(self) -> Iterator[Mismatch]:
        """
        The findings, by kind and then by file. The files have the order of a Java HashMap.
        """
        for kind, files in self._found.items():
            for path in hash_order(files):
                for first, second in files[path]:
                    yield Mismatch(kind, path, first, second)
