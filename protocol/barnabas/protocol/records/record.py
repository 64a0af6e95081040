"""
The records inside a batch.

::

    length           varint    bytes that follow
    attributes       int8      unused
    timestamp delta  varlong   from the batch's base timestamp
    offset delta     varint    from the batch's base offset
    key length       varint    -1: no key          key
    value length     varint    -1: no value        value
    header count     varint
    of each header   varint    name length         name, in UTF-8
                     varint    -1: no value        value

Coordinators, compaction and tools, which need the records themselves, read them with
``iter_records``. The path of a produced batch makes no object of a record: see ``record_scan``.

This module is compiled when there is a compiler; see ``varints``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.varints import CUT, append_varint, next_varint, next_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

Buffer = bytes | bytearray | memoryview


class Header(NamedTuple):
    """
    A name and a value that travel with a record. Names may repeat.
    """

    key: str
    value: bytes | None


class SimpleRecord(NamedTuple):
    """
    A record that has no place in a log yet. The timestamp is in ms, -1 for none.
    """

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class Record(NamedTuple):
    """
    A record with its place in the log.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def encode_records(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytearray:
    """
    The records one after the other, as they lie in a batch before it is compressed.
    """
    out = bytearray()
    body = bytearray()
    for offset, timestamp, key, value, headers in records:
        body.clear()
        body.append(0)
        append_varint(body, timestamp - base_timestamp)
        append_varint(body, offset - base_offset)
        _append_nullable(body, key)
        _append_nullable(body, value)
        append_varint(body, len(headers))
        for name, content in headers:
            _append_nullable(body, name.encode())
            _append_nullable(body, content)
        append_varint(out, len(body))
        out += body
    return out


def _append_nullable(out: bytearray, data: bytes | None) -> None:
    if data is None:
        append_varint(out, -1)
    else:
        append_varint(out, len(data))
        out += data


def iter_records(
    payload: Buffer,
    record_count: int,
    *,
    base_offset: int = 0,
    base_timestamp: int = 0,
    log_append_time: int | None = None,
) -> Iterator[Record]:
    """
    The records of a batch that is not, or no longer, compressed.

    Args:
        log_append_time: the timestamp of all records; their own are then not looked at.

    Raises:
        InvalidRecord: a record is not whole or not consistent, or bytes are left behind the last.
    """
    if record_count < 0:
        raise InvalidRecord(f"A batch cannot have {record_count} records.")
    data = payload if isinstance(payload, bytes) else bytes(payload)
    position: i64 = 0
    size: i64 = len(data)
    for _ in range(record_count):
        length, start = _varint(data, position)
        position = start + length
        if length < 0 or position > size:
            raise InvalidRecord(f"A record says it has {length} bytes, which are not there.")
        delta, at = _varlong(data, start + 1)
        offset_delta, at = _varint(data, at)
        key, at = _nullable(data, at)
        value, at = _nullable(data, at)
        headers, at = _headers(data, at)
        if at != position:
            raise InvalidRecord(f"A record says it has {length} bytes, but has {at - start}.")
        timestamp = base_timestamp + delta if log_append_time is None else log_append_time
        yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    if record_count and position != size:
        raise InvalidRecord(f"{size - position} bytes are left behind the last record.")


def _varint(data: bytes, position: i64) -> tuple[i64, i64]:
    value, end = next_varint(data, position, len(data))
    if end < 0:
        raise InvalidRecord("A record ends early." if end == CUT else "A number is too long.")
    return value, end


def _varlong(data: bytes, position: i64) -> tuple[i64, i64]:
    value, end = next_varlong(data, position, len(data))
    if end < 0:
        raise InvalidRecord("A record ends early." if end == CUT else "A number is too long.")
    return value, end


def _nullable(data: bytes, position: i64) -> tuple[bytes | None, i64]:
    length, start = _varint(data, position)
    if length < 0:
        return None, start
    end = start + length
    if end > len(data):
        raise InvalidRecord("A record ends early.")
    return data[start:end], end


def _headers(data: bytes, position: i64) -> tuple[tuple[Header, ...], i64]:
    count, at = _varint(data, position)
    if count == 0:
        return (), at
    if not 0 <= count <= len(data) - at:
        raise InvalidRecord(f"A record cannot have {count} headers.")
    headers = []
    for _ in range(count):
        name, at = _nullable(data, at)
        if name is None:
            raise InvalidRecord("A header has no name.")
        content, at = _nullable(data, at)
        headers.append(Header(name.decode(errors="replace"), content))
    return tuple(headers), at
