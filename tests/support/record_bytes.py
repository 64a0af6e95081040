"""
Valid and damaged records, and a slow plain reader of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from barnabas.protocol.records.batch import seal_batch
from barnabas.protocol.records.record import Header, Record, encode_records

INT64 = 2**63

THREE_RECORDS = bytes.fromhex(
    "0000000000000000 00000055 ffffffff 02 2f513fdc 0000 00000002 0000018bcfe56800 0000018bcfe56805"
    "ffffffffffffffff ffff ffffffff 00000003"
    "14 00 00 00 04 6b31 04 7631 00"
    "1e 00 0a 02 01 04 7632 04 02 68 02 78 02 6e 01"
    "10 00 01 04 04 6b33 01 00"
)
"""A batch as Apache Kafka's own producer builds it."""

HEADERS = st.lists(
    st.builds(Header, st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3
).map(tuple)


def record_lists(
    sizes: Sequence[int] = (), *, least_offset: int = -5, **count: Any
) -> st.SearchStrategy[list[Record]]:
    """
    Lists of any records, some of their keys and values as large as one of *sizes*.
    """
    data = st.none() | st.binary(max_size=200)
    if sizes:
        data |= st.sampled_from(sizes).map(bytes)
    times = st.integers(-10, 20_000) | st.integers(-(2**62), 2**62)
    record = st.builds(Record, st.integers(least_offset, 2**31 - 1), times, data, data, HEADERS)
    return st.lists(record, **count)


class Walked(NamedTuple):
    """
    What Kafka finds in a record: its timestamp delta, its offset delta, and whether it has a key.
    """

    delta: int
    offset_delta: int
    has_key: bool


class NotRecords(Exception):
    """
    Kafka would reject the records as malformed.
    """


class SlowReader:
    """
    Reads records as Kafka's DefaultRecord does, one byte after the other.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def byte(self) -> int:
        if self.position >= len(self.data):
            raise NotRecords("end")
        self.position += 1
        return self.data[self.position - 1]

    def number(self, bits: int) -> int:
        raw = 0
        for shift in range(0, bits + 7 - bits % 7, 7):
            byte = self.byte()
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                raw %= 1 << bits
                return (raw >> 1) ^ -(raw & 1)
        raise NotRecords("too long")

    def skip(self, size: int) -> None:
        self.position += max(size, 0)
        if self.position > len(self.data):
            raise NotRecords("end")

    def record(self, exact: bool) -> Walked:
        size = self.number(32)
        start = self.position
        self.byte()
        delta = self.number(64)
        offset_delta = self.number(32)
        key = self.number(32)
        self.skip(key)
        self.skip(self.number(32))
        headers = self.number(32)
        if headers < 0 or (exact and headers > len(self.data) - self.position):
            raise NotRecords("headers")
        for _ in range(headers):
            name = self.number(32)
            if name < 0:
                raise NotRecords("header name")
            self.skip(name)
            self.skip(self.number(32))
        if exact and self.position - start != size:
            raise NotRecords("size")
        return Walked(delta, offset_delta, key >= 0)

    def records(self, count: int, exact: bool) -> list[Walked]:
        walked = [self.record(exact) for _ in range(count)]
        if self.position != len(self.data):
            raise NotRecords("left over")
        return walked


def slow_walk(data: bytes, count: int, *, exact: bool) -> list[Walked] | None:
    """
    The records in *data*, or None if they are malformed.
    """
    try:
        return SlowReader(data).records(count, exact)
    except NotRecords:
        return None


def wrapped(timestamp: int) -> int:
    """
    The value after an overflow of Java's long.
    """
    return (timestamp + INT64) % (2 * INT64) - INT64


def some_records(chance: random.Random) -> list[Record]:
    """
    A few records of every shape that clients write.
    """
    return [
        Record(
            offset=number if chance.random() < 0.98 else chance.randrange(100000),
            timestamp=chance.choice((0, number, -number, 70000 * number, 10**7)),
            key=chance.choice((None, b"", b"k", b"key" * 30, b"k" * 200)),
            value=chance.choice((None, b"", b"v", b"value" * 40, b"v" * chance.randrange(9000))),
            headers=tuple(
                Header(chance.choice(("", "h", "xyz" * 30)), chance.choice((None, b"", b"v")))
                for _ in range(chance.choice((0, 0, 0, 1, 3)))
            ),
        )
        for number in range(chance.choice((1, 1, 2, 3, 5, 20)))
    ]


def damaged(payload: bytes, chance: random.Random) -> bytes:
    """
    *payload*, sometimes with a byte changed, removed or added, mostly at sensitive places.
    """
    data = bytearray(payload)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        at = chance.randrange(min(len(data), chance.choice((20, 20, len(data) + 1))) + 1)
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.choice((0, 1, 2, 127, 128, 255))])
            case 1:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 2:
                del data[at : at + 1]
            case 3:
                data[at:at] = chance.choice(
                    (b"\0", b"\x80", b"\x80\0", b"\xff" * 4 + b"\x7f", b"\xff" * 5, b"\xff" * 10)
                )
            case 4:
                del data[at:]
            case 5:
                data += b"\0" * chance.randrange(3)
    return bytes(data)


def some_payload(chance: random.Random) -> tuple[bytes, int]:
    records = some_records(chance)
    payload = damaged(bytes(encode_records(records, 0, 0)), chance)
    return payload, len(records) + chance.choice((0,) * 20 + (-1, 1))


def sealed(
    payload: bytes | bytearray, count: int = 1, *, timestamp: int = 0, **header: Any
) -> bytearray:
    """
    Make a batch of *payload*, whatever it is: its header says *count* records of one *timestamp*,
    unless *header* says something else.
    """
    times = {"base_timestamp": timestamp, "max_timestamp": timestamp}
    given = {"base_offset": 0, "last_offset_delta": count - 1, **times, **header}
    return seal_batch(payload, count, **given)
