"""
Random lives of consumer groups: what must hold at each step, and what comes of them in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from uuid import UUID

import pytest

from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.protocol.errors import FencedMemberEpoch, UnknownMemberId, UnreleasedInstanceId
from tests.support.consumer_groups import (
    REBALANCE_TIMEOUT_MS,
    ConsumerCoordination,
    check_owners,
    consumer_facts,
    told,
)
from tests.support.coordination import GROUP, durable

TOPICS = ("t", "u", "v")
REGEXES = ("t|u", "[uv]", "t.*", "none")
STEPS = 120


class Client:
    """
    A consumer: it owns what it was told to, revokes when it gets to it, and joins again when it is
    fenced.
    """

    def __init__(self, c: ConsumerCoordination, random: Random, name: str) -> None:
        self.c = c
        self.random = random
        self.name = name
        self.instance_id = f"i-{name}" if random.random() < 0.3 else None
        self.epoch = 0
        self.owned: dict[UUID, set[int]] = {}
        self.assigned: dict[UUID, set[int]] = {}
        self.topics: list[str] = []
        self.regex = ""
        self.news = True
        self.is_gone = False
        self.choose()

    def choose(self) -> None:
        self.topics = sorted(self.random.sample(TOPICS, self.random.randrange(4)))
        self.regex = self.random.choice(REGEXES) if self.random.random() < 0.3 else ""
        self.news = True

    def beat(self) -> None:
        is_full = self.epoch == 0 or self.news or self.random.random() < 0.1
        if self.epoch == 0:
            self.owned, self.assigned = {}, {}
        elif self.random.random() < 0.8:
            self.owned = {t: set(p) for t, p in self.assigned.items() if p}
        try:
            answer = self.c.beat(
                self.name,
                self.epoch,
                topics=self.topics if is_full else None,
                regex=self.regex if is_full else None,
                owned=self.owned if is_full or self.random.random() < 0.7 else None,
                timeout_ms=REBALANCE_TIMEOUT_MS if is_full else -1,
                instance_id=self.instance_id,
                assignor=self.random.choice((None, "uniform", "range")) if is_full else None,
            )
        except (UnknownMemberId, FencedMemberEpoch):
            self.epoch, self.news = 0, True
            return
        except UnreleasedInstanceId:
            return
        if self.random.random() < 0.1:
            return  # The answer is lost.
        self.news = False
        self.epoch = answer.member_epoch
        partitions = told(answer)
        if partitions is not None:
            self.assigned = {t: set(p) for t, p in partitions.items()}
            # What is new is owned at once, what is lost when the client gets to it.
            for topic_id, found in self.assigned.items():
                self.owned.setdefault(topic_id, set()).update(found)

    def leave(self) -> None:
        if self.epoch > 0:
            stays = self.instance_id is not None and self.random.random() < 0.5
            with suppress(UnknownMemberId):
                self.c.go(self.name, -2 if stays else -1, instance_id=self.instance_id)
        self.epoch, self.owned, self.assigned, self.news = 0, {}, {}, True


class Life:
    """
    A group whose clients, topics and clock do random things.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.c = ConsumerCoordination(interval_ms=self.random.choice((0, 1000)))
        for name in TOPICS[:2]:
            self.c.create(name, self.random.randrange(1, 6))
        self.clients = [Client(self.c, self.random, f"m{n}") for n in range(5)]

    def step(self) -> None:
        client = self.random.choice(self.clients)
        deeds: list[tuple[int, Callable[[], object]]] = [
            (60, client.beat),
            (4, client.choose),
            (4, client.leave),
            (8, self.c.executor.do),
            (6, lambda: self.c.advance(self.random.choice((200, 1500, 20_000)))),
            (2, self.change_topics),
        ]
        weights = [weight for weight, _ in deeds]
        ((_, deed),) = self.random.choices(deeds, weights)
        deed()

    def change_topics(self) -> None:
        name = self.random.choice(TOPICS)
        known = self.c.topics.get(name)
        if known is None:
            self.c.create(name, self.random.randrange(1, 6))
        elif self.random.random() < 0.3:
            self.c.delete(name)
        else:
            self.c.grow(name, len(known.partitions) + 1)

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.c.state.groups.get(GROUP)
        assert group is None or isinstance(group, ConsumerGroup)
        return group


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_has_two_owners_and_a_replay_gives_the_same_state(seed: int) -> None:
    # A client owns what it was assigned until its heartbeat lists something else.
    life = Life(seed)
    for _ in range(STEPS):
        life.step()

        group = life.group
        if group is not None:
            check_owners(group)
            check_counts(group)
            check_clients(life, group)
    assert consumer_facts(life.c.replayed()) == consumer_facts(life.c.state)
    assert durable(life.c.replayed()) == durable(life.c.state)


@pytest.mark.parametrize("seed", range(40))
def test_every_member_reaches_its_target_assignment(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    for client in life.clients:
        client.random = Random(1)

    for _ in range(60):
        life.c.advance(1000)
        life.c.executor.do()
        for client in life.clients:
            client.beat()

    group = life.group
    assert group is not None
    assert "Stable" == group.state_name, group
    assert {client.name for client in life.clients} == set(group.members)
    owned: dict[tuple[str, int], str] = {}
    for client in life.clients:
        assert life.c.target(client.name) == life.c.assigned(client.name)
        assert life.c.assigned(client.name) == {
            topic_id: sorted(partitions) for topic_id, partitions in client.owned.items()
        }
        for topic_id, partitions in client.owned.items():
            topic = life.c.topics.get_by_id(topic_id)
            assert topic is not None
            assert topic.name in subscribed(life, client)
            owned |= {(topic.name, partition): client.name for partition in partitions}
    wanted = {name for client in life.clients for name in subscribed(life, client)}
    assert set(owned) == {
        (topic.name, partition)
        for topic in life.c.topics
        if topic.name in wanted
        for partition in topic.partitions
    }


def subscribed(life: Life, client: Client) -> set[str]:
    matches = {"t|u": {"t", "u"}, "[uv]": {"u", "v"}, "t.*": {"t"}, "none": set(), "": set()}
    return {*client.topics, *matches[client.regex]}


def check_counts(group: ConsumerGroup) -> None:
    subscriptions = group.subscriptions
    names = [name for member in group.members.values() for name in member.topic_names]
    regexes = [m.topic_regex for m in group.members.values() if m.topic_regex]
    assert dict(subscriptions.names) == {name: names.count(name) for name in names}
    assert dict(subscriptions.regexes) == {regex: regexes.count(regex) for regex in regexes}
    assert set(subscriptions.resolved) <= set(regexes)
    votes = [m.server_assignor for m in group.members.values() if m.server_assignor]
    assert {name: votes.count(name) for name in votes} == dict(group.assignor_votes)
    static = {m.instance_id: m.member_id for m in group.members.values() if m.instance_id}
    assert static == group.static_members
    for member in group.members.values():
        for topic_id, partitions in member.assigned.items():
            assert not partitions.keys() & member.pending_revocation.get(topic_id, {}).keys()
    assert set(group.targets) <= set(group.members)


def check_clients(life: Life, group: ConsumerGroup) -> None:
    for client in life.clients:
        member = group.members.get(client.name)
        if member is None or client.epoch != member.member_epoch:
            continue
        for topic_id, partitions in client.owned.items():
            for partition in partitions:
                owner = group.owners.get(topic_id, {}).get(partition)
                assert owner == client.name, f"{client.name} has {partition} of {owner}"
