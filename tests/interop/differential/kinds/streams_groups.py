"""
Streams groups (KIP-1071), whose programs need topics of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from barnabas.protocol.messages.streams_group_heartbeat import Subtopology, Topology
from tests.interop.differential.kinds.group_deeds import Deeds, Odd
from tests.interop.differential.membership import LONG_MS, Member, Pause, describe_groups
from tests.interop.differential.scripts import Script
from tests.interop.differential.steps import Ready, create_topic
from tests.interop.differential.streams_membership import StreamsMember, internal_names
from tests.support.streams_programs import internal, part

SECONDS_OF_CONFIGS: Final = 1.0
"""Longer than it takes a broker to learn of a group's configuration."""
OWNINGS: Final = ("what it has", "nothing", "something else", "one kind", "nothing said")


@dataclass(slots=True)
class Program:
    """
    The program of a group, with the names of its topics.
    """

    script: Script
    group: str
    epoch: int
    subtopologies: list[Subtopology] = field(default_factory=list)

    def __post_init__(self) -> None:
        shapes = (
            self._stateless,
            self._counting,
            self._counting,
            self._repartitioned,
            self._repartitioned,
            self._joined,
            self._joined_with_repartitioned,
            self._of_two_parts,
            self._of_two_parts,
            self._in_a_chain,
            self._looping,
            self._never_sent,
            self._without_sources,
        )
        self.subtopologies = self.script.chance.choice(shapes)()

    @property
    def topology(self) -> Topology:
        return Topology(epoch=self.epoch, subtopologies=self.subtopologies)

    @property
    def internal(self) -> list[str]:
        return internal_names(self.topology)

    @property
    def source(self) -> str:
        return self.script.topic

    @property
    def other(self) -> str:
        return f"{self.script.topic}.b"

    def _named(self, name: str) -> str:
        return f"{self.group}-{name}"

    def _some_count(self) -> int:
        """
        How many partitions a repartition topic is to have; mostly that is left open.
        """
        return self.script.chance.choice((0, 0, 0, 1, 2, 3, 5))

    def _stateless(self) -> list[Subtopology]:
        return [part("0", [self.source])]

    def _counting(self) -> list[Subtopology]:
        chance = self.script.chance
        odd = chance.choice((None, None, None, None, "value", "factor"))
        changelog = internal(
            self._named("count-changelog"),
            replication_factor=3 if odd == "factor" else chance.choice((0, 0, 1)),
            cleanup_policy="nonsense" if odd == "value" else "compact",
            segment_bytes="1048576",
        )
        return [part("0", [self.source], changelogs=[changelog])]

    def _repartitioned(self) -> list[Subtopology]:
        topic = internal(self._named("agg-repartition"), self._some_count(), retention_ms="-1")
        changelog = internal(self._named("agg-changelog"), cleanup_policy="compact")
        parts = [
            part("0", [self.source], sinks=[topic.name]),
            part("1", repartition=[topic], changelogs=[changelog], copartition=[((), (0,))]),
        ]
        self.script.chance.shuffle(parts)
        return parts

    def _joined(self) -> list[Subtopology]:
        changelogs = [
            internal(self._named(f"{side}-changelog"), cleanup_policy="compact")
            for side in ("left", "right")
        ]
        sources = [self.source, self.other]
        return [
            part("0", sources, changelogs=changelogs, copartition=[((0, 1), ())]),
        ]

    def _joined_with_repartitioned(self) -> list[Subtopology]:
        topic = internal(self._named("map-repartition"), self._some_count())
        return [
            part("0", [self.source], sinks=[topic.name]),
            part("1", [self.other], repartition=[topic], copartition=[((0,), (0,))]),
        ]

    def _of_two_parts(self) -> list[Subtopology]:
        changelog = internal(self._named("b-changelog"), cleanup_policy="compact")
        return [
            part("0", [self.source]),
            part("1", [self.other], changelogs=[changelog]),
        ]

    def _in_a_chain(self) -> list[Subtopology]:
        first, second, third = (
            internal(self._named(f"{number}-repartition"), self._some_count())
            for number in range(3)
        )
        changelog = internal(self._named("last-changelog"))
        return [
            part("0", [self.source], sinks=[first.name, third.name]),
            part("1", repartition=[first], sinks=[second.name]),
            part(
                "2",
                repartition=[second, third],
                changelogs=[changelog],
                copartition=[((), (0, 1))],
            ),
        ]

    def _looping(self) -> list[Subtopology]:
        one, other = (internal(self._named(f"{name}-repartition")) for name in ("a", "b"))
        return [
            part("0", repartition=[one], sinks=[other.name]),
            part("1", repartition=[other], sinks=[one.name]),
        ]

    def _never_sent(self) -> list[Subtopology]:
        topic = internal(self._named("lost-repartition"))
        return [part("0", [self.source], repartition=[topic])]

    def _without_sources(self) -> list[Subtopology]:
        return [part("0", [self.source]), part("1")]


