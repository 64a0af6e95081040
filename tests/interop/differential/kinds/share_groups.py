"""
Share groups (KIP-932): their members, the states of their partitions, and their offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.interop.differential.kinds.group_deeds import Deeds, Odd
from tests.interop.differential.membership import Pause, describe_groups
from tests.interop.differential.scripts import Script
from tests.interop.differential.share_membership import (
    ShareMember,
    alter_share_offsets,
    delete_share_offsets,
    describe_share_offsets,
)

MEMBERS: Final = 4
DEEDS: Final = 22
SECONDS_OF_STATES: Final = 0.6
"""Longer than it takes a busy broker to initialize the states of partitions."""


@dataclass
class Crowd(Deeds[ShareMember]):
    are_different: bool
    """Whether members may subscribe to different topics."""

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
        self.do(Pause(SECONDS_OF_STATES))

    # What members do

    def join(self, member: ShareMember) -> None:
        rack = self.script.chance.choice((None, None, "r1"))
        self.do(member.beat(joins=True, names=self.topics(), rack=rack))
        self.settle()

    def beat(self, member: ShareMember) -> None:
        self.do(member.beat())

    def change(self, member: ShareMember) -> None:
        self.do(member.beat(names=self.topics()))
        self.settle()

    def leave(self, member: ShareMember) -> None:
        self.do(member.leave())

    def be_odd(self, member: ShareMember) -> None:
        chance, topic = self.script.chance, self.script.topic
        odd: Odd = (
            lambda: member.beat(ahead=chance.choice((-2, -1, 1, 5))),
            lambda: member.beat(epoch=chance.choice((-3, -2, 1, 2**31 - 1))),
            lambda: member.beat(joins=True),
            lambda: member.beat(joins=True, names=[]),
            lambda: member.beat(names=[]),
            lambda: member.beat(rack=" "),
            lambda: ShareMember(self.group, "stranger").beat(epoch=3),
            lambda: ShareMember(self.group, "stranger").leave(),
            lambda: ShareMember(self.group, " ").beat(joins=True, names=[topic]),
            lambda: ShareMember(self.group, "m" * 37).beat(joins=True, names=["t"]),
            lambda: ShareMember(" ", "m").beat(joins=True, names=[topic]),
        )
        self.do(chance.choice(odd)())
        self.settle()

    # What others do

    def look(self) -> None:
        groups = self.asked_groups
        self.do(
            describe_groups("share", groups, 1),
            describe_share_offsets(groups[:2], self.script.chance.choice((0, 1))),
            describe_groups("", groups, 6),
            describe_groups("consumer", groups, 1),
        )

    def configure(self) -> None:
        self.set_one(
            ("share.heartbeat.interval.ms", "6000"),
            ("share.heartbeat.interval.ms", "5000"),
            ("share.session.timeout.ms", "1"),
            ("share.heartbeat.interval.ms", "100000"),
        )

    def begin_elsewhere(self) -> None:
        chance, script = self.script.chance, self.script
        offsets = {chance.randrange(script.partitions + 1): chance.randrange(100) for _ in range(2)}
        topic = chance.choice((script.topic, script.topic, f"{script.topic}.none"))
        script.do(alter_share_offsets(self.group, topic, offsets))
        self.settle()

    def forget(self) -> None:
        topics = self.script.chance.choice(([self.script.topic], [f"{self.script.topic}.none"]))
        self.do(delete_share_offsets(self.group, topics))
        self.settle()

    def delete(self) -> None:
        super().delete()
        self.settle()

    def all_leave(self) -> None:
        for member in self.members:
            self.do(member.leave())

    def grow(self, seconds: float = SECONDS_OF_STATES) -> None:
        if self.are_different:
            return
        super().grow(seconds)
        for member in self.members:
            self.do(member.beat())
            self.settle()


def share_groups(script: Script) -> None:
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
    crowd.play(by_members, by_others, count=DEEDS, of_others=0.3)
