from __future__ import annotations

import json
from typing import Any

import pytest

from tests.interop.clients.base import CODECS, NewRecord, Seen
from tests.pipeline.connector.conftest import QUERY_FAILED, Connector
from tests.pipeline.topics import START_MS, Topic, records, seen_in
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.spark, pytest.mark.prove]

PARTITIONS = 3


@pytest.fixture(scope="module")
def full(broker: BrokerProcess) -> Topic:
    """
    Records of every shape in every codec, in three partitions.
    """
    topic = Topic(broker, "batch.full", PARTITIONS)
    for number, codec in enumerate(CODECS):
        topic.send(records(600, partitions=PARTITIONS, seed=number), codec)
    return topic


def test_every_record_is_read_as_it_was_sent(connector: Connector, full: Topic) -> None:
    assert full.expected == seen_in(connector.read(full))


def test_topic_timestamp_type_and_header_columns_are_read(
    connector: Connector, full: Topic
) -> None:
    frame = connector.read(full)

    assert [(full.name, 0)] == frame.select("topic", "timestampType").distinct().collect()
    none = sum(not seen.headers for seen in full.expected)
    assert none == frame.filter("headers is null").count()


def test_assign_reads_only_the_named_partitions(connector: Connector, full: Topic) -> None:
    frame = connector.read(assign=json.dumps({full.name: [0, 2]}))

    assert [seen for seen in full.expected if seen.partition != 1] == seen_in(frame)


@pytest.mark.usefixtures("transactional")
def test_subscribe_pattern_matches_topics_but_no_internal_ones(
    connector: Connector, broker: BrokerProcess, full: Topic
) -> None:
    other = Topic(broker, "batch.full.other", 2)
    other.send(records(20, partitions=2))
    Topic(broker, "not.batch.full").send(records(5))
    frame = connector.read(subscribePattern="^batch[.]full.*|^__.*")

    topics = {row.topic for row in frame.select("topic").distinct().collect()}
    assert {full.name, other.name} == topics
    assert other.expected == seen_in(frame.filter(frame.topic == other.name))
    assert full.expected == seen_in(frame.filter(frame.topic == full.name))


def test_starting_and_ending_offsets_bound_the_query(connector: Connector, full: Topic) -> None:
    """
    Given offsets, -2 for the beginning and -1 for the end.
    """
    frame = connector.read(
        full,
        startingOffsets=json.dumps({full.name: {0: 100, 1: -2, 2: 999}}),
        endingOffsets=json.dumps({full.name: {0: 700, 1: 1, 2: -1}}),
    )

    wanted = {0: range(100, 700), 1: range(1), 2: range(999, 1000)}
    expected = [seen for seen in full.expected if seen.offset in wanted[seen.partition]]
    assert 602 == len(expected)
    assert expected == seen_in(frame)


@pytest.mark.parametrize("pieces", [6, 20])
def test_min_partitions_splits_partitions_without_loss(
    connector: Connector, full: Topic, pieces: int
) -> None:
    frame = connector.read(full, minPartitions=pieces)

    assert pieces <= frame.rdd.getNumPartitions()
    assert full.expected == seen_in(frame)


def test_max_records_per_partition_limits_tasks(connector: Connector, full: Topic) -> None:
    """
    ``maxRecordsPerPartition`` of 300 cuts 1,000 offsets into four.
    """
    offsets = {full.name: dict.fromkeys(range(PARTITIONS), 0)}
    ends = {full.name: dict.fromkeys(range(PARTITIONS), 1000)}
    frame = connector.read(
        full,
        startingOffsets=json.dumps(offsets),
        endingOffsets=json.dumps(ends),
        maxRecordsPerPartition=300,
    )

    assert 4 * PARTITIONS == frame.rdd.getNumPartitions()
    assert full.expected == seen_in(frame)


@pytest.fixture(scope="module")
def disordered(broker: BrokerProcess) -> Topic:
    """
    Two partitions with timestamps that go back and forth, in batches of one record.
    """
    topic = Topic(broker, "batch.disordered", 2)
    for partition in range(2):
        for delay in (10, 40, 20, 80, 30, 60):
            topic.send([NewRecord(b"", partition=partition, timestamp_ms=START_MS + delay)])
    return topic


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ({"startingTimestamp": START_MS}, range(6)),
        ({"startingTimestamp": START_MS + 11}, range(1, 6)),
        ({"startingTimestamp": START_MS + 41}, range(3, 6)),
        ({"startingTimestamp": START_MS + 80}, range(3, 6)),
        ({"endingTimestamp": START_MS + 41}, range(3)),
        ({"endingTimestamp": START_MS + 99}, range(6)),
        ({"startingTimestamp": START_MS + 20, "endingTimestamp": START_MS + 80}, range(1, 3)),
    ],
)
def test_starting_and_ending_timestamps_bound_the_query(
    connector: Connector, disordered: Topic, options: dict[str, int], offsets: range
) -> None:
    """
    A query begins and ends at the first record with at least the timestamp, even if later records
    are older.
    """
    expected = [seen for seen in disordered.expected if seen.offset in offsets]
    assert expected == seen_in(connector.read(disordered, **options))