@dataclass
class Application(Deeds[StreamsMember]):
    program: Program
    has_endpoints: bool
    processes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.members = [StreamsMember(self.group, f"m{number}") for number in range(4)]
        # A member does not move to another process: Kafka then forgets what the first one has.
        self.processes = {
            member.name: self.script.chance.choice(("p0", "p1", "p1", "p2", f"p-{member.name}"))
            for member in self.members
        }

    # What members do

    def join(self, member: StreamsMember) -> None:
        chance = self.script.chance
        self.do(
            member.pulse(
                topology=self.program.topology,
                owns="nothing",
                timeout_ms=chance.choice((LONG_MS, 2 * LONG_MS)),
                process=self.processes[member.name],
                rack=chance.choice((None, None, "r1")),
                endpoint=chance.choice((None, 80, 81)) if self.has_endpoints else None,
                tags=chance.choice((None, (), (("zone", "a"), ("cell", "b")))),
                internal=self.program.internal,
            )
        )

    def beat(self, member: StreamsMember) -> None:
        owns = self.script.chance.choice(("what it has",) * 3 + ("nothing said",))
        self.do(member.pulse(owns=owns, internal=self.program.internal))

    def change(self, member: StreamsMember) -> None:
        """
        Say something else about oneself.
        """
        chance = self.script.chance
        self.do(
            member.pulse(
                owns="what it has",
                process=chance.choice((None, self.processes[member.name])),
                rack=chance.choice((None, "r2")),
                timeout_ms=chance.choice((-1, 3 * LONG_MS)),
                endpoint=82 if self.has_endpoints and chance.random() < 0.5 else None,
                tags=chance.choice((None, (("zone", "c"),))),
                internal=self.program.internal,
            )
        )

    def leave(self, member: StreamsMember) -> None:
        self.do(member.go(shuts_down=self.script.chance.random() < 0.1))

    def shut_down(self, member: StreamsMember) -> None:
        self.do(member.pulse(owns="what it has", shuts_down=True))

    def be_odd(self, member: StreamsMember) -> None:
        chance = self.script.chance
        topology, internal = self.program.topology, self.program.internal
        stale = Topology(epoch=max(topology.epoch - 1, 0), subtopologies=topology.subtopologies)
        newer = Topology(epoch=topology.epoch + 1, subtopologies=topology.subtopologies)
        others = Topology(epoch=topology.epoch, subtopologies=[part("0", [self.program.source])])
        odd: Odd = (
            lambda: member.pulse(ahead=chance.choice((-2, -1, 1, 5)), owns=chance.choice(OWNINGS)),
            lambda: member.pulse(ahead=-1, owns="what it has", internal=internal),
            lambda: member.pulse(epoch=chance.choice((-3, -2, -1, 0, 1, 2**31 - 1))),
            lambda: member.pulse(
                topology=chance.choice((stale, newer, others)),
                timeout_ms=LONG_MS,
                owns="nothing",
                process=self.processes[member.name],
                internal=internal,
            ),
            lambda: member.pulse(topology=topology, owns="nothing"),
            lambda: member.pulse(topology=topology, timeout_ms=1, owns="something else"),
            lambda: member.pulse(topology=topology, epoch=1, timeout_ms=1),
            lambda: member.pulse(topology=self._broken(), timeout_ms=1, owns="nothing"),
            lambda: member.pulse(owns=chance.choice(OWNINGS), internal=internal),
            lambda: member.pulse(instance=chance.choice(("", "i0"))),
            lambda: member.pulse(rack=" "),
            lambda: member.pulse(tags=(("a", "1"), ("a", "2"))),
            lambda: member.pulse(knows_endpoints=False, internal=internal),
            lambda: StreamsMember(self.group, "stranger").pulse(epoch=chance.choice((1, 3))),
            lambda: StreamsMember(self.group, "stranger").go(shuts_down=True),
            lambda: StreamsMember(self.group, " ").pulse(topology=topology, timeout_ms=1),
            lambda: StreamsMember(" ", "m").pulse(topology=topology, timeout_ms=1),
            lambda: StreamsMember(f"{self.group}.no", "m").pulse(epoch=1),
            lambda: StreamsMember(f"{self.group}.no", "m").go(),
            lambda: member.beat(joins=True, names=[self.program.source], timeout_ms=1),
            member.classic_heartbeat,
        )
        self.do(chance.choice(odd)())

    def _broken(self) -> Topology:
        """
        A topology that no group takes.
        """
        chance, epoch = self.script.chance, self.program.epoch
        source = self.program.source
        changelog = internal(f"{self.group}-x-changelog", 3)
        repartition = internal(f"{self.group}-x-repartition")
        parts: list[Subtopology] = chance.choice(
            (
                [part("0", [source], changelogs=[changelog])],
                [part("0", ["__consumer_offsets"])],
                [part("0", ["a b", "c/d"])],
                [part("0", patterns=["a.*"])],
                [part("0", [source]), part("0", [source])],
                [part("0", [source], copartition=[((3,), ())])],
                [part("0", [source], copartition=[((-1,), ())])],
                [part("0", repartition=[repartition])],
                [part("0", [f"{source}.none", f"{source}.x", f"{source}.y", "z"])],
                [],
            )
        )
        return Topology(epoch=chance.choice((epoch, epoch, -1)), subtopologies=parts)

    def commit(self, member: StreamsMember) -> None:
        chance, script = self.script.chance, self.script
        topic = chance.choice((script.topic, script.topic, self.program.other))
        offsets = {chance.randrange(2): chance.randrange(100) for _ in range(2)}
        version = chance.choice((8, 9, 9))
        ahead = chance.choice((0, 0, -1, -1, 1))
        # Without members there is no group that offsets could be the only trace of.
        script.do(member.commit(topic, offsets, ahead=ahead, version=version, least=0))
        script.do(
            member.fetch_offsets(script.topic, script.partitions, ahead=chance.choice((0, 0, 1)))
        )

    def join_as_classic(self, _member: StreamsMember) -> None:
        """
        Join by the classic protocol, which only an empty group allows, and leave again.
        """
        member = Member(self.group, "classic")
        # With the id of no member Kafka would lose the records of the group (lost-tombstones).
        self.do(member.join([self.script.topic], keeps_id=False, version=5, instance="c0"))
        self.do(member.be_removed("c0"))

    # What others do

    def look(self) -> None:
        self.do(describe_groups("streams", self.asked_groups, 0))
        super().look()

    def configure(self) -> None:
        self.set_one(
            ("streams.heartbeat.interval.ms", "6000"),
            ("streams.session.timeout.ms", str(LONG_MS)),
            ("streams.session.timeout.ms", "1"),
            ("streams.num.standby.replicas", "0"),
            ("streams.num.standby.replicas", "1"),
            ("streams.num.standby.replicas", "2"),
            ("streams.num.standby.replicas", "3"),
            seconds=SECONDS_OF_CONFIGS,
        )

    def create_other_topic(self) -> None:
        partitions, name = self.script.partitions, self.program.other
        if not self.has_endpoints:
            partitions = self.script.chance.choice((partitions, 1, 2, 3))
        self.do(create_topic(name, partitions), Ready(name, 1), Pause())

    def delete_a_topic(self) -> None:
        name = self.script.chance.choice((self.program.other, *self.program.internal))
        self.delete_topic(name, SECONDS_OF_CONFIGS)


