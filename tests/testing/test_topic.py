from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.partitioner import murmur2
from barnabas.testing import (
    AppendRefused,
    Broker,
    InvalidConfig,
    InvalidTopic,
    NewRecord,
    TopicExists,
    UnknownTopic,
)

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(clock="still", start_ms=START_MS) as broker:
        yield broker


def test_values_and_key_value_pairs_are_appended(broker: Broker) -> None:
    topic = broker.topic("pairs").create()

    topic.append([b"bytes", "text", ("key", "value"), ("gone", None), None])

    records = topic.records()
    contents = [(record.key, record.value) for record in records]
    assert [(None, b"bytes"), (None, b"text"), (b"key", b"value")] == contents[:3]
    assert [(b"gone", None), (None, None)] == contents[3:]
    assert [0, 1, 2, 3, 4] == [record.offset for record in records]
    assert {START_MS} == {record.timestamp for record in records}
    assert "2023-11-14T22:13:20+00:00" == records[0].time.isoformat()


def test_new_record_has_every_attribute_a_producer_can_set(broker: Broker) -> None:
    topic = broker.topic("given").create(partitions=2)

    topic.append(
        [NewRecord("v", "k", timestamp=5, headers=[("a", b"1"), ("a", None)], partition=1)]
    )

    (record,) = topic.records()
    assert ("given", 1, 0, 5) == record[:4]
    assert (b"k", b"v", (("a", b"1"), ("a", None))) == record[4:]
    assert [] == topic.records(partition=0)


def test_keys_choose_partitions_as_in_the_java_producer(broker: Broker) -> None:
    """
    The hashes are those of Kafka's ``UtilsTest``.
    """
    known = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }

    assert known == {key: _signed(murmur2(key)) for key in known}
    topic = broker.topic("keys").create(partitions=3).append([("abc", "1"), ("abc", "2")])
    assert [b"1", b"2"] == [record.value for record in topic.records(479470107 % 3)]


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def test_records_without_a_key_are_distributed_round_robin(broker: Broker) -> None:
    topic = broker.topic("turns").create(partitions=3).append(["a", "b", "c", "d"])

    assert [[b"a", b"d"], [b"b"], [b"c"]] == [
        [record.value for record in topic.records(partition)] for partition in range(3)
    ]


def test_many_records_are_split_into_batches(broker: Broker) -> None:
    topic = broker.topic("much").create(config={"max.message.bytes": 1000})

    topic.append([str(number) for number in range(1000)])

    assert [str(number).encode() for number in range(1000)] == [r.value for r in topic.records()]


def test_a_hundred_thousand_records_are_seeded(broker: Broker) -> None:
    topic = broker.topic("hundred-thousand").create(partitions=3)

    topic.append([(f"key {number}", f"value {number}") for number in range(100_000)])

    assert 100_000 == len(topic.records())


def test_records_that_a_producer_could_not_append_are_refused(broker: Broker) -> None:
    compacted = broker.topic("compacted").create(config={"cleanup.policy": "compact"})
    with pytest.raises(AppendRefused, match="compacted-0 refuses"):
        compacted.append(["without a key"])
    small = broker.topic("small").create(config={"max.message.bytes": 200})
    with pytest.raises(AppendRefused, match="exceeds the maximum"):
        small.append(["x" * 300])


def test_invalid_record_is_refused_before_anything_is_appended(broker: Broker) -> None:
    topic = broker.topic("odd").create()

    with pytest.raises(TypeError, match=r"append\(\['text'\]\)"):
        topic.append("text")
    with pytest.raises(TypeError, match="bytes, str or None, not 7"):
        topic.append(["fine", 7])  # type: ignore[list-item]  # the mistake
    with pytest.raises(TypeError, match=r"\(key, value\)"):
        topic.append([("a", "b", "c")])  # type: ignore[list-item]  # the mistake
    assert [] == topic.records()


def test_unknown_topic_is_reported_with_the_existing_ones(broker: Broker) -> None:
    broker.topic("known").create()

    for use in (
        lambda: broker.topic("knwon").append(["a"]),
        lambda: broker.topic("knwon").records(),
        lambda: broker.topic("knwon").segments,
        lambda: broker.topic("knwon").explain(),
        lambda: broker.topic("knwon").delete(),
        lambda: broker.topic("knwon").partitions,
    ):
        with pytest.raises(UnknownTopic, match=r"knwon does not exist .*known"):
            use()
    with pytest.raises(UnknownTopic, match="has 1 partitions, not one 1"):
        broker.topic("known").records(1)


def test_topic_that_cannot_be_created_is_reported_with_the_reason(broker: Broker) -> None:
    broker.topic("there").create()

    with pytest.raises(TopicExists, match="there"):
        broker.topic("there").create()
    with pytest.raises(InvalidTopic, match="a b"):
        broker.topic("a b").create()
    with pytest.raises(InvalidTopic, match="partitions"):
        broker.topic("none").create(partitions=0)
    with pytest.raises(InvalidConfig, match=r"retention\.mss"):
        broker.topic("wrong").create(config={"retention.mss": 1})
    with pytest.raises(InvalidConfig, match=r"retention\.ms"):
        broker.topic("wrong").create(config={"retention.ms": "soon"})
    assert not broker.topic("wrong").exists


def test_topic_can_be_deleted_and_created_again(broker: Broker) -> None:
    topic = broker.topic("again").create().append(["a"])

    topic.delete()

    assert not topic.exists
    assert [] == topic.create().records()


def test_topics_are_listed_without_internal_ones(broker: Broker) -> None:
    names = [topic.name for topic in broker.topics]

    assert names == sorted(names)
    assert not [name for name in names if name.startswith("__")]


def test_segments_of_a_partition_are_listed(broker: Broker) -> None:
    topic = broker.topic("segments").create(config={"segment.bytes": 1_048_576})
    for number in range(3):
        topic.append([NewRecord(b"x" * 600_000, timestamp=START_MS + number)])

    segments = topic.segments

    assert [0, 1, 2] == [segment.base_offset for segment in segments]
    assert [False, False, True] == [segment.is_active for segment in segments]
    assert [START_MS, START_MS + 1, START_MS + 2] == [s.largest_timestamp for s in segments]
    assert all(600_000 < segment.size < 600_200 for segment in segments)


def test_partition_explains_its_segments(broker: Broker) -> None:
    topic = broker.topic("explained").create(config={"retention.ms": 60_000}).append(["a"])

    text = topic.explain()

    assert text.startswith("explained-0")
    assert "retention.ms" in text
    assert "2023-11-14T22:14:20" in text, "a minute after the time of the broker's clock"
