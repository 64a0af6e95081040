"""
Consumer groups of real clients: members come, go, die and start again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from tests.interop.clients.base import NewRecord
from tests.interop.group_member import LIBRARIES, SESSION_TIMEOUT_MS
from tests.interop.live_group import PATIENCE, LiveGroup, MemberProcess
from tests.support.broker_process import BrokerProcess
from tests.support.some import some

PARTITIONS = 6
ALL = set(range(PARTITIONS))


class Member(MemberProcess):
    """
    A member in a process of its own, and what it has said.
    """

    def __init__(
        self, library: str, broker: BrokerProcess, topic: str, instance: str | None = None
    ) -> None:
        self.assignments: list[set[int]] = []
        self.next_offsets: dict[int, int] = {}
        command = [sys.executable, "-m", "tests.interop.group_member", library, broker.bootstrap]
        super().__init__([*command, topic, topic, *([] if instance is None else [instance])])

    @property
    def assigned(self) -> set[int]:
        """
        What it was assigned last.
        """
        return self.assignments[-1] if self.assignments else set()

    def hear(self, words: Sequence[str]) -> None:
        what, *facts = words
        if what == "assigned":
            listed = facts[0]
            self.assignments.append(set() if listed == "-" else {int(p) for p in listed.split(",")})
        elif what == "seen":
            self.next_offsets[int(facts[2])] = int(facts[0])


class Group(LiveGroup[Member]):
    """
    Members of one group with one topic, of one library.
    """

    def __init__(self, library: str, broker: BrokerProcess, topic: str) -> None:
        super().__init__(broker, topic)
        self.library = library
        self.create(topic, PARTITIONS)
        self._numbers = count()
        self.sent = dict.fromkeys(range(PARTITIONS), 0)

    def join(self, instance: str | None = None) -> Member:
        """
        Start another member.
        """
        member = Member(self.library, self.broker, self.topic, instance)
        self.members.append(member)
        return member

    def send(self) -> None:
        records = [
            NewRecord(b"%d" % next(self._numbers), partition=partition)
            for partition in range(PARTITIONS)
            for _ in range(5)
        ]
        for place in self.client.produce(self.broker.bootstrap, self.topic, records, "none"):
            self.sent[place.partition] = max(self.sent[place.partition], place.offset + 1)

    def situation(self) -> str:
        return f"{[member.assigned for member in self.members]}"

    def wait_for_shares(self, *members: Member, seconds: float = PATIENCE) -> float:
        """
        Wait until these members, and nobody else, share the partitions evenly.
        """
        share = PARTITIONS // len(members)

        def are_shared() -> bool:
            parts = [m.assigned for m in members]
            return all(len(part) == share for part in parts) and set().union(*parts) == ALL

        return self.wait_until(are_shared, "shares", seconds)

    def wait_for_records(self, *members: Member) -> None:
        """
        Wait until these members have read, and committed, all that was sent.
        """

        def are_read() -> bool:
            read: dict[int, int] = {}
            for member in self.members:
                for partition, offset in member.next_offsets.items():
                    read[partition] = max(read.get(partition, 0), offset)
            return read == self.sent

        self.wait_until(are_read, "records", PATIENCE)
        for member in some(members):
            assert member.is_running, "a member has died"


@pytest.fixture(params=LIBRARIES)
def group(request: pytest.FixtureRequest, broker: BrokerProcess, topic: str) -> Iterator[Group]:
    """
    A group without members yet, of each library in turn.
    """
    with Group(request.param, broker, topic) as made:
        yield made


def test_group_members_come_and_go(group: Group) -> None:
    """
    The partitions are shared by whoever is there: two, three, two after one has left, one after
    another was killed. All of them read on where the group has come to.
    """
    a, b = group.join(), group.join()
    group.wait_for_shares(a, b)
    group.send()
    group.wait_for_records(a, b)

    c = group.join()
    group.wait_for_shares(a, b, c)
    group.send()
    group.wait_for_records(a, b, c)

    c.close()
    group.wait_for_shares(a, b)

    b.kill()
    waited = group.wait_for_shares(a)
    assert waited > SESSION_TIMEOUT_MS / 1000 / 2, "a killed member does not say that it goes"
    group.send()
    group.wait_for_records(a)


def test_group_survives_a_broker_restart(group: Group) -> None:
    """
    Stopped or killed: afterwards the same members go on where they were.
    """
    a, b = group.join(), group.join()
    group.wait_for_shares(a, b)
    group.send()
    group.wait_for_records(a, b)

    group.broker.restart()
    group.send()
    group.wait_for_records(a, b)

    group.broker.kill()
    group.broker.start()
    group.send()
    group.wait_for_records(a, b)
    group.wait_for_shares(a, b)


def test_next_member_begins_at_the_committed_offsets(group: Group) -> None:
    """
    All members leave, the broker is restarted, and whoever comes reads only what is new.
    """
    a = group.join()
    group.wait_for_shares(a)
    group.send()
    group.wait_for_records(a)
    a.close()

    group.broker.restart()
    before = dict(group.sent)
    b = group.join()
    group.wait_for_shares(b)
    group.send()
    group.wait_for_records(b)

    assert b.next_offsets == group.sent
    assert all(group.sent[p] == before[p] + 5 for p in ALL)


def test_restarted_static_member_causes_no_rebalance(group: Group) -> None:
    """
    Killed and started again within its session, it gets the same partitions, and the other member
    keeps its own all the time.
    """
    a, b = group.join("instance-a"), group.join("instance-b")
    group.wait_for_shares(a, b)
    share, rounds = b.assigned, len(a.assignments)

    b.kill()
    again = group.join("instance-b")
    group.wait_until(lambda: again.assigned == share, "the same share", SESSION_TIMEOUT_MS / 1000)
    group.send()
    group.wait_for_records(a, again)

    assert rounds == len(a.assignments)