def streams_groups(script: Script) -> None:
    """
    Four members of a program, and what may happen to their group.
    """
    chance = script.chance
    script.create(partitions=chance.choice((1, 2, 3, 5, 8)))
    group = f"{script.topic}.g"
    program = Program(script, group, chance.choice((0, 0, 3)))
    has_endpoints = chance.random() < 0.4
    application = Application(script, group, program, has_endpoints)
    script.do(Pause(SECONDS_OF_CONFIGS))
    if has_endpoints or chance.random() < 0.8:
        application.create_other_topic()
    if chance.random() < 0.5:
        application.set(
            "streams.num.standby.replicas", chance.choice(("1", "2")), SECONDS_OF_CONFIGS
        )
    if chance.random() < 0.1:
        # It is not over before the workload is.
        application.set("streams.initial.rebalance.delay.ms", "600000", SECONDS_OF_CONFIGS)
    by_members = (
        *4 * (application.join,),
        *2 * (application.leave,),
        *2 * (application.change,),
        *3 * (application.be_odd,),
        *2 * (application.commit,),
        application.join_as_classic,
        application.shut_down,
        *14 * (application.all_beat,),
    )
    by_others = (
        application.create_other_topic,
        application.configure,
        application.delete,
        application.delete_offsets,
        application.look,
        # Kafka fails where a member has an endpoint and the program no tasks.
        *(() if has_endpoints else (application.grow, application.delete_a_topic)),
    )
    application.play(by_members, by_others)
