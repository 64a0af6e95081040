"""
Apache Kafka and Barnabas take turns on one log directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.base import CODECS, Client, NewRecord
from tests.interop.clients.confluent import Confluent
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.prove

PARTITIONS = 2
EACH = 500
SMALL = {"segment.bytes": "1048576"}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[BothBrokers]:
    quick = {"group.initial.rebalance.delay.ms": "0"}
    with BothBrokers.in_turn(tmp_path, quick) as both:
        yield both


@pytest.mark.parametrize(
    "order",
    [
        ("barnabas", "kafka", "barnabas", "kafka"),
        ("kafka", "barnabas", "kafka", "barnabas"),
    ],
    ids=lambda order: f"{order[0]} first",
)
@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_each_broker_continues_where_the_other_stopped(
    both: BothBrokers, order: tuple[str, ...], ends: str
) -> None:
    """
    Topics with their configs, records in every codec, and what a group has committed pass from one
    broker to the other and back, whether the one before was stopped or killed.
    """
    client: Client = Confluent()
    topic, group = "shared", "readers"
    expected: list[bytes] = []

    for number, name in enumerate(order):
        broker: BrokerProcess = getattr(both, name)
        broker.start()
        if number == 0:
            client.create_topic(broker.bootstrap, topic, PARTITIONS, SMALL)
        fresh = _records(number)
        for codec in CODECS:
            client.produce(broker.bootstrap, topic, fresh[codec], codec)
        new = [record.value or b"" for codec in CODECS for record in fresh[codec]]
        expected += new

        one, two = client.consume_in_group(broker.bootstrap, topic, group, len(new))
        everything = client.read(broker.bootstrap, topic, PARTITIONS, len(expected))

        assert sorted(new) == sorted(record.value or b"" for record in one + two), name
        assert sorted(expected) == sorted(record.value or b"" for record in everything), name
        if ends == "killed":
            broker.kill()
        else:
            assert broker.stop() in (0, 143), name


def _records(turn_number: int) -> dict[str, list[NewRecord]]:
    return {
        codec: [
            NewRecord(
                value=f"{turn_number} {codec} {n}".encode().ljust(300, b"."),
                key=b"%d" % n,
                headers=(("turn", b"%d" % turn_number),),
                partition=n % PARTITIONS,
            )
            for n in range(EACH)
        ]
        for codec in CODECS
    }
