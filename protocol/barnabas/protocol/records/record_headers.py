"""
The headers of a stored record, decoded when somebody reads them.

A batch of a few kilobytes can contain a record with millions of empty headers. Most readers need
the offset, the time, the key or the value, so a record keeps its headers as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, overload

from barnabas.protocol.records.varints import next_varint


class Header(NamedTuple):
    """
    A name and a value that travel with a record. Names may repeat.
    """

    key: str
    value: bytes | None


class StoredHeaders(Sequence[Header]):
    """
    Headers as they lie in a batch. Each read decodes them, in order, and keeps none.

    Args:
        data: the headers behind their count, already checked by ``RecordReader``.
        count: the number of headers.
    """

    __slots__ = ("_count", "_data")

    def __init__(self, data: bytes, count: int) -> None:
        self._data = data
        self._count = count

    @property
    def data(self) -> bytes:
        """
        The headers as they lie in the batch, without their count.
        """
        return self._data

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Header]:
        """
        Yield the headers. Bytes of a name that are not UTF-8 become U+FFFD.
        """
        data, end, at = self._data, len(self._data), 0
        for _ in range(self._count):
            size, at = next_varint(data, at, end)
            name = data[at : at + size]
            size, at = next_varint(data, at + size, end)
            value = data[at : at + size] if size >= 0 else None
            at += max(size, 0)
            yield Header(name.decode(errors="replace"), value)

    @overload
    def __getitem__(self, index: int) -> Header: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Header]: ...

    def __getitem__(self, index: int | slice) -> Header | Sequence[Header]:
        if isinstance(index, int):
            place = range(self._count)[index]
            return next(islice(self, place, None))
        places = range(self._count)[index]
        if places.step < 0:
            return [*self][index]
        return [*islice(self, places.start, places.stop, places.step)]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple | list | StoredHeaders):
            return len(other) == len(self) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash((*self,))

    def __repr__(self) -> str:
        return f"StoredHeaders({[*self[:10]]}{', ...' if self._count > 10 else ''})"
