"""
Batches of records for a partition.

The encoder of ``barnabas.protocol`` takes an object for each record. Uncompiled, it is several
times slower than this builder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Unpack

from barnabas.protocol.records.batch import HEADER_SIZE
from barnabas.protocol.records.batch.build import BatchOptions, seal_batch
from barnabas.protocol.records.record import increment_sequence
from barnabas.protocol.records.varints import append_varint

_MOST_REMEMBERED: Final = 1 << 17
_ONE_BYTE: Final = 1 << 6
_TWO_BYTES: Final = 1 << 13
_THREE_BYTES: Final = 1 << 20


class _Varints(dict[int, bytes]):
    """
    The varint of each number. Those of small numbers are kept.
    """

    def __missing__(self, number: int) -> bytes:
        if _ONE_BYTE <= number < _TWO_BYTES:
            zigzag = number << 1
            made = bytes((zigzag & 127 | 128, zigzag >> 7))
        elif _TWO_BYTES <= number < _THREE_BYTES:
            zigzag = number << 1
            made = bytes((zigzag & 127 | 128, zigzag >> 7 & 127 | 128, zigzag >> 14))
        else:
            out = bytearray()
            append_varint(out, number)
            made = bytes(out)
        if -1 <= number < _MOST_REMEMBERED:
            self[number] = made
        return made


_VARINTS: Final = _Varints()
_NULL: Final = _VARINTS[-1]
_NO_HEADERS: Final = _VARINTS[0]


class BatchBuilder:
    """
    Encodes the records of one partition into batches of up to a size, or of one larger record.

    Args:
        options: header fields of each batch. A ``base_sequence`` is the one of the first batch;
            later batches continue it.
    """

    def __init__(self, most_bytes: int, **options: Unpack[BatchOptions]) -> None:
        self._most_bytes = most_bytes - HEADER_SIZE
        self._options = options
        self._done: list[bytes] = []
        self._payload: list[bytes] = []
        self._size = self._count = 0
        self._base_timestamp = self._max_timestamp = -1

    def add(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> None:
        """
        Add a record, whose timestamp is in ms since 1970 UTC.
        """
        if not self._count:
            self._base_timestamp = self._max_timestamp = timestamp
        varints = _VARINTS
        body = b"".join(
            (
                b"\0",
                varints[timestamp - self._base_timestamp],
                varints[self._count],
                _NULL if key is None else varints[len(key)] + key,
                _NULL if value is None else varints[len(value)] + value,
                _encoded(headers) if headers else _NO_HEADERS,
            )
        )
        size = len(body) + len(varints[len(body)])
        if self._count and self._size + size > self._most_bytes:
            self._seal()
            self.add(timestamp, key, value, headers)
            return
        self._payload.append(varints[len(body)])
        self._payload.append(body)
        self._size += size
        self._count += 1
        self._max_timestamp = max(self._max_timestamp, timestamp)

    def batches(self) -> list[bytes]:
        """
        The batches, in the order of their records.
        """
        if self._count:
            self._seal()
        return self._done

    def _seal(self) -> None:
        batch = seal_batch(
            b"".join(self._payload),
            self._count,
            base_offset=0,
            last_offset_delta=self._count - 1,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            **self._options,
        )
        if "base_sequence" in self._options:
            self._options["base_sequence"] = increment_sequence(
                self._options["base_sequence"], self._count
            )
        self._done.append(bytes(batch))
        self._payload.clear()
        self._size = self._count = 0


def _encoded(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    out = bytearray()
    count = 0
    for name, content in headers:
        encoded = name.encode()
        out += _VARINTS[len(encoded)] + encoded
        out += _NULL if content is None else _VARINTS[len(content)] + content
        count += 1
    return _VARINTS[count] + bytes(out)
