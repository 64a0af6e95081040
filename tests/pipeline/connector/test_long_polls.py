"""
The connector fetches records, and asks for offsets on the same connection.
"""

from __future__ import annotations

import time

import pytest

from tests.pipeline.connector.conftest import Connector
from tests.pipeline.topics import Topic, records, seen_in
from tests.support.broker_process import Barnabas, BrokerProcess

pytestmark = [pytest.mark.spark, pytest.mark.prove]

PARTITIONS = 12
LONG_MS = 25_000


def test_offset_requests_are_not_delayed_by_a_waiting_fetch(
    connector: Connector, broker: BrokerProcess
) -> None:
    """
    The connector asks for the end offset while a fetch waits at the end of the partition. Responses
    of a connection are in order, so the fetches would delay the questions by two minutes in all.
    """
    if not isinstance(broker, Barnabas):
        pytest.skip("Apache Kafka lets the question wait")
    topic = Topic(broker, "polls", PARTITIONS)
    topic.send(records(10 * PARTITIONS, partitions=PARTITIONS))
    began = time.monotonic()
    rows = seen_in(connector.read(topic, **{"kafka.fetch.max.wait.ms": LONG_MS}))
    took_ms = 1000 * (time.monotonic() - began)

    assert topic.expected == rows
    assert took_ms < 3 * LONG_MS
