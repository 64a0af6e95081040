from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from tests.interop.clients.base import PATIENCE
from tests.pipeline.connector.conftest import QUERY_FAILED
from tests.pipeline.connector.test_sink import (  # noqa: F401  # pytest collects them here
    source,
    test_stream_from_topic_to_topic_resumes_at_its_checkpoint,
)
from tests.pipeline.live.conftest import Live
from tests.pipeline.topics import Topic, records, seen_in
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.spark, pytest.mark.prove]


def run(connector: Live, rows: DataFrame, checkpoint: Path, **options: str) -> None:
    writer = rows.writeStream.format("barnabas").trigger(availableNow=True)
    named = {
        "kafka.bootstrap.servers": connector.bootstrap,
        "checkpointLocation": str(checkpoint),
        **options,
    }
    query = writer.options(**named).start()
    try:
        assert query.awaitTermination(int(PATIENCE))
    finally:
        query.stop()


def values(connector: Live, topic: Topic) -> Counter[bytes | None]:
    rows = connector.read(topic, **{"kafka.isolation.level": "read_committed"})
    return Counter(row.value for row in seen_in(rows))


@pytest.fixture(scope="module")
def numbers(broker: BrokerProcess) -> Topic:
    topic = Topic(broker, "numbers", 2)
    topic.send(
        [
            each._replace(value=b"%d" % number)
            for number, each in enumerate(records(600, partitions=2))
        ]
    )
    return topic


def test_repeated_micro_batch_is_written_once(
    connector: Live, broker: BrokerProcess, numbers: Topic, tmp_path: Path
) -> None:
    """
    The driver died after the commit, before the checkpoint recorded it.
    """
    copy = Topic(broker, "again", 2)
    stream = connector.stream(numbers, maxOffsetsPerTrigger=200).select("key", "value")
    run(connector, stream, tmp_path, topic=copy.name)
    assert set(Counter(values(connector, copy)).values()) == {1}
    for commit in (tmp_path / "commits").glob("*2*"):
        commit.unlink()

    run(connector, stream, tmp_path, topic=copy.name)

    assert {each.value: 1 for each in numbers.expected} == values(connector, copy)


def test_failed_micro_batch_is_not_visible(
    connector: Live, broker: BrokerProcess, numbers: Topic, tmp_path: Path
) -> None:
    """
    The rows of its other tasks are not visible either; the retry writes each row once.
    """
    copy = Topic(broker, "failing", 2)
    stream = connector.stream(numbers).select("key", "value", "partition")
    bad = stream.selectExpr("key", "value", "if(value = '333', 7, partition) as partition")

    with pytest.raises(QUERY_FAILED, match=r"failing-7 does not take row .* of task 1"):
        run(connector, bad, tmp_path, topic=copy.name)
    assert not values(connector, copy)
    run(connector, stream, tmp_path, topic=copy.name)

    assert {each.value: 1 for each in numbers.expected} == values(connector, copy)


def test_other_query_with_the_same_prefix_writes_its_own_micro_batches(
    connector: Live, broker: BrokerProcess, numbers: Topic, tmp_path: Path
) -> None:
    """
    A query without the other's checkpoint does not adopt its decisions.
    """
    copy = Topic(broker, "prefixed", 2)
    stream = connector.stream(numbers).select("value")
    for number in range(2):
        options = {"topic": copy.name, "transactionalIdPrefix": "one"}
        run(connector, stream, tmp_path / str(number), **options)

    assert {each.value: 2 for each in numbers.expected} == values(connector, copy)


def test_complete_mode_is_refused(connector: Live, numbers: Topic, tmp_path: Path) -> None:
    counts = connector.stream(numbers).groupBy("key").count().selectExpr("string(count) as value")
    writer = counts.writeStream.format("barnabas").outputMode("complete")
    options = {
        "kafka.bootstrap.servers": connector.bootstrap,
        "topic": numbers.name,
        "checkpointLocation": str(tmp_path),
    }

    with pytest.raises(QUERY_FAILED, match="appends to topics"):
        writer.options(**options).start().processAllAvailable()
