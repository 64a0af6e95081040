"""
Share groups (KIP-932): their members, the states of their partitions, and their offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.interop.differential.kinds.consumer_groups import set_group_config
from tests.interop.differential.membership import Pause, describe_consumer_groups, describe_groups
from tests.interop.differential.scripts import ACTS, Script
from tests.interop.differential.share_membership import (
    ShareMember,
    alter_share_offsets,
    delete_share_offsets,
    describe_share_groups,
    describe_share_offsets,
)
from tests.interop.differential.steps import Ask

MEMBERS: Final = 4
DEEDS: Final = 22
SECONDS_OF_STATES: Final = 0.6
"""Longer than it takes a busy broker to initialize the states of partitions."""


@dataclass(slots=True)
class Crowd:
    """
    The members of one share group, and what they do.
    """

    script: Script
    group: str
    are_different: bool
    """Whether members may subscribe to different topics."""
    members: list[ShareMember] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.members = [ShareMember(self.group, f"m{number}") for number in range(MEMBERS)]

    def topics(self) -> list[str]:
        """
        Something to subscribe to. Topics have other ids on each broker, and by their hashes the
        assignor chooses who gets more partitions if members subscribe to different topics.
        """
        topic = self.script.topic
        if not self.are_different:
            return [topic]
        return self.script.chance.choice(([topic], [topic], [topic, f"{topic}.none"]))

    def settle(self) -> None:
        """
        Wait until states are initialized, if any have to be.
        """
        self.script.do(Pause(SECONDS_OF_STATES))

    # What members do

    def join(self, member: ShareMember) -> None:
        rack = self.script.chance.choice((None, None, "r1"))
        self.script.do(member.beat(joins=True, names=self.topics(), rack=rack))
        self.settle()

    def all_beat(self, _member: ShareMember) -> None:
        for member in self.members:
            self.script.do(member.beat())

    def change(self, member: ShareMember) -> None:
        self.script.do(member.beat(names=self.topics()))
        self.settle()

    def leave(self, member: ShareMember) -> None:
        self.script.do(member.leave())

    def be_odd(self, member: ShareMember) -> None:
        """
        Do what is not expected.
        """
        chance, topic = self.script.chance, self.script.topic
        odd: tuple[Callable[[], None], ...] = (
            lambda: self.script.do(member.beat(ahead=chance.choice((-2, -1, 1, 5)))),
            lambda: self.script.do(member.beat(epoch=chance.choice((-3, -2, 1, 2**31 - 1)))),
            lambda: self.script.do(member.beat(joins=True)),
            lambda: self.script.do(member.beat(joins=True, names=[])),
            lambda: self.script.do(member.beat(names=[])),
            lambda: self.script.do(member.beat(rack=" ")),
            lambda: self.script.do(ShareMember(self.group, "stranger").beat(epoch=3)),
            lambda: self.script.do(ShareMember(self.group, "stranger").leave()),
            lambda: self.script.do(ShareMember(self.group, " ").beat(joins=True, names=[topic])),
            lambda: self.script.do(ShareMember(self.group, "m" * 37).beat(joins=True, names=["t"])),
            lambda: self.script.do(ShareMember(" ", "m").beat(joins=True, names=[topic])),
        )
        chance.choice(odd)()
        self.settle()

    # What others do

    def look(self) -> None:
        script, groups = self.script, [self.group, f"{self.group}.none", ""]
        script.do(describe_share_groups(groups))
        script.do(describe_share_offsets(groups[:2], script.chance.choice((0, 1))))
        script.do(describe_groups(groups, 6))
        script.do(describe_consumer_groups(groups, 1))

    def configure(self) -> None:
        name, value = self.script.chance.choice(
            (
                ("share.heartbeat.interval.ms", "6000"),
                ("share.heartbeat.interval.ms", "5000"),
                ("share.session.timeout.ms", "1"),
                ("share.heartbeat.interval.ms", "100000"),
            )
        )
        set_group_config(self.script, self.group, name, value)

    def begin_elsewhere(self) -> None:
        chance, script = self.script.chance, self.script
        offsets = {chance.randrange(script.partitions + 1): chance.randrange(100) for _ in range(2)}
        topic = chance.choice((script.topic, script.topic, f"{script.topic}.none"))
        script.do(alter_share_offsets(self.group, topic, offsets))
        self.settle()

    def forget(self) -> None:
        topics = self.script.chance.choice(([self.script.topic], [f"{self.script.topic}.none"]))
        self.script.do(delete_share_offsets(self.group, topics))
        self.settle()

    def delete(self) -> None:
        request = DeleteGroupsRequest(groups_names=[self.group])
        self.script.do(Ask(f"delete {self.group}", 2, lambda _: request))
        self.settle()

    def all_leave(self) -> None:
        for member in self.members:
            self.script.do(member.leave())

    def grow(self) -> None:
        if self.are_different:
            return
        self.script.create_partitions(self.script.partitions + 1)
        self.script.do(Pause(SECONDS_OF_STATES))
        for member in self.members:
            self.script.do(member.beat())
            self.settle()


def share_groups(script: Script) -> None:
    """
    Four members of a share group, and what may happen to it.
    """
    chance = script.chance
    script.create(partitions=chance.choice((1, 2, 3, 5)))
    crowd = Crowd(script, f"{script.topic}.g", script.partitions == 1)
    by_members = (
        *4 * (crowd.join,),
        *2 * (crowd.leave,),
        crowd.change,
        *2 * (crowd.be_odd,),
        *8 * (crowd.all_beat,),
    )
    by_others = (
        crowd.grow,
        crowd.configure,
        *2 * (crowd.begin_elsewhere,),
        crowd.forget,
        crowd.delete,
        crowd.all_leave,
        crowd.look,
    )
    script.do(Pause(SECONDS_OF_STATES))
    for act in range(ACTS):
        for _ in range(DEEDS):
            if chance.random() < 0.3:
                chance.choice(by_others)()
            else:
                chance.choice(by_members)(chance.choice(crowd.members))
        crowd.look()
        if act < ACTS - 1:
            script.next_act()
