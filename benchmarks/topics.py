"""
Topics for the time of a measure, and the first record that a broker acknowledges.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import wire
from benchmarks.further import FurtherBroker
from tests.support.broker_process import BrokerProcess

LOCAL: Final = "127.0.0.1"
PATIENCE: Final = 120.0
UNKNOWN_TOPIC: Final = 3

_numbers = itertools.count(1)


def create_topic(
    broker: BrokerProcess,
    name: str,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """
    Create a topic and wait until its first partition has taken a record.
    """
    _create(broker, name, partitions, config)
    produce_when_possible(broker, name)


def _create(
    broker: BrokerProcess,
    name: str,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    topic = NewTopic(name, partitions, 1, config=dict(config or {}))
    admin = _admin(broker)  # It lives until the answer is there, or there is none.
    admin.create_topics([topic], operation_timeout=PATIENCE)[name].result(PATIENCE)


@contextmanager
def new_topic(
    broker: BrokerProcess, partitions: int = 1, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """
    A topic with one record in partition 0. It goes afterwards; if something fails, it goes with
    its broker.
    """
    name = f"load-{next(_numbers)}"
    create_topic(broker, name, partitions, config)
    yield name
    admin = _admin(broker)
    admin.delete_topics([name])[name].result(PATIENCE)


def produce_when_possible(broker: BrokerProcess, topic: str = "first") -> None:
    """
    Try until one record is acknowledged. A further broker may not create what it is asked for.

    Raises:
        TimeoutError: none was within the time that the broker has for its start.
        AssertionError: it has ended.
    """
    deadline = time.monotonic() + broker.start_timeout
    while time.monotonic() < deadline:
        assert broker.is_running, f"{broker.name} has ended: {_last_words(broker)}"
        with (
            suppress(OSError),
            socket.create_connection((LOCAL, broker.port), timeout=5) as connection,
        ):
            wire.ask(connection, wire.metadata_request(topic))
            request = wire.produce_request(topic, b"value", timestamp_ms=now_ms())
            error = wire.produce_error(topic, wire.ask(connection, request))
            if error == 0:
                return
            if error == UNKNOWN_TOPIC and isinstance(broker, FurtherBroker):
                with suppress(KafkaException):  # It may be there, and only not be ready.
                    _create(broker, topic)
        time.sleep(0.002)
    raise TimeoutError(f"{broker.name} acknowledged nothing in {broker.start_timeout:.0f} s")


def _last_words(broker: BrokerProcess) -> str:
    return (broker.log_since_start().strip() or "it said nothing").splitlines()[-1]


def now_ms() -> int:
    """
    The time as records have it.
    """
    return int(time.time() * 1000)


def _admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
