"""
The few bytes of Kafka's protocol that are measured without any client library in between.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import crc32c

CLIENT = struct.pack(">h", 5) + b"bench"
PRODUCE, FETCH, METADATA = 0, 1, 3


@dataclass(frozen=True, slots=True)
class FollowingFetch:
    """
    A Fetch of one partition from any offset on.

    Attributes:
        offset_at: where in the request the offset is.
        records_at: where in an answer the record batches begin.
        first_offset: the offset to begin with.
    """

    request: bytes
    offset_at: int
    records_at: int
    first_offset: int


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhi", api_key, version, 1) + CLIENT
    return struct.pack(">i", len(header) + len(body)) + header + body


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _varint(number: int) -> bytes:
    number = number << 1 ^ number >> 63
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def batch(values: Sequence[bytes], timestamp_ms: int) -> bytes:
    """
    A batch of records without keys, all of one time.
    """
    records = b"".join(_record(delta, value) for delta, value in enumerate(values))
    times = (timestamp_ms, timestamp_ms)
    head = struct.pack(">hiqqqhii", 0, len(values) - 1, *times, -1, -1, -1, len(values))
    covered = head + records
    inner = struct.pack(">ibI", -1, 2, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(inner)) + inner


def _record(delta: int, value: bytes) -> bytes:
    record = b"\x00\x00" + _varint(delta) + _varint(-1) + _varint(len(value)) + value + b"\x00"
    return _varint(len(record)) + record


def metadata_request(topic: str) -> bytes:
    """
    Metadata v4 for one topic, which it creates.
    """
    return _frame(METADATA, 4, struct.pack(">i", 1) + _string(topic) + b"\x01")


def produce_request(topic: str, value: bytes, *, timestamp_ms: int, acks: int = 1) -> bytes:
    """
    Produce v7 of one record to partition 0.
    """
    return produce_batch_request(topic, batch([value], timestamp_ms), acks=acks)


def produce_batch_request(topic: str, batch: bytes, *, acks: int = 1) -> bytes:
    """
    Produce v7 of one batch to partition 0.
    """
    return produce_batches_request(topic, {0: batch}, acks=acks)


def produce_batches_request(topic: str, batches: Mapping[int, bytes], *, acks: int = 1) -> bytes:
    """
    Produce v7 of one batch to each of some partitions.
    """
    body = struct.pack(">hhii", -1, acks, 30_000, 1) + _string(topic)
    body += struct.pack(">i", len(batches))
    for partition, data in batches.items():
        body += struct.pack(">ii", partition, len(data)) + data
    return _frame(PRODUCE, 7, body)


def produce_error_at(topic: str, place: int = 0) -> int:
    """
    Where in a response the error code of the partition at *place* is, size included.
    """
    return 4 + 4 + 4 + 2 + len(topic) + 4 + place * 30 + 4


def produce_error(topic: str, response: bytes, place: int = 0) -> int:
    """
    The error code of the partition at *place* in a response.
    """
    (code,) = struct.unpack_from(">h", response, produce_error_at(topic, place))
    return int(code)


def produce_response_size(topic: str) -> int:
    """
    How long a response to ``produce_request`` is, size included.
    """
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 8 + 8 + 4


def fetch_request(
    topic: str, offset: int, *, max_bytes: int = 1 << 20, wait_ms: int = 500
) -> bytes:
    """
    Fetch v4 of partition 0, which waits for at least one byte.
    """
    body = struct.pack(">iiiibi", -1, wait_ms, 1, max_bytes, 0, 1) + _string(topic)
    return _frame(FETCH, 4, body + struct.pack(">iiqi", 1, 0, offset, max_bytes))


def following_fetch(topic: str, first_offset: int) -> FollowingFetch:
    """
    The Fetch for one who reads what is written to partition 0 from an offset on.
    """
    request = fetch_request(topic, first_offset)
    head = 4 + 4 + 4 + 4 + 2 + len(topic) + 4
    records_at = head + 4 + 2 + 8 + 8 + 4 + 4
    return FollowingFetch(request, len(request) - 12, records_at, first_offset)


def exactly(connection: socket.socket, size: int) -> bytes:
    """
    The next *size* bytes.

    Raises:
        ConnectionError: the broker closed the connection.
    """
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return bytes(data)


def ask(connection: socket.socket, request: bytes) -> bytes:
    """
    Send one request and return its response, size included.
    """
    connection.sendall(request)
    size = exactly(connection, 4)
    return size + exactly(connection, struct.unpack(">i", size)[0])
