"""
Messages with long values are read and written in steps, like those with many entries.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from barnabas.protocol.codec.codec import (
    decode_from,
    decode_in_steps,
    encode,
    encode_in_steps,
    encode_parts,
)
from barnabas.protocol.codec.primitives import BYTES_AT_ONCE, ENTRIES_AT_ONCE, LONG_BYTES
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import TooManyEntries
from barnabas.protocol.messages.fetch import FetchRequest, FetchTopic
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

SIZE = 32_000


def of_names(size: int, count: int) -> list[tuple[Message, int]]:
    """
    Messages of two codecs, and in classic and flexible versions, with *count* strings or bytes.
    """
    name = "n" * size
    fetch = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=name, partitions=[])] * count
    )
    produce = ProduceRequest(
        acks=1,
        timeout_ms=0,
        topic_data=[TopicProduceData(name=name, partition_data=[])] * count,
    )
    metadata = MetadataRequest(topics=[MetadataRequestTopic(name=name)] * count)
    protocols = [JoinGroupRequestProtocol(name="p", metadata=bytes(size))] * count
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="", protocol_type="c", protocols=protocols
    )
    messages: list[tuple[Message, int]] = [
        (fetch, 4),
        (fetch, 12),
        (produce, 9),
        (metadata, 9),
        (metadata, 4),
        (join, 9),
    ]
    return [*messages, (join, 3)]


def last(steps: Generator[None, None, Any]) -> tuple[int, Any]:
    """
    The number of steps, and the result.
    """
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return count, stop.value
        count += 1


@pytest.mark.parametrize(
    ("message", "version"),
    of_names(SIZE, BYTES_AT_ONCE // SIZE + 1),
    ids=lambda each: str(each)[:16],
)
def test_message_with_long_values_is_not_read_or_written_at_once(
    message: Message, version: int
) -> None:
    data = encode(message, version)

    with pytest.raises(TooManyEntries):
        decode_from(type(message), version, data, 0, ENTRIES_AT_ONCE)
    with pytest.raises(TooManyEntries):
        encode_parts(message, version, ENTRIES_AT_ONCE)

    count, (found, _) = last(decode_in_steps(type(message), version, data, 0))
    assert message == found
    assert count >= BYTES_AT_ONCE // SIZE
    assert data == b"".join(last(encode_in_steps(message, version))[1])


@pytest.mark.parametrize(
    ("message", "version"),
    [
        *of_names(SIZE, BYTES_AT_ONCE // SIZE),
        *of_names(LONG_BYTES - 1, ENTRIES_AT_ONCE),
    ],
    ids=lambda each: str(each)[:16],
)
def test_message_with_few_long_values_or_many_short_ones_is_read_and_written_at_once(
    message: Message, version: int
) -> None:
    data = encode(message, version)

    assert message == decode_from(type(message), version, data, 0, ENTRIES_AT_ONCE)[0]
    assert data == b"".join(encode_parts(message, version, ENTRIES_AT_ONCE))


def test_records_are_read_and_written_at_once_whatever_their_size() -> None:
    records = memoryview(bytearray(8 * BYTES_AT_ONCE))
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="t", partition_data=[partition])
    message = ProduceRequest(acks=1, timeout_ms=0, topic_data=[topic])

    data = b"".join(encode_parts(message, 9, ENTRIES_AT_ONCE))

    assert message == decode_from(ProduceRequest, 9, data, 0, ENTRIES_AT_ONCE)[0]
