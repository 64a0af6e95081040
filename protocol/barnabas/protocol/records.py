"""
What is inside a record batch.

::

    length           varint   bytes that follow       key length      varint   -1: no key
    attributes       int8     unused                  key
    timestamp delta  varlong  from the batch's base   value length    varint   -1: no value
    offset delta     varint   from the batch's base   value
                                                      header count    varint
                                                      header key length, key, value length, value

Numbers are zig-zag encoded (0, -1, 1, -2 as 0, 1, 2, 3), then cut into groups of 7 bits, lowest
first, each but the last with its top bit set: at most 5 bytes for 32 bits and 10 for 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.protocol.errors import InvalidRecord

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


def append_varint(out: bytearray, value: int) -> None:
    """
    Append *value*, of at most 64 bits, zig-zag encoded.
    """
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def varint_size(value: int) -> int:
    """
    Bytes that ``append_varint`` appends for *value*.
    """
    bits = (value << 1 if value >= 0 else ~(value << 1)).bit_length()
    return (bits + 6) // 7 or 1


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """
    The number of 32 bits at *position*, and where it ends. Bits beyond 32 are dropped.

    Raises:
        InvalidRecord: it is longer than 5 bytes, or the data end before it does.
    """
    raw, position = _read_unsigned(data, position, 5)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """
    The number of 64 bits at *position*, and where it ends. Bits beyond 64 are dropped.

    Raises:
        InvalidRecord: it is longer than 10 bytes, or the data end before it does.
    """
    raw, position = _read_unsigned(data, position, 10)
    raw &= 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), position


def _read_unsigned(data: bytes, position: int, longest: int) -> tuple[int, int]:
    raw = shift = 0
    for at in range(position, min(position + longest, len(data))):
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, at + 1
        shift += 7
    if len(data) - position < longest:
        raise InvalidRecord("A record ends early.")
    raise InvalidRecord(f"A number is longer than {longest} bytes.")


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
        out.append(1)
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
    data = payload if isinstance(payload, bytes) else bytes(payload)
    if record_count < 0:
        raise InvalidRecord(f"A batch cannot have {record_count} records.")
    position = 0
    for _ in range(record_count):
        length, start = read_varint(data, position)
        position = start + length
        if length < 0 or position > len(data):
            raise InvalidRecord(f"A record says it has {length} bytes, which are not there.")
        delta, at = read_varlong(data, start + 1)
        offset_delta, at = read_varint(data, at)
        key, at = _read_nullable(data, at)
        value, at = _read_nullable(data, at)
        headers: tuple[Header, ...] = ()
        header_count, at = read_varint(data, at)
        if header_count:
            headers, at = _read_headers(data, at, header_count)
        if at != position:
            raise InvalidRecord(f"A record says it has {length} bytes, but has {at - start}.")
        timestamp = base_timestamp + delta if log_append_time is None else log_append_time
        yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    if position != len(data):
        raise InvalidRecord(f"{len(data) - position} bytes are left behind the last record.")


def _read_nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, start = read_varint(data, position)
    if length < 0:
        return None, start
    end = start + length
    if end > len(data):
        raise InvalidRecord("A record ends early.")
    return data[start:end], end


def _read_headers(data: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    if not 0 <= count <= len(data) - position:
        raise InvalidRecord(f"A record cannot have {count} headers.")
    headers = []
    for _ in range(count):
        name, position = _read_nullable(data, position)
        if name is None:
            raise InvalidRecord("A header has no name.")
        content, position = _read_nullable(data, position)
        headers.append(Header(name.decode(errors="replace"), content))
    return tuple(headers), position
