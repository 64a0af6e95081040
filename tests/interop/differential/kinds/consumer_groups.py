"""
Consumer groups of the consumer protocol (KIP-848), and groups that change between the protocols.

Topics have other ids on each broker, and ``uniform`` walks over ids in the order of their hashes: a
group that asks for it subscribes to one topic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.interop.differential.kinds.group_deeds import Deeds, Odd
from tests.interop.differential.membership import LONG_MS, Member, Pause, describe_groups
from tests.interop.differential.scripts import ACTS, Script
from tests.interop.differential.steps import create_topic

OWNINGS: Final = ("what it has", "nothing", "something else", "nothing said")


@dataclass
class Party(Deeds[Member]):
    assignor: str | None
    instances: dict[str, str] = field(default_factory=dict)
    classic: set[str] = field(default_factory=set)
    has_pattern: bool = False

    def __post_init__(self) -> None:
        self.members = [Member(self.group, f"m{number}") for number in range(4)]

    @property
    def other_topic(self) -> str:
        return f"{self.script.topic}.b"

    def topics(self) -> list[str]:
        chance, topic = self.script.chance, self.script.topic
        if self.assignor == "uniform":
            return chance.choice(([topic], [topic], [topic], [], [topic, f"{topic}.none"]))
        return chance.choice(([topic], [topic, self.other_topic], [self.other_topic], []))

    def settle(self) -> None:
        """
        Wait until patterns are matched, if there are any.
        """
        if self.has_pattern:
            self.script.do(Pause())

    # What members do

    def join(self, member: Member) -> None:
        chance = self.script.chance
        self.classic.discard(member.name)
        regex = None
        if chance.random() < 0.15:
            regex = chance.choice((f"{self.script.topic}.*", f"{self.script.topic}[.]x", ""))
            self.has_pattern |= bool(regex)
        self.script.do(
            member.beat(
                chance.choice((0, 1, 1)) if regex is None else 1,
                joins=True,
                names=self.topics() if regex is None or chance.random() < 0.3 else None,
                regex=regex,
                assignor=self.assignor if chance.random() < 0.8 else None,
                instance=self.instances.get(member.name),
                rack=chance.choice((None, None, "r1")),
                timeout_ms=chance.choice((LONG_MS, 2 * LONG_MS)),
                owns="nothing",
            )
        )
        self.settle()

    def beat(self, member: Member) -> None:
        chance = self.script.chance
        self.script.do(member.beat(owns=chance.choice(("what it has",) * 3 + ("nothing said",))))
        self.settle()

    def change(self, member: Member) -> None:
        self.script.do(member.beat(names=self.topics(), owns="what it has"))
        self.settle()

    def leave(self, member: Member) -> None:
        chance = self.script.chance
        instance = self.instances.get(member.name)
        epoch = -2 if instance is not None and chance.random() < 0.6 else -1
        self.script.do(member.leave(epoch, instance))

    def be_odd(self, member: Member) -> None:
        chance, topic = self.script.chance, self.script.topic
        odd: Odd = (
            lambda: member.beat(ahead=chance.choice((-2, -1, 1, 5)), owns=chance.choice(OWNINGS)),
            lambda: member.beat(epoch=chance.choice((-3, -2, -1, 0, 1, 2**31 - 1))),
            lambda: member.beat(joins=True, names=[topic]),
            lambda: member.beat(joins=True, names=[topic], timeout_ms=1, owns="something else"),
            lambda: member.beat(joins=True, timeout_ms=1, owns="nothing"),
            lambda: member.beat(assignor=chance.choice(("", "sticky", "Range"))),
            lambda: member.beat(regex=chance.choice(("(", "a{1001}", "(?=a)"))),
            lambda: member.beat(instance=chance.choice(("", " ", "i0", "i9"))),
            lambda: member.beat(rack=" "),
            lambda: Member(self.group, "stranger").beat(epoch=chance.choice((1, 3))),
            lambda: Member(self.group, " ").beat(joins=True, names=[topic], timeout_ms=1),
            lambda: Member(" ", "m").beat(joins=True, names=[topic], timeout_ms=1),
            lambda: member.leave(-2),
            lambda: member.be_removed(chance.choice((None, "i0", "i9"))),
            lambda: member.classic_heartbeat(ahead=chance.choice((0, 1))),
            member.sync,
        )
        self.do(chance.choice(odd)())
        self.settle()

    def commit(self, member: Member) -> None:
        chance, script = self.script.chance, self.script
        offsets = {chance.randrange(script.partitions + 1): chance.randrange(100) for _ in range(2)}
        ahead = chance.choice((0, 0, 0, -1, 1))
        # The other topic may not exist, and then it has no id.
        topic, versions = chance.choice(
            (*[(script.topic, (2, 8, 9, 10))] * 3, (self.other_topic, (2, 8, 9)))
        )
        script.do(member.commit(topic, offsets, ahead=ahead, version=chance.choice(versions)))
        script.do(
            member.fetch_offsets(script.topic, script.partitions, ahead=chance.choice((0, 0, 1)))
        )

    # What others do

    def look(self) -> None:
        self.do(describe_groups("consumer", self.asked_groups, self.script.chance.choice((0, 1))))
        super().look()

    def configure(self) -> None:
        self.set_one(
            ("consumer.heartbeat.interval.ms", "6000"),
            ("consumer.heartbeat.interval.ms", "5000"),
            ("consumer.session.timeout.ms", str(LONG_MS)),
            ("consumer.session.timeout.ms", "1"),
            ("consumer.heartbeat.interval.ms", "100000"),
        )

    def replace_other_topic(self) -> None:
        name, chance = self.other_topic, self.script.chance
        if chance.random() < 0.5:
            self.do(create_topic(name, chance.choice((1, 2, 3))), Pause())
        else:
            self.delete_topic(name)


def consumer_groups(script: Script) -> None:
    """
    Four members of the consumer protocol, and what may happen to their group.
    """
    chance = script.chance
    script.create(partitions=chance.choice((1, 2, 3, 5, 8)))
    party = Party(script, f"{script.topic}.g", chance.choice((None, "uniform", "range", "range")))
    if chance.random() < 0.4:
        party.instances = {"m0": "i0", "m1": "i1"}
    by_members = (
        *4 * (party.join,),
        *2 * (party.leave,),
        *2 * (party.change,),
        *3 * (party.be_odd,),
        *2 * (party.commit,),
        *14 * (party.all_beat,),
    )
    by_others = (
        party.grow,
        party.replace_other_topic,
        party.configure,
        party.delete,
        party.delete_offsets,
        party.look,
    )
    script.do(Pause())
    party.play(by_members, by_others)


@dataclass(slots=True)
class Crossing:
    """
    A group that members of the consumer protocol and of the classic one join and leave by turns.
    """

    script: Script
    party: Party
    instance: str | None

    def join(self) -> None:
        new, other = self.party.members[:2]
        member = self.script.chance.choice((new, other))
        self.script.do(
            member.beat(
                joins=True,
                names=[self.script.topic],
                timeout_ms=LONG_MS,
                owns="nothing",
                instance=self.instance if member is new else None,
            )
        )

    def join_as_before(self) -> None:
        chance = self.script.chance
        self.script.do(
            self.party.members[2].join(
                [self.script.topic],
                version=chance.choice((2, 5, 9)),
                protocols=chance.choice((["range"], ["range"], ["roundrobin", "range"], [])),
                owns=chance.random() < 0.7,
                keeps_id=chance.random() < 0.8,
            )
        )

    def leave(self) -> None:
        self.script.do(self.script.chance.choice(self.party.members[:2]).leave())

    def be_replaced(self) -> None:
        """
        A static member of the consumer protocol comes back as a classic one.
        """
        new = self.party.members[0]
        if self.instance is not None:
            self.script.do(new.leave(-2, self.instance))
            self.script.do(new.join([self.script.topic], instance=self.instance, keeps_id=False))

    def be_removed(self) -> None:
        self.script.do(self.party.members[2].be_removed())

    def sync(self) -> None:
        self.script.do(self.party.members[2].sync(ahead=self.script.chance.choice((0, 0, 1))))

    def classic_heartbeat(self) -> None:
        ahead = self.script.chance.choice((0, 0, 0, 1))
        self.script.do(self.party.members[2].classic_heartbeat(ahead=ahead))

    def commit(self) -> None:
        chance = self.script.chance
        member = chance.choice((self.party.members[0], self.party.members[2]))
        self.script.do(member.commit(self.script.topic, {0: chance.randrange(50)}))

    def beat(self) -> None:
        for each in self.party.members[:2]:
            self.script.do(each.beat(owns="what it has"))


def migrations(script: Script) -> None:
    chance = script.chance
    script.create(partitions=chance.choice((1, 2, 3, 5)))
    party = Party(script, f"{script.topic}.g", None)
    crossing = Crossing(script, party, chance.choice((None, None, "i0")))
    acts = (
        *2 * (crossing.join,),
        *2 * (crossing.join_as_before,),
        crossing.leave,
        crossing.be_replaced,
        crossing.be_removed,
        crossing.sync,
        crossing.classic_heartbeat,
        crossing.commit,
        *3 * (crossing.beat,),
        party.look,
    )
    script.do(Pause())
    for act in range(ACTS):
        for _ in range(20):
            chance.choice(acts)()
        party.look()
        if act < ACTS - 1:
            script.next_act()
