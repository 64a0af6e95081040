"""
Members of groups with librdkafka: the eager and the cooperative way, static members, commits.
"""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.interop.librdkafka_client.clients import (
    PATIENCE,
    Clients,
    assigned,
    eventually,
    fails_with,
    numbered,
    offsets,
    values,
)

BRISK = {"heartbeat_interval_ms": 50, "session_timeout_ms": 2000}
COOPERATIVE = "cooperative-sticky"


class Told:
    """
    What a member was told, in order: "+" for partitions that it got, "-" for those that it gave
    back, "!" for those that were lost.
    """

    def __init__(self) -> None:
        self.news: list[str] = []

    def subscribe(self, consumer: Consumer, *topics: str) -> None:
        """
        Subscribe and listen.
        """
        consumer.subscribe(
            list(topics),
            on_assign=self._note("+"),
            on_revoke=self._note("-"),
            on_lost=self._note("!"),
        )

    def _note(self, sign: str) -> Any:
        def note(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            self.news.append(sign + ",".join(str(part.partition) for part in partitions))

        return note


@pytest.mark.parametrize("strategy", ["range", "roundrobin", COOPERATIVE])
def test_members_share_partitions_and_one_takes_over(
    clients: Clients, topic: str, strategy: str
) -> None:
    """
    Each has its half; when one leaves, the other has everything.
    """
    clients.create(topic, 4)
    everything = {(topic, number) for number in range(4)}
    options = {**BRISK, "partition_assignment_strategy": strategy}
    one, two = (clients.consumer(topic, **options) for _ in range(2))
    for consumer in (one, two):
        consumer.subscribe([topic])

    eventually(lambda: [2, 2] == [len(assigned(each)) for each in (one, two)], one, two)
    assert everything == assigned(one) | assigned(two)
    one.unsubscribe()
    eventually(lambda: everything == assigned(two), one, two)


def test_cooperative_member_revokes_only_what_another_gets(clients: Clients, topic: str) -> None:
    """
    It keeps reading the rest (KIP-429): partitions 0 and 1 for it, one of which goes.
    """
    clients.create(topic)
    options = {**BRISK, "partition_assignment_strategy": COOPERATIVE}
    one, two = (clients.consumer(topic, **options) for _ in range(2))
    told, told_too = Told(), Told()

    told.subscribe(one, topic)
    eventually(lambda: len(assigned(one)) == 2, one)
    told_too.subscribe(two, topic)
    eventually(lambda: len(assigned(two)) == 1, one, two)

    [(_, moved)] = assigned(two)
    assert {(topic, 1 - moved)} == assigned(one)
    assert ["+0,1", f"-{moved}"] == [each for each in told.news if len(each) > 1]
    assert [f"+{moved}"] == [each for each in told_too.news if len(each) > 1]


def test_cooperative_member_adds_another_topic_without_revocation(
    clients: Clients, topic: str
) -> None:
    names = [topic, f"{topic}-too"]
    for name in names:
        clients.create(name, 1)
        clients.send(name, 0, [name.encode()])
    consumer = clients.consumer(topic, **BRISK, partition_assignment_strategy=COOPERATIVE)
    told = Told()

    told.subscribe(consumer, topic)
    assert [topic.encode()] == values(consumer, 1)
    told.subscribe(consumer, *names)
    assert [f"{topic}-too".encode()] == values(consumer, 1)

    assert ["+0", "+0"] == told.news
    assert {(name, 0) for name in names} == assigned(consumer)


def test_member_that_polls_too_rarely_loses_its_partitions(clients: Clients, topic: str) -> None:
    clients.create(topic, 1)
    options = {**BRISK, "partition_assignment_strategy": COOPERATIVE}
    idle = clients.consumer(topic, max_poll_interval_ms=2000, **options)
    other = clients.consumer(topic, **options)
    told = Told()
    told.subscribe(idle, topic)
    eventually(lambda: len(assigned(idle)) == 1, idle)

    other.subscribe([topic])
    eventually(lambda: len(assigned(other)) == 1, other)
    with fails_with(KafkaError._MAX_POLL_EXCEEDED):
        values(idle, 1)
    other.close()
    eventually(lambda: "!0" in told.news and len(assigned(idle)) == 1, idle)

    assert ["+0", "!0", "+0"] == [each for each in told.news if len(each) > 1]


def test_static_member_returns_to_its_partitions(clients: Clients, topic: str) -> None:
    """
    Nobody is told while it is away (KIP-345); another with its name puts an end to it.
    """
    clients.create(topic)
    one, two = (clients.consumer(topic, **BRISK, group_instance_id=name) for name in "ab")
    told = Told()
    told.subscribe(one, topic)
    two.subscribe([topic])
    eventually(lambda: [1, 1] == [len(assigned(each)) for each in (one, two)], one, two)
    before, news = assigned(two), list(told.news)

    two.close()
    again = clients.consumer(topic, **BRISK, group_instance_id="b")
    again.subscribe([topic])
    eventually(lambda: before == assigned(again), one, again)
    assert news == told.news

    usurper = clients.consumer(topic, **BRISK, group_instance_id="b")
    usurper.subscribe([topic])
    eventually(lambda: before == assigned(usurper), one, usurper)
    with fails_with(KafkaError._FATAL):
        values(again, 1)
    assert news == told.news


def test_member_id_exists_while_the_member_is_joined(clients: Clients, topic: str) -> None:
    clients.create(topic)
    consumer = clients.consumer(topic, **BRISK)

    assert not consumer.memberid()
    consumer.subscribe([topic])
    eventually(lambda: len(assigned(consumer)) == 2, consumer)
    assert consumer.memberid()


def test_commit_keeps_its_metadata(clients: Clients, topic: str) -> None:
    """
    Of any alphabet, or empty, and the epoch that comes with an offset.
    """
    clients.create(topic)
    consumer = clients.consumer(topic)

    for metadata in ("none of it", "größer ☃", ""):
        part = TopicPartition(topic, 1, 7, metadata, 0)
        consumer.commit(offsets=[part], asynchronous=False)
        [found] = consumer.committed([TopicPartition(topic, 1)], PATIENCE)
        assert (7, metadata) == (found.offset, found.metadata)
        assert 0 == found.leader_epoch


def test_commit_may_be_synchronous_or_asynchronous(clients: Clients, topic: str) -> None:
    told: list[tuple[KafkaError | None, dict[tuple[str, int], int]]] = []
    clients.create(topic, 1)
    clients.send(topic, 0, numbered(3))
    consumer = clients.consumer(
        topic, on_commit=lambda error, parts: told.append((error, offsets(parts)))
    )
    consumer.subscribe([topic])
    assert numbered(3) == values(consumer, 3)

    consumer.commit(asynchronous=True)
    eventually(lambda: bool(told), consumer)

    assert [(None, {(topic, 0): 3})] == told
    assert [3] == [part.offset for part in consumer.committed([TopicPartition(topic, 0)], PATIENCE)]
