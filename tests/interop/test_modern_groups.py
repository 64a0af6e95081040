"""
A group of the consumer protocol (KIP-848) that Apache Kafka has left behind.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.clients.base import NewRecord, read
from tests.interop.clients.confluent import BY_KIP_848, Confluent, ConfluentSession
from tests.interop.committed import group_offsets
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import wait_for

pytestmark = pytest.mark.prove

TOPIC, GROUP = "shared", "modern"
RECORDS = 10
SESSION_TIMEOUT = 6.0


@pytest.fixture
def both(tmp_path: Path) -> Iterator[BothBrokers]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": str(int(SESSION_TIMEOUT * 1000)),
        "offsets.topic.num.partitions": "1",
    }
    with BothBrokers.in_turn(tmp_path, settings) as both:
        yield both


def new_member(bootstrap: str, protocol: str) -> ConfluentSession:
    options = BY_KIP_848 if protocol == "consumer" else {}
    session = ConfluentSession(bootstrap)
    reader = session.reader(TOPIC, group_id=GROUP, **options)
    *_, last = read(reader, RECORDS)
    reader.commit({0: last.offset + 1})
    return session


def produce(bootstrap: str) -> None:
    records = [NewRecord(b"%d" % n, partition=0) for n in range(RECORDS)]
    Confluent().produce(bootstrap, TOPIC, records, "none")


def groups(bootstrap: str) -> dict[str, tuple[str, str]]:
    """
    Type and state of all groups, as far as the broker has loaded them.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_consumer_groups().result(30)
    return {g.group_id: (g.type.name, g.state.name) for g in listed.valid}


def wait_for_group(bootstrap: str, kind: str, state: str, seconds: float = 60) -> None:
    what = f"{GROUP} to be {kind} and {state}"
    wait_for(lambda: groups(bootstrap).get(GROUP) == (kind, state), what, seconds)


def committed(bootstrap: str) -> int:
    return group_offsets(bootstrap, GROUP)[TOPIC, 0]


def test_modern_group_is_kept_and_can_become_classic(both: BothBrokers) -> None:
    """
    Its offsets can be read, its members go when their sessions have run out, then members of the
    classic protocol may have it; and Apache Kafka understands what was written of all that.
    """
    kafka, barnabas = both
    kafka.start()
    Confluent().create_topic(kafka.bootstrap, TOPIC, 1, {})
    produce(kafka.bootstrap)
    member = new_member(kafka.bootstrap, "consumer")
    wait_for_group(kafka.bootstrap, "CONSUMER", "STABLE")
    kafka.kill()
    member.close()  # Nobody hears of it.

    began = time.monotonic()
    barnabas.start()
    wait_for_group(barnabas.bootstrap, "CONSUMER", "STABLE")
    assert RECORDS == committed(barnabas.bootstrap)
    wait_for_group(barnabas.bootstrap, "CONSUMER", "EMPTY", SESSION_TIMEOUT + 60)
    assert time.monotonic() - began > SESSION_TIMEOUT
    barnabas.stop()

    kafka.start()
    wait_for_group(kafka.bootstrap, "CONSUMER", "EMPTY")
    kafka.stop()

    barnabas.start()
    produce(barnabas.bootstrap)
    new_member(barnabas.bootstrap, "classic").close()
    wait_for_group(barnabas.bootstrap, "CLASSIC", "EMPTY")
    barnabas.stop()

    kafka.start()
    wait_for_group(kafka.bootstrap, "CLASSIC", "EMPTY")
    assert 2 * RECORDS == committed(kafka.bootstrap)
    assert "ERROR" not in kafka.log_since_start()
