from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.clients.base import CODECS, PATIENCE
from tests.pipeline.connector.conftest import QUERY_FAILED, Connector
from tests.pipeline.topics import Topic, records, seen_in
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.spark, pytest.mark.prove]

COLUMNS = ("topic", "partition", "key", "value", "headers")


@pytest.fixture(scope="module")
def source(request: pytest.FixtureRequest, broker: BrokerProcess) -> Topic:
    """
    A topic with records of every shape; modules that import these tests have their own.
    """
    topic = Topic(broker, f"sink.{request.module.__name__.rpartition('.')[2]}", 2)
    topic.send(records(300, partitions=2))
    return topic


@pytest.mark.parametrize("codec", CODECS)
def test_topic_is_copied_with_partition_key_value_and_headers(
    connector: Connector, broker: BrokerProcess, source: Topic, codec: str
) -> None:
    copy = Topic(broker, f"sink.{codec}", 2)
    rows = connector.read(source).selectExpr(f"'{copy.name}' as topic", *COLUMNS[1:])
    connector.save(rows, **{"kafka.compression.type": codec})

    written = seen_in(connector.read(copy))
    assert [row[3:] for row in source.expected] == [row[3:] for row in written]
    assert [row[:2] for row in source.expected] == [row[:2] for row in written]


@pytest.mark.parametrize(
    "settings",
    [
        {"kafka.acks": "0", "kafka.enable.idempotence": "false"},
        {"kafka.acks": "1", "kafka.enable.idempotence": "false"},
        {"kafka.acks": "all", "kafka.enable.idempotence": "false"},
    ],
    ids=lambda settings: f"acks={settings['kafka.acks']}",
)
def test_sink_works_without_idempotence_and_acknowledgements(
    connector: Connector, broker: BrokerProcess, settings: dict[str, str]
) -> None:
    topic = Topic(broker, f"sink.acks-{settings['kafka.acks']}")
    rows = connector.spark.range(1000).selectExpr("string(id) as value")
    connector.save(rows, topic=topic.name, **settings)

    values = sorted(
        int(row.value) for row in connector.read(topic).selectExpr("string(value)").collect()
    )
    assert list(range(1000)) == values


def test_rows_choose_their_topic_by_a_column(connector: Connector, broker: BrokerProcess) -> None:
    topics = [Topic(broker, f"sink.choice.{number}", 3) for number in range(2)]
    rows = connector.spark.range(60).selectExpr(
        "concat('sink.choice.', id % 2) as topic", "string(id % 10) as key", "string(id) as value"
    )
    connector.save(rows)

    for number, topic in enumerate(topics):
        written = seen_in(connector.read(topic))
        assert set(range(number, 60, 2)) == {int(row.value or b"-1") for row in written}
        places = {(row.key, row.partition) for row in written}
        assert 5 == len(places), "all records of a key are in one partition"


def test_record_that_is_too_large_fails_the_query(
    connector: Connector, broker: BrokerProcess
) -> None:
    topic = Topic(broker, "sink.large", max_message_bytes="1000")
    rows = connector.spark.range(1).selectExpr("repeat('x', 5000) as value")

    with pytest.raises(QUERY_FAILED, match=connector.too_large):
        connector.save(rows, topic=topic.name)


def test_stream_from_topic_to_topic_resumes_at_its_checkpoint(
    connector: Connector, broker: BrokerProcess, source: Topic, tmp_path: Path
) -> None:
    copy = Topic(broker, "sink.stream", 2)
    for _ in range(2):
        stream = connector.stream(source, maxOffsetsPerTrigger=100).select(*COLUMNS[1:])
        writer = stream.writeStream.format(connector.format).trigger(availableNow=True)
        named = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "topic": copy.name,
            "checkpointLocation": str(tmp_path),
        }
        query = writer.options(**named).start()
        assert query.awaitTermination(int(PATIENCE))

    assert [row[3:] for row in source.expected] == [
        row[3:] for row in seen_in(connector.read(copy))
    ]
