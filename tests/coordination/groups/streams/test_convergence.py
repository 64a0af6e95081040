"""
Random lives of streams groups: what must hold at each step, and what comes of them in the end.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random

import pytest

from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.protocol.errors import FencedMemberEpoch, InvalidRequest, UnknownMemberId
from tests.support.coordination import GROUP
from tests.support.streams_groups import REBALANCE_TIMEOUT_MS, StreamsCoordination, streams_facts
from tests.support.streams_programs import internal, part, topology

pytestmark = pytest.mark.prove

PROGRAM = topology(
    part("0", ["t"], sinks=["r"], changelogs=[internal("c0")]),
    part("1", ["u"], repartition=[internal("r")], changelogs=[internal("c1")]),
)
STEPS = 150

Tasks = dict[str, set[int]]


class Client:
    """
    A stream thread: it owns what it was told to, closes tasks when it gets to it, and joins again
    when it is fenced.
    """

    def __init__(self, c: StreamsCoordination, random: Random, name: str) -> None:
        self.c = c
        self.random = random
        self.name = name
        self.process = f"p{random.randrange(3)}"
        self.epoch = 0
        self.owned: tuple[Tasks, Tasks] = ({}, {})
        self.assigned: tuple[Tasks, Tasks] = ({}, {})

    def beat(self) -> None:
        is_joining = self.epoch == 0
        if is_joining:
            self.owned = self.assigned = ({}, {})
        elif self.random.random() < 0.8:
            self.owned = self.assigned
        active, standby = self.owned
        says = is_joining or self.random.random() < 0.8
        try:
            answer = self.c.beat(
                self.name,
                self.epoch,
                active=active if says else None,
                standby=standby if says else None,
                topology=PROGRAM if is_joining else None,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_joining else -1,
                process_id=self.process if is_joining else None,
            )
        except (UnknownMemberId, FencedMemberEpoch):
            self.epoch = 0
            return
        except InvalidRequest:
            # Tasks of a topic that has come back with fewer partitions.
            self.epoch, self.owned, self.assigned = 0, ({}, {}), ({}, {})
            return
        if answer.member_epoch > self.epoch and self.random.random() < 0.1:
            return  # The answer is lost.
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None and answer.standby_tasks is not None:
            self.assigned = (
                {each.subtopology_id: set(each.partitions) for each in answer.active_tasks},
                {each.subtopology_id: set(each.partitions) for each in answer.standby_tasks},
            )

    def leave(self) -> None:
        with suppress(UnknownMemberId):
            self.c.go(self.name)
        self.epoch = 0


def check(c: StreamsCoordination, clients: list[Client]) -> None:
    """
    No active task is owned twice, no process has a task twice, and the log says what is known.
    """
    group = c.state.groups.get(GROUP)
    if not isinstance(group, StreamsGroup):
        return
    active: Counter[tuple[str, int]] = Counter()
    in_process: Counter[tuple[str, str, int]] = Counter()
    for member in group.members.values():
        for tasks in (member.assigned, member.pending_revocation):
            for role, of_role in enumerate(tasks.by_role):
                for number, partitions in of_role.items():
                    for each in partitions:
                        active[number, each] += role == 0
                        in_process[member.process_id, number, each] += 1
    assert max(active.values(), default=0) <= 1
    assert max(in_process.values(), default=0) <= 1
    assert {task for task, count in active.items() if count} == set(group.owners.active)
    owned = Counter(
        (number, each)
        for client in clients
        if client.name in group.members and client.epoch == group.members[client.name].member_epoch
        for number, partitions in client.owned[0].items()
        for each in partitions
    )
    assert max(owned.values(), default=0) <= 1
    assert streams_facts(c.state) == streams_facts(c.replayed())


@pytest.mark.parametrize("seed", range(12))
def test_random_streams_group_history_ends_balanced(seed: int) -> None:
    random = Random(seed)
    c = StreamsCoordination(
        group={
            "streams_num_standby_replicas": seed % 3,
            "streams_initial_rebalance_delay_ms": random.choice((0, 3000)),
        }
    )
    c.create("t", random.randrange(1, 5))
    c.create("u", len(c.topics.get("t").partitions))  # type: ignore[union-attr]  # it was made
    clients = [Client(c, random, f"m{number}") for number in range(5)]
    for _ in range(STEPS):
        client = random.choice(clients)
        chance = random.random()
        if chance < 0.05:
            client.leave()
        elif chance < 0.08:
            c.set_options(streams_num_standby_replicas=random.randrange(3))
        elif chance < 0.1:
            c.restart()
        elif chance < 0.15:
            c.advance(random.choice((1000, 20_000)))
        else:
            client.beat()
            c.create_missing()
        check(c, clients)

    for _ in range(12):
        for client in clients:
            client.random = Random(2)  # It does as it is told.
            client.random.random = lambda: 0.5  # type: ignore[method-assign]
            client.beat()
        c.create_missing()
        c.advance(10_000)
        check(c, clients)

    assert "Stable" == c.streams.state_name
    partitions = len(c.topics.get("t").partitions)  # type: ignore[union-attr]  # it was made
    assert {(number, each) for number in "01" for each in range(partitions)} == set(
        c.streams.owners.active
    )
    for client in clients:
        active = c.member(client.name).assigned.active
        assert {number: set(tasks) for number, tasks in active.items()} == client.owned[0]
