"""
What Apache Kafka remembers and Barnabas does not act upon is there when Kafka comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.base import NewRecord
from tests.interop.clients.confluent import Confluent
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.java_programs import run_program

pytestmark = pytest.mark.prove

SOURCE = Path(__file__).parent / "java" / "Everything.java"

SHARED = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    # Snapshots soon, so that what they leave out would be seen to be lost.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
KAFKA_ONLY = {
    "share.coordinator.state.topic.num.partitions": "2",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[BothBrokers]:
    with BothBrokers.in_turn(tmp_path, SHARED, of_kafka=KAFKA_ONLY) as both:
        yield both


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_apache_kafka_finds_everything_that_it_had_left(both: BothBrokers, ends: str) -> None:
    """
    Users, access rules, quotas, features, configs of every kind, groups of every type with their
    offsets, producers, transactions of which one is open: after Barnabas has had the directory,
    has written to it, and was started more than once.
    """
    kafka, barnabas = both

    def end(broker: BrokerProcess) -> None:
        if ends == "killed":
            broker.kill()
        else:
            assert broker.stop() in (0, 143), broker.name

    kafka.start()
    run_program(SOURCE, "leave", kafka.bootstrap, level="error")
    before = run_program(SOURCE, "tell", kafka.bootstrap, level="error").splitlines()
    end(kafka)

    client = Confluent()
    for number in range(3):
        barnabas.start()
        client.create_topic(barnabas.bootstrap, f"new-{number}", 20, {"retention.ms": "1000000"})
        records = [NewRecord(b"value", partition=0)] * 10
        client.produce(barnabas.bootstrap, f"new-{number}", records, "none")
        client.consume_in_group(barnabas.bootstrap, f"new-{number}", f"readers-{number}", 10)
        end(barnabas)
    kafka.start()
    after = run_program(SOURCE, "tell", kafka.bootstrap, level="error").splitlines()

    new = {f"group readers-{number}" for number in range(3)}
    kept = [line for line in after if line.rsplit(" ", 3)[0] not in new]
    assert _without_topic_list(before) == _without_topic_list(kept)
    assert 60 < len(before), "\n".join(before)
    assert "ERROR" not in kafka.log_since_start()


def _without_topic_list(facts: list[str]) -> list[str]:
    return [fact for fact in facts if not fact.startswith("topics ")]
