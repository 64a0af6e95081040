"""
Creating topics of a broker that is reached over the network, without a client library.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from typing import Final

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.testing.errors import BrokerError, InvalidTopic, hides_frame

__tracebackhide__ = hides_frame

VERSION: Final = 4
"""
The last version without tagged fields in the headers, which are easily written by hand then.
"""

_CLIENT_ID: Final = b"barnabas-testing"
_PATIENCE_S: Final = 30.0
_DEFAULT: Final = -1
"""
The broker's own number of replicas.
"""


def create_topics(host: str, port: int, topics: Mapping[str, int]) -> None:
    """
    Create *topics* with their numbers of partitions, unless they exist.

    Raises:
        InvalidTopic: the name or the number of partitions is not acceptable.
        BrokerError: the broker refuses for another reason.
        OSError: the broker cannot be reached.
    """
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=_DEFAULT,
                assignments=[],
                configs=[],
            )
            for name, partitions in topics.items()
        ]
    )
    response = decode(CreateTopicsResponse, VERSION, _answer(host, port, _frame(request)))
    for topic in response.topics:
        match topic.error_code:
            case ErrorCode.NONE | ErrorCode.TOPIC_ALREADY_EXISTS:
                continue
            case ErrorCode.INVALID_TOPIC_EXCEPTION | ErrorCode.INVALID_PARTITIONS:
                raise InvalidTopic(
                    f"the topic {topic.name} cannot be created: {topic.error_message}"
                )
            case code:
                raise BrokerError(
                    f"the topic {topic.name} cannot be created: {topic.error_message or ''}"
                    f" (error {code})"
                )


def _frame(request: CreateTopicsRequest) -> bytes:
    header = struct.pack(">hhih", request.api.key, VERSION, 0, len(_CLIENT_ID)) + _CLIENT_ID
    body = encode(request, VERSION)
    return struct.pack(">i", len(header) + len(body)) + header + body


def _answer(host: str, port: int, frame: bytes) -> bytes:
    """
    The body of the answer: without its size and its correlation id.
    """
    with (
        socket.create_connection((host, port), timeout=_PATIENCE_S) as connection,
        connection.makefile("rb") as answers,
    ):
        connection.sendall(frame)
        size, _ = struct.unpack(">ii", answers.read(8).ljust(8, b"\0"))
        body = answers.read(size - 4) if size >= 4 else b""
    if size < 4 or len(body) < size - 4:
        raise ConnectionError(f"the broker at {host}:{port} has closed the connection")
    return body
