"""
A client's whole life with a broker: a topic, records, a group, and a restart in the middle.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.interop.clients.base import CODECS, Client, NewRecord, Place, Seen
from tests.support.broker_process import BrokerProcess
from tests.support.some import some

RECORDS = 100_000
PARTITIONS = 4


def test_every_record_is_read_once_and_in_order(
    broker: BrokerProcess, client: Client, topic: str
) -> None:
    """
    Of 100,000 records with keys and headers, a fifth of them in each codec, two members of a group
    see each once, in the order of its partition, although the broker is restarted before the group
    starts and again when it has seen a quarter.
    """
    client.create_topic(broker.bootstrap, topic, PARTITIONS, {})
    share = RECORDS // len(CODECS)
    sent = [_record(number, CODECS[number // share]) for number in range(RECORDS)]
    places: list[Place] = []
    for number, codec in enumerate(CODECS):
        fifth = sent[number * share : (number + 1) * share]
        places += client.produce(broker.bootstrap, topic, fifth, codec)

    broker.restart()
    first = client.consume_in_group(broker.bootstrap, topic, topic, RECORDS // 4)
    broker.restart()
    left = RECORDS - sum(map(len, first))
    second = client.consume_in_group(broker.bootstrap, topic, topic, left)

    assert RECORDS == len(set(places)) == len(places)
    seen = [record for members in (first, second) for member in members for record in member]
    assert _expected(sent, places) == sorted(_content(record) for record in seen)
    assert all(some(second)), "each member had partitions to read, none of them at its end"
    for member in (*first, *second):
        _assert_in_order(member)
    _assert_offsets_without_gaps(seen)


def _record(number: int, codec: str) -> NewRecord:
    return NewRecord(
        key=b"key-%d" % (number % 1000),
        value=b"value-%d" % number,
        headers=(("number", b"%d" % number), ("codec", codec.encode())),
    )


Content = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def _expected(sent: Sequence[NewRecord], places: Sequence[Place]) -> list[Content]:
    return sorted(
        (place.partition, place.offset, record.key, record.value, record.headers)
        for record, place in zip(sent, places, strict=True)
    )


def _content(record: Seen) -> Content:
    return (record.partition, record.offset, record.key, record.value, record.headers)


def _assert_in_order(member: Sequence[Seen]) -> None:
    """
    Within a partition the offsets grow by one, and so do the numbers of each key's records.
    """
    last_offset: dict[int, int] = {}
    last_number: dict[int, int] = {}
    for record in some(member):
        number = int(dict(record.headers)["number"] or b"")
        if record.partition in last_offset:
            assert last_offset[record.partition] + 1 == record.offset
        assert last_number.get(record.partition, -1) < number
        last_offset[record.partition] = record.offset
        last_number[record.partition] = number


def _assert_offsets_without_gaps(seen: Sequence[Seen]) -> None:
    offsets: defaultdict[int, list[int]] = defaultdict(list)
    for record in seen:
        offsets[record.partition].append(record.offset)
    sizes = Counter(record.partition for record in seen)
    for partition, found in some(offsets.items()):
        assert list(range(sizes[partition])) == sorted(found)
