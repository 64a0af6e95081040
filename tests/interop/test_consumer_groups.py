"""
Consumer groups (KIP-848) of real clients: members come, go, die and change their protocol.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.interop.clients.base import NewRecord
from tests.interop.committed import group_offsets
from tests.interop.conftest import new_broker
from tests.interop.live_group import PATIENCE, LiveGroup, MemberProcess, java_member
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.prove

SOURCE = Path(__file__).parent / "java" / "Member.java"
SESSION_S = 4.0
QUICK = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(int(SESSION_S * 1000)),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
LIBRARIES = ("confluent-kafka", "Java")


class Member(MemberProcess):
    """
    A member, what it was assigned, and what it has read.
    """

    def __init__(self, library: str, *arguments: str) -> None:
        self.assignments: list[set[str]] = []
        self.read: set[tuple[str, int, int]] = set()
        in_python = [sys.executable, "-m", "tests.interop.consumer_member", *arguments]
        super().__init__(java_member(SOURCE, *arguments) if library == "Java" else in_python)

    @property
    def assigned(self) -> set[str]:
        """
        What it was assigned last.
        """
        return self.assignments[-1] if self.assignments else set()

    def hear(self, words: Sequence[str]) -> None:
        match words:
            case ["assigned", "-"]:
                self.assignments.append(set())
            case ["assigned", listed]:
                self.assignments.append(set(listed.split(",")))
            case ["read", topic, partition, offset]:
                self.read.add((topic, int(partition), int(offset)))


class Group(LiveGroup[Member]):
    """
    Members of one group with one topic, or those of a pattern.
    """

    def __init__(
        self, broker: BrokerProcess, topic: str, partitions: int = 4, library: str = LIBRARIES[0]
    ) -> None:
        super().__init__(broker, topic)
        self.library = library
        self.sent: set[tuple[str, int, int]] = set()
        self._numbers = count()
        self.create(topic, partitions)

    def join(
        self,
        instance: str | None = None,
        *,
        protocol: str = "consumer",
        pattern: str | None = None,
        library: str | None = None,
    ) -> Member:
        """
        Start another member.
        """
        member = Member(
            library or self.library,
            self.broker.bootstrap,
            self.group_id,
            protocol,
            pattern or self.topic,
            instance or "-",
        )
        self.members.append(member)
        return member

    def send(self, topic: str | None = None) -> None:
        """
        Produce three records to each partition.
        """
        topic = topic or self.topic
        records = [
            NewRecord(b"%d" % next(self._numbers), partition=partition)
            for partition in range(self.partition_counts[topic])
            for _ in range(3)
        ]
        for place in self.client.produce(self.broker.bootstrap, topic, records, "none"):
            self.sent.add((topic, place.partition, place.offset))

    def situation(self) -> str:
        unread = sorted(self.sent - self.all_read())[:5]
        return f"{[m.assigned for m in self.members]}, not read: {unread}"

    def wait_for_shares(self, *members: Member, seconds: float = PATIENCE) -> float:
        """
        Wait until these members, and nobody else, share all partitions evenly.
        """
        wanted = {
            f"{topic}:{partition}"
            for topic, partitions in self.partition_counts.items()
            for partition in range(partitions)
        }

        def are_shared() -> bool:
            parts = [member.assigned for member in members]
            sizes = sorted(map(len, parts))
            return (
                sum(sizes) == len(wanted)
                and set().union(*parts) == wanted
                and sizes[-1] - sizes[0] <= 1
            )

        return self.wait_until(are_shared, "shares", seconds)

    def all_read(self) -> set[tuple[str, int, int]]:
        return set().union(*(member.read for member in self.members)) if self.members else set()

    def wait_for_records(self) -> None:
        """
        Wait until all records that were sent are read, nothing else is, and all is committed.
        """
        self.wait_until(lambda: self.all_read() >= self.sent, "records")
        ends = self.ends()
        self.wait_until(lambda: self.committed() == ends, f"committed {ends}")
        assert self.all_read() == self.sent

    def ends(self) -> dict[tuple[str, int], int]:
        ends: dict[tuple[str, int], int] = {}
        for topic, partition, offset in self.sent:
            ends[topic, partition] = max(ends.get((topic, partition), 0), offset + 1)
        return ends

    def committed(self) -> dict[tuple[str, int], int]:
        offsets = group_offsets(self.broker.bootstrap, self.group_id)
        return {place: offset for place, offset in offsets.items() if place in self.ends()}

    def type_and_state(self) -> tuple[str, str] | None:
        """
        As the group is listed; None if it is not.
        """
        groups = self.admin.list_consumer_groups().result(30).valid
        found = {g.group_id: (g.type.name, g.state.name) for g in groups}
        return found.get(self.group_id)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """
    A broker with short timeouts.
    """
    settings = {name.replace(".", "__"): value for name, value in QUICK.items()}
    with new_broker(tmp_path_factory.mktemp("quick"), **settings) as broker:
        yield broker


@pytest.mark.parametrize("library", LIBRARIES)
def test_consumer_group_members_come_and_go(quick: BrokerProcess, library: str) -> None:
    with Group(quick, f"come-and-go-{library}", library=library) as group:
        one = group.join()
        group.send()
        group.wait_for_shares(one)
        other = group.join()
        group.wait_for_shares(one, other)
        group.send()
        group.wait_for_records()

        one.close()
        took = group.wait_for_shares(other)
        group.send()
        group.wait_for_records()

        assert took < SESSION_S
        other.close()
        assert ("CONSUMER", "EMPTY") == group.type_and_state()


@pytest.mark.parametrize("library", LIBRARIES)
def test_killed_member_is_replaced_after_its_session_timeout(
    quick: BrokerProcess, library: str
) -> None:
    with Group(quick, f"killed-{library}", library=library) as group:
        one, other = group.join(), group.join()
        group.wait_for_shares(one, other)

        one.kill()
        group.send()
        group.wait_for_shares(other, seconds=4 * SESSION_S)

        group.wait_for_records()


@pytest.mark.parametrize("library", LIBRARIES)
def test_restarted_static_member_keeps_its_partitions(quick: BrokerProcess, library: str) -> None:
    with Group(quick, f"static-{library}", library=library) as group:
        one, other = group.join("one"), group.join("other")
        group.wait_for_shares(one, other)
        group.send()
        group.wait_for_records()
        had, before = one.assigned, len(other.assignments)

        one.close()
        again = group.join("one")
        group.wait_until(lambda: again.assigned == had, "the partitions from before")
        group.send()
        group.wait_for_records()

        assert before == len(other.assignments)


@pytest.mark.parametrize("way", ["restart", "kill"])
def test_consumer_group_survives_a_broker_restart(tmp_path: Path, way: str) -> None:
    settings = {name.replace(".", "__"): value for name, value in QUICK.items()}
    with new_broker(tmp_path, **settings) as broker, Group(broker, f"outlives-{way}") as group:
        members = [group.join(), group.join(library="Java"), group.join("static")]
        group.wait_for_shares(*members)
        group.send()
        group.wait_for_records()
        before = [len(member.assignments) for member in members]

        if way == "kill":
            broker.kill()
        else:
            broker.stop()
        broker.start()
        group.send()

        group.wait_for_records()
        assert before == [len(member.assignments) for member in members]
        assert ("CONSUMER", "STABLE") == group.type_and_state()


@pytest.mark.parametrize("library", LIBRARIES)
def test_added_partitions_are_read(quick: BrokerProcess, library: str) -> None:
    with Group(quick, f"grows-{library}", 2, library=library) as group:
        one, other = group.join(), group.join()
        group.wait_for_shares(one, other)

        group.grow(6)
        group.wait_for_shares(one, other)
        group.send()

        group.wait_for_records()


def test_recreated_topic_is_read_from_its_beginning(quick: BrokerProcess) -> None:
    with Group(quick, "again", 2) as group:
        member = group.join()
        group.wait_for_shares(member)
        group.send()
        group.wait_for_records()

        group.delete()
        group.wait_until(lambda: not member.assigned, "partitions to be given up")
        group.sent.clear()
        member.read.clear()
        group.create(group.topic, 3)
        group.wait_for_shares(member)
        group.send()

        group.wait_for_records()


@pytest.mark.parametrize("library", LIBRARIES)
def test_pattern_is_matched_by_the_broker(quick: BrokerProcess, library: str) -> None:
    """
    Topics that are created later are found within ten seconds.
    """
    with Group(quick, f"pattern-{library}-1", 2, library=library) as group:
        pattern = f"^pattern-{library}-[0-9]"
        one, other = group.join(pattern=pattern), group.join(pattern=pattern)
        group.wait_for_shares(one, other)

        group.create(f"pattern-{library}-2", 2)
        group.client.create_topic(quick.bootstrap, f"pattern-{library}-x", 2, {})
        group.wait_for_shares(one, other)
        group.send()
        group.send(f"pattern-{library}-2")

        group.wait_for_records()


def test_group_migrates_between_protocols_without_loss(quick: BrokerProcess) -> None:
    """
    Six members are replaced one after the other, there and back again. No record is lost.
    """
    with Group(quick, "migrates", 6) as group:
        members = [group.join(protocol="classic") for _ in range(6)]
        group.wait_for_shares(*members)
        group.send()
        assert ("CLASSIC", "STABLE") == group.type_and_state()

        for protocol, kind in (("consumer", "CONSUMER"), ("classic", "CLASSIC")):
            for number, old in enumerate(members):
                old.close()
                members[number] = group.join(protocol=protocol)
                group.send()
            group.wait_for_shares(*members)
            group.wait_until(
                lambda k=kind: group.type_and_state() == (k, "STABLE"),  # type: ignore[misc]
                kind,
            )
            group.send()
            group.wait_for_records()


def test_static_consumer_is_replaced_by_a_classic_member_and_back(quick: BrokerProcess) -> None:
    with Group(quick, "static-migrates", 4) as group:
        members = [group.join(f"i-{number}", protocol="classic") for number in range(2)]
        group.wait_for_shares(*members)
        for protocol, kind in (("consumer", "CONSUMER"), ("classic", "CLASSIC")):
            for number, old in enumerate(members):
                old.close()
                members[number] = group.join(f"i-{number}", protocol=protocol)
                group.send()
                group.wait_for_shares(*members)
            group.wait_until(
                lambda k=kind: group.type_and_state() == (k, "STABLE"),  # type: ignore[misc]
                kind,
            )
            group.wait_for_records()


def test_live_group_moves_to_apache_kafka_and_back(tmp_path: Path) -> None:
    """
    Its members go on: none joins again, and nothing is lost.
    """
    with BothBrokers.in_turn(tmp_path, QUICK) as both:
        both.barnabas.start()
        with Group(both.barnabas, "moves", 4) as group:
            members = [group.join(), group.join("static")]
            group.wait_for_shares(*members)
            group.send()
            group.wait_for_records()
            before = [len(member.assignments) for member in members]

            for stops, starts in ((both.barnabas, both.kafka), (both.kafka, both.barnabas)):
                stops.stop()
                starts.start()
                group.send()
                group.wait_for_records()

                assert before == [len(member.assignments) for member in members]
                assert ("CONSUMER", "STABLE") == group.type_and_state()
            third = group.join()
            group.wait_for_shares(*members, third)
            group.send()
            group.wait_for_records()
