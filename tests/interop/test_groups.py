"""
Consumer groups of real clients, with the classic protocol and with that of KIP-848: members come,
go, die and change their protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import new_broker
from tests.interop.group_member import SESSION_TIMEOUT_MS
from tests.interop.live_group import ReadingGroup
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess

SESSION_S = SESSION_TIMEOUT_MS / 1000
QUICK = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
LIBRARIES = ("confluent-kafka", "Java")
GROUPS = [
    ("kafka-python", "classic"),
    ("confluent-kafka", "classic"),
    ("aiokafka", "classic"),
    pytest.param(("Java", "classic"), marks=pytest.mark.prove),
    *(pytest.param((library, "consumer"), marks=pytest.mark.prove) for library in LIBRARIES),
]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """
    A broker with short timeouts, which tests may restart.
    """
    with new_broker(tmp_path_factory.mktemp("quick"), QUICK) as broker:
        yield broker


@pytest.fixture(params=GROUPS, ids="-".join)
def group(
    request: pytest.FixtureRequest, quick: BrokerProcess, topic: str
) -> Iterator[ReadingGroup]:
    """
    A group without members yet, of each library and protocol in turn.
    """
    library, protocol = request.param
    with ReadingGroup(quick, topic, library=library, protocol=protocol) as made:
        yield made


def test_group_members_come_and_go(group: ReadingGroup) -> None:
    """
    The members that are there share the partitions; a killed one is missed after its session.
    """
    a, b = group.join(), group.join()
    group.wait_for_shares(a, b)
    group.send_and_wait()

    c = group.join()
    group.wait_for_shares(a, b, c)
    group.send_and_wait()

    c.close()
    took = group.wait_for_shares(a, b)
    assert took < SESSION_S, "a member that leaves says so"

    b.kill()
    took = group.wait_for_shares(a, seconds=4 * SESSION_S)
    assert took > SESSION_S / 2, "a killed member does not say that it goes"
    group.send_and_wait()

    a.close()
    assert (group.protocol.upper(), "EMPTY") == group.type_and_state()


def test_group_survives_a_broker_restart(group: ReadingGroup) -> None:
    """
    Members of the newer protocol keep their partitions all the time.
    """
    members = [group.join(), group.join("static")]
    group.wait_for_shares(*members)
    group.send_and_wait()
    before = [len(member.assignments) for member in members]

    group.broker.restart()
    group.send_and_wait()
    group.broker.kill()
    group.broker.start()
    group.send_and_wait()

    group.wait_for_shares(*members)
    if group.protocol == "consumer":
        assert before == [len(member.assignments) for member in members]
        assert ("CONSUMER", "STABLE") == group.type_and_state()


def test_next_member_begins_at_the_committed_offsets(group: ReadingGroup) -> None:
    """
    The broker is restarted while the group has no members.
    """
    first = group.join()
    group.wait_for_shares(first)
    group.send_and_wait()
    first.close()

    group.broker.restart()
    second = group.join()
    group.wait_for_shares(second)
    group.send_and_wait()

    assert not first.read & second.read


def test_restarted_static_member_causes_no_rebalance(group: ReadingGroup) -> None:
    """
    Within its session it gets the same partitions, and the other member keeps its own.
    """
    one, other = group.join("one"), group.join("other")
    group.wait_for_shares(one, other)
    group.send_and_wait()
    had, before = one.assigned, len(other.assignments)

    # The newer protocol lets nobody have the name before the session of a killed member is over.
    (one.kill if group.protocol == "classic" else one.close)()
    again = group.join("one")
    group.wait_until(lambda: again.assigned == had, "the partitions from before", SESSION_S)
    group.send_and_wait()

    assert before == len(other.assignments)


@pytest.mark.prove
@pytest.mark.parametrize("library", LIBRARIES)
def test_added_partitions_are_read(quick: BrokerProcess, library: str) -> None:
    with ReadingGroup(quick, f"grows-{library}", 2, library=library) as group:
        one, other = group.join(), group.join()
        group.wait_for_shares(one, other)

        group.grow(6)
        group.wait_for_shares(one, other)
        group.send_and_wait()


@pytest.mark.prove
def test_recreated_topic_is_read_from_its_beginning(quick: BrokerProcess) -> None:
    with ReadingGroup(quick, "again", 2) as group:
        member = group.join()
        group.wait_for_shares(member)
        group.send_and_wait()

        group.delete()
        group.wait_until(lambda: not member.assigned, "partitions to be given up")
        group.sent.clear()
        member.read.clear()
        group.create(group.topic, 3)
        group.wait_for_shares(member)
        group.send_and_wait()


@pytest.mark.prove
@pytest.mark.parametrize("library", LIBRARIES)
def test_pattern_is_matched_by_the_broker(quick: BrokerProcess, library: str) -> None:
    """
    Topics that are created later are found within ten seconds.
    """
    with ReadingGroup(quick, f"pattern-{library}-1", 2, library=library) as group:
        pattern = f"^pattern-{library}-[0-9]"
        one, other = group.join(pattern=pattern), group.join(pattern=pattern)
        group.wait_for_shares(one, other)

        group.create(f"pattern-{library}-2", 2)
        group.client.create_topic(quick.bootstrap, f"pattern-{library}-x", 2, {})
        group.wait_for_shares(one, other)
        group.send()
        group.send(f"pattern-{library}-2")

        group.wait_for_records()


@pytest.mark.prove
@pytest.mark.parametrize(
    "instances", [[None] * 6, ["i-0", "i-1"]], ids=["dynamic members", "static members"]
)
def test_group_migrates_between_protocols_without_loss(
    quick: BrokerProcess, instances: list[str | None]
) -> None:
    """
    Its members are replaced one after the other, there and back again. No record is lost.
    """
    with ReadingGroup(quick, f"migrates-{len(instances)}", 6) as group:
        members = [group.join(instance, protocol="classic") for instance in instances]
        group.wait_for_shares(*members)
        group.send()
        assert ("CLASSIC", "STABLE") == group.type_and_state()

        for protocol, kind in (("consumer", "CONSUMER"), ("classic", "CLASSIC")):
            for number, old in enumerate(members):
                old.close()
                members[number] = group.join(instances[number], protocol=protocol)
                group.send()
                if instances[number] is not None:
                    group.wait_for_shares(*members)
            group.wait_for_shares(*members)
            group.wait_until(
                lambda k=kind: group.type_and_state() == (k, "STABLE"),  # type: ignore[misc]
                kind,
            )
            group.send_and_wait()


@pytest.mark.prove
def test_live_group_moves_to_apache_kafka_and_back(tmp_path: Path) -> None:
    """
    Its members go on: none joins again, and nothing is lost.
    """
    with BothBrokers.in_turn(tmp_path, QUICK) as both:
        both.barnabas.start()
        with ReadingGroup(both.barnabas, "moves", 4) as group:
            members = [group.join(), group.join("static")]
            group.wait_for_shares(*members)
            group.send_and_wait()
            before = [len(member.assignments) for member in members]

            for stops, starts in ((both.barnabas, both.kafka), (both.kafka, both.barnabas)):
                stops.stop()
                starts.start()
                group.send_and_wait()

                assert before == [len(member.assignments) for member in members]
                assert ("CONSUMER", "STABLE") == group.type_and_state()
            third = group.join()
            group.wait_for_shares(*members, third)
            group.send_and_wait()
