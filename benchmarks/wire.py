"""
The few bytes of Kafka's protocol that are measured without any client library in between.
"""

from __future__ import annotations

import socket
import struct

import crc32c

CLIENT = struct.pack(">h", 5) + b"bench"
PRODUCE, METADATA = 0, 3


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


def _batch(value: bytes, timestamp_ms: int) -> bytes:
    record = b"\x00\x00\x00" + _varint(-1) + _varint(len(value)) + value + b"\x00"
    records = _varint(len(record)) + record
    covered = struct.pack(">hiqqqhii", 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + records
    inner = struct.pack(">ibI", -1, 2, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", 0, len(inner)) + inner


def metadata_request(topic: str) -> bytes:
    """
    Metadata v4 for one topic, which it creates.
    """
    return _frame(METADATA, 4, struct.pack(">i", 1) + _string(topic) + b"\x01")


def produce_request(topic: str, value: bytes, *, timestamp_ms: int, acks: int = 1) -> bytes:
    """
    Produce v7 of one record to partition 0.
    """
    return produce_batch_request(topic, _batch(value, timestamp_ms), acks=acks)


def produce_batch_request(topic: str, batch: bytes, *, acks: int = 1) -> bytes:
    """
    Produce v7 of one batch to partition 0.
    """
    body = struct.pack(">hhii", -1, acks, 30_000, 1) + _string(topic)
    body += struct.pack(">iii", 1, 0, len(batch)) + batch
    return _frame(PRODUCE, 7, body)


def produce_error(topic: str, response: bytes) -> int:
    """
    The error code in a response to ``produce_request``, size included.
    """
    (code,) = struct.unpack_from(">h", response, 4 + 4 + 4 + 2 + len(topic) + 4 + 4)
    return int(code)


def produce_response_size(topic: str) -> int:
    """
    How long a response to ``produce_request`` is, size included.
    """
    return 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 8 + 8 + 4


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
