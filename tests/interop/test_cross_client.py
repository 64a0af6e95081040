"""
What one client wrote, every other client reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.interop.clients.base import CODECS, Client, NewRecord, Seen
from tests.interop.conftest import CLIENTS
from tests.support.broker_process import BrokerProcess
from tests.support.some import some

PARTITIONS = 2
FIRST_TIMESTAMP = 1_500_000_000_000


@pytest.mark.parametrize("writer_name", CLIENTS)
def test_each_client_reads_what_another_wrote(
    broker: BrokerProcess,
    client_named: Callable[[str], Client],
    writer_name: str,
    topic: str,
) -> None:
    """
    Keys, values, headers and timestamps of all shapes, in every codec, come back as they went in.
    """
    writer = client_named(writer_name)
    writer.create_topic(broker.bootstrap, topic, PARTITIONS, {"retention.ms": "-1"})
    expected = []
    for codec in CODECS:
        records = _all_shapes(codec, null_headers=writer.sends_null_headers)
        places = writer.produce(broker.bootstrap, topic, records, codec)
        expected += [
            Seen(*place, record.timestamp_ms or 0, record.key, record.value, record.headers)
            for place, record in zip(places, records, strict=True)
        ]

    for reader_name in CLIENTS:
        reader = client_named(reader_name)
        seen = reader.read(broker.bootstrap, topic, PARTITIONS, len(expected))

        assert sorted(expected, key=_place) == sorted(seen, key=_place), reader_name


def test_each_client_reads_log_append_time(
    broker: BrokerProcess, client_named: Callable[[str], Client], topic: str
) -> None:
    """
    In a topic with ``message.timestamp.type=LogAppendTime`` a client's own timestamp is not kept,
    and all clients read the same one instead.
    """
    writer = client_named("confluent-kafka")
    settings = {"message.timestamp.type": "LogAppendTime"}
    writer.create_topic(broker.bootstrap, topic, PARTITIONS, settings)
    for codec in CODECS:
        writer.produce(
            broker.bootstrap, topic, [NewRecord(b"v", timestamp_ms=1, partition=0)], codec
        )

    read = [
        client_named(name).read(broker.bootstrap, topic, PARTITIONS, len(CODECS))
        for name in CLIENTS
    ]

    times = [record.timestamp_ms for record in read[0]]
    assert all(time > FIRST_TIMESTAMP for time in some(times))
    assert [times] * len(CLIENTS) == [[record.timestamp_ms for record in seen] for seen in read]


def _all_shapes(codec: str, *, null_headers: bool) -> list[NewRecord]:
    null = None if null_headers else b""
    noise = random.Random(codec).randbytes(200_000)
    shapes: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
        (b"key", b"value", ()),
        (None, b"no key", ()),
        (b"tombstone", None, ()),
        (b"", b"", ()),
        (b"a null header", b"value", (("null", null), ("empty", b""), ("some", b"\x00\xff"))),
        (b"a name twice", b"value", (("name", b"1"), ("name", b"2"))),
        (b"a name beyond ASCII", "größer".encode(), (("größe", "ß".encode()),)),
        (b"noise", noise, ()),
        (b"repetition", b"abc" * 50_000, ()),
    ]
    return [
        NewRecord(value, key, headers, FIRST_TIMESTAMP + number * 1000, number % PARTITIONS)
        for number, (key, value, headers) in enumerate(shapes)
    ]


def _place(record: Seen) -> tuple[int, int]:
    return record.partition, record.offset
