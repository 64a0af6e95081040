"""
Streaming queries.

Each runs with ``Trigger.AvailableNow``: it handles what was there when it began, in as many batches
as its limits ask for, and ends by itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from tests.interop.clients.base import PATIENCE
from tests.pipeline.connector.conftest import QUERY_FAILED, Connector
from tests.pipeline.topics import Topic, records, seen_in
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.spark, pytest.mark.prove]


class Target:
    """
    A directory of Parquet files that streams write to, and the checkpoint from which they go on.
    """

    def __init__(self, connector: Connector, directory: Path) -> None:
        self._spark = connector.spark
        self._files = str(directory / "rows")
        self._checkpoint = str(directory / "checkpoint")

    def receive(self, stream: DataFrame) -> list[int]:
        writer = stream.writeStream.format("parquet").trigger(availableNow=True)
        query = writer.option("checkpointLocation", self._checkpoint).start(self._files)
        try:
            assert query.awaitTermination(int(PATIENCE)), "the query ends by itself"
        finally:
            query.stop()
        batches = (progress["numInputRows"] for progress in query.recentProgress)
        return [rows for rows in batches if rows > 0]

    def rows(self) -> DataFrame:
        return self._spark.read.parquet(self._files)


@pytest.fixture
def target(connector: Connector, tmp_path: Path) -> Target:
    return Target(connector, tmp_path)


def test_max_offsets_per_trigger_limits_each_batch(
    connector: Connector, broker: BrokerProcess, target: Target
) -> None:
    topic = Topic(broker, "stream.sizes", 2)
    topic.send(records(700, partitions=2))
    batches = target.receive(connector.stream(topic, maxOffsetsPerTrigger=200))

    assert [200, 200, 200, 100] == batches
    assert topic.expected == seen_in(target.rows())


def test_query_resumes_at_its_checkpoint(
    connector: Connector, broker: BrokerProcess, target: Target
) -> None:
    topic = Topic(broker, "stream.restart", 2)
    topic.send(records(100, partitions=2))
    assert [100] == target.receive(connector.stream(topic))
    assert [] == target.receive(connector.stream(topic))

    topic.send(records(30, partitions=2))

    assert [30] == target.receive(connector.stream(topic))
    assert topic.expected == seen_in(target.rows())


def test_query_includes_new_topics_and_partitions(
    connector: Connector, broker: BrokerProcess, target: Target
) -> None:
    """
    Each batch resolves the pattern again; new partitions are read from the beginning.
    """
    first = Topic(broker, "stream.growing.1")
    first.send(records(10))
    pattern = "stream[.]growing.*"
    assert [10] == target.receive(connector.stream(subscribePattern=pattern))

    second = Topic(broker, "stream.growing.2")
    second.send(records(20))
    first.grow(2)
    first.send(records(12, partitions=2))

    assert [32] == target.receive(connector.stream(subscribePattern=pattern))
    rows = target.rows()
    assert first.expected == seen_in(rows.filter(rows.topic == first.name))
    assert second.expected == seen_in(rows.filter(rows.topic == second.name))


def test_read_committed_stream_returns_only_committed_records(
    connector: Connector, broker: BrokerProcess, target: Target
) -> None:
    """
    A query reads up to the first open transaction, without aborted records. Some batches end at a
    marker.
    """
    topic = Topic(broker, "stream.transactions")
    for end in ("commit", "abort", "abort", "commit", "abort"):
        topic.transaction(records(10), end=end)
    settled = list(topic.expected)
    topic.transaction(records(5), end="leave")
    topic.send(records(5))
    committed = {"kafka.isolation.level": "read_committed", "maxOffsetsPerTrigger": 11}
    batches = target.receive(connector.stream(topic, **committed))

    assert [10, 10] == batches
    assert settled == seen_in(target.rows())


@pytest.mark.parametrize("fails", [True, False])
def test_records_deleted_meanwhile_fail_only_with_fail_on_data_loss(
    connector: Connector, broker: BrokerProcess, target: Target, fails: bool
) -> None:
    """
    Records were deleted while the query was stopped: it fails with ``failOnDataLoss``, and
    otherwise continues at the new beginning.
    """
    topic = Topic(broker, f"stream.removed.{fails}")
    topic.send(records(50))
    assert [50] == target.receive(connector.stream(topic))
    had = list(topic.expected)
    topic.send(records(50))
    topic.delete_records(before=80)
    stream = connector.stream(topic, failOnDataLoss=str(fails).lower())

    if fails:
        with pytest.raises(QUERY_FAILED, match=connector.lost):
            target.receive(stream)
        assert had == seen_in(target.rows())
    else:
        assert [20] == target.receive(stream)
        assert had + topic.expected == seen_in(target.rows())


def test_stream_may_begin_at_given_offsets(
    connector: Connector, broker: BrokerProcess, target: Target
) -> None:
    topic = Topic(broker, "stream.start", 2)
    topic.send(records(100, partitions=2))
    offsets = json.dumps({topic.name: {0: 45, 1: -1}})

    assert [5] == target.receive(connector.stream(topic, startingOffsets=offsets))
    expected = [seen for seen in topic.expected if seen.partition == 0 and seen.offset >= 45]
    assert expected == seen_in(target.rows())
