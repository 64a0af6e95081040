"""
What a block device was asked to do, and the device as of any instant of that.

The journal is a file of records, in the order in which the requests were completed. Its length in
records is the position, which other processes read from shared memory::

    write 0 | write 1 | flush 2 | write 3 | write 4 |          position 5
    +------- sure ------------+ +-- any part of these --+      after a power cut at 5
"""

from __future__ import annotations

import errno
import mmap
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from struct import Struct
from typing import Final, NamedTuple

SECTOR: Final = 512
_RECORD: Final = Struct("<QI")
_FLUSH: Final = 0xFFFFFFFF
_NUMBER: Final = Struct("<Q")
SHARED_SIZE: Final = 4096
_POSITION, _MARK = 0, 64
"""Where in the shared memory: the position; the bytes of which a write fails once."""


class Shared:
    """
    Memory that a disk shares with the process that uses it.
    """

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, SHARED_SIZE)

    @property
    def position(self) -> int:
        (number,) = _NUMBER.unpack_from(self.memory, _POSITION)
        return int(number)

    @position.setter
    def position(self, number: int) -> None:
        _NUMBER.pack_into(self.memory, _POSITION, number)

    @property
    def failing(self) -> bytes:
        """
        The next write with these bytes fails, once; empty for none.
        """
        size = self.memory[_MARK]
        return self.memory[_MARK + 1 : _MARK + 1 + size]

    @failing.setter
    def failing(self, mark: bytes) -> None:
        assert len(mark) < 256
        self.memory[_MARK + 1 : _MARK + 1 + len(mark)] = mark
        self.memory[_MARK] = len(mark)


class RecordingDisk:
    """
    A disk that appends each write and each flush to a journal.
    """

    def __init__(self, size: int, journal: Path, shared: Shared) -> None:
        self.size = size
        self._image = mmap.mmap(-1, size)
        self._journal = journal.open("ab", buffering=1 << 20)
        self._shared = shared

    def read(self, offset: int, size: int) -> bytes:
        return self._image[offset : offset + size]

    def write(self, offset: int, data: memoryview) -> None:
        mark = self._shared.failing
        if mark and mark in bytes(data):
            self._shared.failing = b""
            raise OSError(errno.EIO, "a write that was to fail")
        self._image[offset : offset + len(data)] = bytes(data)
        self._journal.write(_RECORD.pack(offset, len(data)))
        self._journal.write(data)
        self._shared.position += 1

    def flush(self) -> None:
        self._journal.write(_RECORD.pack(0, _FLUSH))
        self._shared.position += 1

    def close(self) -> None:
        self._journal.close()


class Write(NamedTuple):
    """
    A write of the journal: where its bytes are on the disk and in the file.
    """

    offset: int
    size: int
    place: int


class Journal:
    """
    A journal that is read.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.writes: list[Write | None] = []
        """None is a flush."""
        place = 0
        while place < len(self.data):
            offset, size = _RECORD.unpack_from(self.data, place)
            place += _RECORD.size
            if size == _FLUSH:
                self.writes.append(None)
            else:
                self.writes.append(Write(offset, size, place))
                place += size
        self._flushes = [number for number, write in enumerate(self.writes) if write is None]

    def sure(self, position: int) -> int:
        """
        How many records a power cut at *position* leaves for sure.
        """
        found = bisect_right(self._flushes, position - 1)
        return self._flushes[found - 1] + 1 if found else 0

    def bytes_of(self, write: Write, start: int = 0, size: int | None = None) -> bytes:
        begin = write.place + start
        return self.data[begin : begin + (write.size if size is None else size)]


class Instant(NamedTuple):
    """
    A power cut: how many records of the journal were completed, and what the disk kept of those
    that no flush covers.
    """

    position: int
    keeping: str
    seed: int

    def __str__(self) -> str:
        return f"power cut at {self.position}, keeping {self.keeping} ({self.seed})"


ALL, NONE, SOME, TORN_512, TORN_4096 = "all", "none", "some", "torn-512", "torn-4096"
KEEPINGS: Final = (ALL, NONE, SOME, TORN_512, TORN_4096)


def kept(journal: Journal, instant: Instant) -> Iterator[tuple[int, bytes]]:
    """
    The writes after the last flush that survive, with their places on the disk. Writes to
    different sectors may survive in any order; of those to one sector the later one counts.
    """
    chance = Random(instant.seed * 1_000_003 + instant.position)
    later = journal.writes[journal.sure(instant.position) : instant.position]
    share = chance.choice((0.1, 0.5, 0.9))
    for write in later:
        if write is None or instant.keeping == NONE:
            continue
        if instant.keeping == ALL or (instant.keeping == SOME and chance.random() < share):
            yield write.offset, journal.bytes_of(write)
        elif instant.keeping in (TORN_512, TORN_4096):
            yield from _torn(journal, write, int(instant.keeping[5:]), chance, share)


def _torn(
    journal: Journal, write: Write, unit: int, chance: Random, share: float
) -> Iterator[tuple[int, bytes]]:
    how = chance.choice(("all", "none", "beginning", "any"))
    first = chance.randrange(0, write.size + unit, unit)
    for start in range(0, write.size, unit):
        if how == "all" or (
            start < first if how == "beginning" else how == "any" and chance.random() < share
        ):
            size = min(unit, write.size - start)
            yield write.offset + start, journal.bytes_of(write, start, size)


class RebuiltDisk:
    """
    The disk of a journal as of an instant. What is written to it is forgotten with the next one.

    Instants cost least in the order of their positions. The process that serves it has a copy of
    its own: ``cut_power`` comes before the fork.
    """

    def __init__(self, size: int, journal: Journal) -> None:
        self.size = size
        self._journal = journal
        self._image = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
        self._applied = 0
        self._before: dict[int, bytes] = {}
        """What the sectors held that were written since the last flush."""

    def cut_power(self, instant: Instant) -> None:
        for offset, data in self._before.items():
            self._image[offset : offset + SECTOR] = data
        self._before.clear()
        sure = self._journal.sure(instant.position)
        if sure < self._applied:
            self._image.close()
            self._image = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE)
            self._applied = 0
        for write in self._journal.writes[self._applied : sure]:
            if write is not None:
                end = write.offset + write.size
                self._image[write.offset : end] = self._journal.bytes_of(write)
        self._applied = sure
        for offset, data in kept(self._journal, instant):
            self._write(offset, data)

    def read(self, offset: int, size: int) -> bytes:
        return self._image[offset : offset + size]

    def write(self, offset: int, data: memoryview) -> None:
        self._write(offset, bytes(data))

    def flush(self) -> None:
        pass

    def _write(self, offset: int, data: bytes) -> None:
        before, image = self._before, self._image
        for place in range(offset, offset + len(data), SECTOR):
            if place not in before:
                before[place] = image[place : place + SECTOR]
        image[offset : offset + len(data)] = data


def instants(
    journal: Journal, first: int, count: int, seed: int, sectors: Sequence[str]
) -> list[Instant]:
    """
    Seeded instants from position *first* on, spread over all of the journal.
    """
    chance = Random(seed)
    positions = range(first, len(journal.writes) + 1)
    found = {
        Instant(chance.choice(positions), chance.choice(sectors), chance.randrange(1 << 30))
        for _ in range(count)
    }
    return sorted(found)