def test_timestamps_may_differ_by_partition(connector: Connector, disordered: Topic) -> None:
    """
    ``startingOffsetsByTimestamp`` and ``endingOffsetsByTimestamp``, as JSON.
    """
    since = {disordered.name: {0: START_MS + 41, 1: START_MS}}
    until = {disordered.name: {0: START_MS + 99, 1: START_MS + 40}}
    frame = connector.read(
        disordered,
        startingOffsetsByTimestamp=json.dumps(since),
        endingOffsetsByTimestamp=json.dumps(until),
    )

    wanted = {0: range(3, 6), 1: range(1)}
    expected = [seen for seen in disordered.expected if seen.offset in wanted[seen.partition]]
    assert expected == seen_in(frame)


def test_timestamp_beyond_all_records_fails_unless_the_end_is_allowed(
    connector: Connector, disordered: Topic
) -> None:
    late = START_MS + 81

    with pytest.raises(QUERY_FAILED, match=connector.no_offset):
        connector.read(disordered, startingTimestamp=late).collect()
    lenient = connector.read(
        disordered, startingTimestamp=late, startingOffsetsByTimestampStrategy="latest"
    )
    assert [] == seen_in(lenient)


def test_log_append_time_is_read_with_its_type(connector: Connector, broker: BrokerProcess) -> None:
    topic = Topic(broker, "batch.append-time", message_timestamp_type="LogAppendTime")
    topic.send(records(50))
    frame = connector.read(topic)

    assert [(1,)] == frame.select("timestampType").distinct().collect()
    rows = seen_in(frame)
    times = [row.timestamp_ms for row in rows]
    assert START_MS + 50 < times[0]
    assert times == sorted(times)
    assert topic.read_times() == times
    assert [row._replace(timestamp_ms=0) for row in topic.expected] == [
        row._replace(timestamp_ms=0) for row in rows
    ]


@pytest.fixture(scope="module")
def transactional(broker: BrokerProcess) -> Topic:
    topic = Topic(broker, "batch.transactional")
    numbers = iter(range(1000))

    def some() -> list[NewRecord]:
        return [
            NewRecord(f"{next(numbers)}".encode(), partition=0, timestamp_ms=START_MS)
            for _ in range(10)
        ]

    for end in ("commit", "abort", "commit", "abort", "abort", "commit"):
        topic.transaction(some(), end=end)
        topic.send(some())
    topic.transaction(some(), end="abort")
    topic.transaction(some(), end="leave")
    return topic


@pytest.mark.parametrize("pieces", [1, 9])
def test_read_committed_query_returns_only_committed_records(
    connector: Connector, transactional: Topic, pieces: int
) -> None:
    """
    Aborted and open transactions are left out, however the offsets are split.
    """
    committed = {"kafka.isolation.level": "read_committed", "minPartitions": pieces}

    assert transactional.expected == seen_in(connector.read(transactional, **committed))


def test_read_uncommitted_query_returns_all_records_but_no_markers(
    connector: Connector, transactional: Topic
) -> None:
    values = {int(seen.value or b"-1") for seen in seen_in(connector.read(transactional))}

    assert set(range(140)) == values


def removed(broker: BrokerProcess, name: str) -> Topic:
    topic = Topic(broker, name)
    topic.send(records(100))
    topic.delete_records(before=40)
    return topic


def test_deleted_beginning_is_not_reported_as_data_loss(
    connector: Connector, broker: BrokerProcess
) -> None:
    topic = removed(broker, "batch.removed")

    assert 60 == len(topic.expected)
    assert topic.expected == seen_in(connector.read(topic))


@pytest.mark.parametrize("fails", [True, False])
def test_deleted_requested_records_fail_only_with_fail_on_data_loss(
    connector: Connector, broker: BrokerProcess, fails: bool
) -> None:
    topic = removed(broker, f"batch.removed.{fails}")
    options: dict[str, Any] = {
        "startingOffsets": json.dumps({topic.name: {0: 0}}),
        "endingOffsets": json.dumps({topic.name: {0: 100}}),
        "failOnDataLoss": str(fails).lower(),
    }

    if fails:
        with pytest.raises(QUERY_FAILED, match=connector.lost):
            connector.read(topic, **options).collect()
    else:
        assert topic.expected == seen_in(connector.read(topic, **options))


def test_topic_without_records_has_no_rows(connector: Connector, broker: BrokerProcess) -> None:
    empty: list[Seen] = seen_in(connector.read(Topic(broker, "batch.empty", 2)))

    assert [] == empty


def test_unknown_topic_fails_the_query(connector: Connector) -> None:
    with pytest.raises(QUERY_FAILED, match=connector.no_topic):
        connector.read(subscribe="batch.unknown").collect()
