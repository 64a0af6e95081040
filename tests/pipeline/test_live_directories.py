from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.base import Seen
from tests.pipeline.topics import Topic, records
from tests.support.apache_kafka import ApacheKafka, class_path
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.scanned import scanned_rows

pytestmark = [pytest.mark.interop, pytest.mark.prove]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
COUNT = 400
PATIENCE_SECONDS = 60


@pytest.fixture(params=[Barnabas, ApacheKafka])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    if request.param is ApacheKafka:
        class_path()
    started: BrokerProcess = request.param(tmp_path)
    started.start()
    yield started
    started.close()


def seen(broker: BrokerProcess, **options: str) -> list[Seen]:
    found = scanned_rows(broker.data, subscribe="live", **options)
    return sorted(
        Seen(row[3], row[4], row[5], row[0], row[1], tuple(row[7] or ())) for row in found
    )


def seen_once_committed(broker: BrokerProcess, count: int) -> list[Seen]:
    """
    The committed rows, once there are *count*: Apache Kafka reports the end of a transaction before
    its markers are in the log.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        rows = seen(broker, readUpTo="logEnd", isolationLevel="read_committed")
        if len(rows) == count or time.monotonic() > deadline:
            return rows


def test_rows_of_a_live_directory_equal_what_was_sent(broker: BrokerProcess) -> None:
    """
    librdkafka sends with every codec, and in committed, aborted and open transactions. The
    directory is read while the broker runs and after its stop, which records deleted offsets.
    """
    topic = Topic(broker, "live", partitions=2, segment_bytes=str(1 << 20))
    for seed, codec in enumerate(CODECS):
        topic.send(records(COUNT, partitions=2, seed=seed), codec)
    topic.transaction(records(10, seed=10), end="commit")
    topic.transaction(records(10, seed=11), end="abort")
    while_running = seen_once_committed(broker, len(topic.expected))
    assert topic.expected == while_running
    topic.transaction(records(10, seed=12), end="leave")
    assert while_running == seen(broker, readUpTo="logEnd", isolationLevel="read_committed")
    assert len(while_running) + 20 == len(seen(broker, readUpTo="logEnd"))
    topic.delete_records(before=50)

    broker.stop()

    assert topic.expected == seen(broker, isolationLevel="read_committed")
    assert len(topic.expected) + 20 == len(seen(broker))
