"""
Transactions that a coordinator knows of, in the first protocol, in the second, and in both at once:
side by side, aborted, left open over a stop and over a kill, fenced, and what is no transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.interop.differential.kinds.appends import batch
from tests.interop.differential.looking import (
    TRANSACTIONS,
    Ended,
    describe_producers,
    describe_transactions,
    fetch_offsets,
    find_coordinator,
    list_transactions,
)
from tests.interop.differential.recipes import Batch
from tests.interop.differential.scripts import ACTS, HOUR_MS, MINUTE_MS, Script
from tests.interop.differential.transacting import HONEST, Guise, Initialize, Transacting

FIRST: Final = 1
SECOND: Final = 2
VERSIONS: Final = {
    FIRST: {
        "produce": (3, 7, 9, 10, 11),
        "add": (0, 1, 2, 3),
        "add_offsets": (0, 1, 2, 3),
        "commit": (0, 2, 3, 4),
        "end": (0, 1, 2, 3, 4),
    },
    SECOND: {
        "produce": (12, 13),
        "add": (3,),
        "add_offsets": (4,),
        "commit": (5,),
        "end": (5,),
    },
}
INIT_VERSIONS: Final = (0, 1, 2, 3, 4, 5)
GUISES: Final = (
    Guise(epoch=-1),
    Guise(epoch=1),
    Guise(epoch=-1),
    Guise(id=1),
    Guise(id=1_000_000),
    Guise(sequence=1),
    Guise(sequence=-1),
)
STATES: Final = ("Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "PrepareAbort", "Sleeping")
EPOCHS_A_START: Final = 2
LONGEST_MS: Final = 15 * MINUTE_MS
"""The longest timeout that there is: no transaction shall end by time that is not meant to."""


@dataclass(slots=True)
class Player:
    """
    A producer, and what it does next.

    Args:
        protocols: those that it may speak: each transaction in one of them.
    """

    script: Script
    number: int
    protocols: tuple[int, ...]
    second: bool = False
    """Whether it is the second producer with this transactional id."""
    protocol: int = FIRST
    added: set[int] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    is_open: bool = False

    @property
    def name(self) -> str:
        """
        The transactional id; everything of a workload begins with its topic and a dot.
        """
        return f"{self.script.topic}.t{self.number}"

    @property
    def who(self) -> str:
        return f"{self.name}{'-again' if self.second else ''}"

    @property
    def does(self) -> Transacting:
        return Transacting(self.script.topic, self.name, self.who)

    def version(self, api: str) -> int:
        return self.script.chance.choice(VERSIONS[self.protocol][api])

    def settle(self) -> None:
        """
        Wait until nothing goes on behind the scenes.
        """
        self.script.do(Ended(self.name))

    def initialize(self, expected: Guise | None = None, timeout_ms: int = LONGEST_MS) -> None:
        """
        Ask for a producer id. What is open is aborted by that, and one has to ask again.
        """
        chance = self.script.chance
        for _ in range(2 if self.is_open else 1):
            version = 5 if expected is not None else chance.choice(INIT_VERSIONS)
            self.script.do(Initialize(self.name, self.who, version, timeout_ms, expected))
            self.settle()
        self._forget()

    def _forget(self) -> None:
        self.is_open = False
        self.added.clear()
        self.groups.clear()
        self.protocol = self.script.chance.choice(self.protocols)

    def batch(self) -> Batch:
        chance = self.script.chance
        some = batch(self.script)
        return Batch(
            times=some.times[: chance.choice((1, 1, 2, 5))],
            value_bytes=chance.choice((10, 100, 400)),
            keys=3,
            codec=some.codec,
            seed=some.seed,
        )

    def join(self, *partitions: int) -> None:
        """
        In the first protocol partitions are added before anything is produced to them.
        """
        missing = sorted(set(partitions) - self.added)
        if self.protocol == FIRST and missing:
            version = self.version("add")
            self.script.do(self.does.add_partitions({self.script.topic: missing}, version))
        self.added.update(partitions)
        self.is_open = True

    def produce(self) -> None:
        chance, script = self.script.chance, self.script
        every = range(script.partitions)
        partitions = [*every] if chance.random() < 0.2 else [chance.choice(every)]
        self.join(*partitions)
        batches = {partition: self.batch() for partition in partitions}
        script.do(self.does.produce(batches, self.version("produce")))
        for partition, some in batches.items():
            script.ends[partition] = script.end(partition) + len(some.times)

    def commit_offsets(self) -> None:
        chance, script = self.script.chance, self.script
        group = f"{script.topic}.g{chance.randrange(2)}"
        if self.protocol == FIRST and group not in self.groups:
            script.do(self.does.add_offsets(group, self.version("add_offsets")))
        self.groups.add(group)
        self.is_open = True
        offsets = {chance.randrange(script.partitions): chance.randrange(100) for _ in range(2)}
        script.do(self.does.commit_offsets(group, offsets, self.version("commit")))

    def end(self, *, commit: bool | None = None) -> None:
        chance, script = self.script.chance, self.script
        commit = chance.random() < 0.6 if commit is None else commit
        version = self.version("end")
        script.do(self.does.end(version, commit=commit))
        self.settle()
        for partition in self.added:
            script.ends[partition] = script.end(partition) + 1
        self._forget()
        if chance.random() < 0.15:
            # Asked again, as a producer does that got no answer.
            before = Guise(epoch=-1) if version >= 5 else HONEST
            script.do(self.does.end(version, before, commit=commit))
            self.settle()

    def go_on(self) -> None:
        chance = self.script.chance
        match chance.randrange(10):
            case 0 | 1 | 2 | 3 | 4:
                self.produce()
            case 5 | 6:
                self.commit_offsets()
            case _ if self.is_open:
                self.end()
            case _:
                self.produce()

    def be_odd(self, others: list[Player]) -> None:
        chance = self.script.chance
        odd: tuple[Callable[[], None], ...] = (
            self._end_oddly,
            self._produce_oddly,
            self._produce_oddly,
            self._join_oddly,
            self._commit_oddly,
            self._initialize_oddly,
            self._be_ended_by_administrator,
            lambda: self._ask_as_broker(others),
        )
        chance.choice(odd)()

    def _end_oddly(self) -> None:
        chance, script = self.script.chance, self.script
        guise = chance.choice((HONEST, *GUISES[:5]))
        version = chance.choice((self.version("end"), 3, 5))
        script.do(self.does.end(version, guise, commit=chance.random() < 0.5))
        self.settle()
        if guise == HONEST:
            self._forget()

    def _produce_oddly(self) -> None:
        chance, script = self.script.chance, self.script
        partition = chance.randrange(script.partitions + 1)
        guise = chance.choice((HONEST, *GUISES))
        version = chance.choice((self.version("produce"), 11, 13))
        transactional = chance.random() < 0.8
        step = self.does.produce(
            {partition: self.batch()}, version, guise, transactional=transactional
        )
        script.do(step)
        # A batch of the second protocol may have begun a transaction.
        self.is_open |= transactional

    def _join_oddly(self) -> None:
        chance, script = self.script.chance, self.script
        here, internal = script.topic, "__transaction_state"
        choices: list[dict[str, list[int]]] = [
            {here: [0, script.partitions]},
            {here: [0], "no-such-topic": [0, 1]},
            {here: []},
            {},
            {"__consumer_offsets": [0]},
            {internal: [0], here: [0]},
            {here: [0]},
        ]
        partitions = chance.choice(choices)
        guise = chance.choice((HONEST, *GUISES[:5]))
        if chance.random() < 0.7:
            script.do(self.does.add_partitions(partitions, chance.choice((0, 1, 2, 3)), guise))
        else:
            group = chance.choice((f"{script.topic}.g1", ""))
            script.do(self.does.add_offsets(group, chance.choice((0, 1, 2, 3, 4)), guise))
        self.is_open = True

    def _commit_oddly(self) -> None:
        chance, script = self.script.chance, self.script
        group = chance.choice((f"{script.topic}.g0", f"{script.topic}.g9", ""))
        member, generation = chance.choice((("", -1), ("nobody", -1), ("nobody", 1), ("", 3)))
        step = self.does.commit_offsets(
            group,
            {0: chance.choice((0, 7)), chance.choice((0, script.partitions)): 5},
            chance.choice((0, 1, 2, 3, 4, 5)),
            chance.choice((HONEST, HONEST, *GUISES[:5])),
            member_id=member,
            generation_id=generation,
        )
        script.do(step)
        self.is_open = True

    def _initialize_oddly(self) -> None:
        chance = self.script.chance
        expected = chance.choice((None, None, HONEST, HONEST, *GUISES[:5]))
        timeout_ms = chance.choice((LONGEST_MS, LONGEST_MS - 1, 0, -1, LONGEST_MS + 1))
        self.initialize(expected, timeout_ms)

    def _be_ended_by_administrator(self) -> None:
        """
        The marker is never that of a later producer or coordinator: whoever is fenced by such a one
        can never end its transaction, and neither gets further nor says anything of interest.
        """
        chance, script = self.script.chance, self.script
        step = self.does.marker(
            chance.choice(([0], [0, script.partitions], [*range(script.partitions)])),
            chance.choice((1, 2)),
            chance.choice((HONEST, HONEST, Guise(epoch=-1), Guise(id=1_000_000))),
            commit=chance.random() < 0.4,
            coordinator_epoch=chance.choice((-1, 0, EPOCHS_A_START * script.act)),
            transaction_version=chance.choice((0, 1, 2)),
        )
        script.do(step)

    def _ask_as_broker(self, others: list[Player]) -> None:
        chance, script = self.script.chance, self.script
        some = [player.does for player in others if player.name != self.name]
        step = self.does.add_partitions_as_broker(
            chance.sample(some, chance.randrange(len(some) + 1)),
            chance.choice(({script.topic: [0]}, {script.topic: [0, 1, 9]}, {"no-such-topic": [0]})),
            chance.choice((4, 5)),
            verify=chance.random() < 0.7,
            guise=chance.choice((HONEST, HONEST, *GUISES[:5])),
        )
        script.do(step)
        for player in (self, *others):
            player.is_open = True


@dataclass(slots=True)
class Play:
    script: Script
    players: list[Player]

    def begin(self) -> None:
        chance, script = self.script.chance, self.script
        script.create(
            partitions=chance.choice((1, 2, 3)),
            internal_segment_bytes=chance.choice((600, 2000, 1 << 20)),
            index_interval_bytes=chance.choice((0, 4096)),
            retention_ms=-1,
        )
        for player in self.players:
            player.initialize()

    def look(self) -> None:
        """
        See what everybody can see.
        """
        chance, script = self.script.chance, self.script
        names = [player.name for player in self.players if not player.second]
        whose = [player.who for player in self.players]
        strange = {"no-such-topic": [0], "strange topic": [0, 1], "": [0]}
        script.do(describe_producers({script.topic: range(script.partitions + 1), **strange}))
        script.do(describe_transactions([*names, "no-such-id", ""]))
        script.do(find_coordinator(names, TRANSACTIONS, chance.randrange(1, 7)))
        states = [*chance.sample(STATES, chance.randrange(4))]
        mine = f"{script.topic}.t.*"
        for version in (0, 1, 2):
            duration_ms = chance.choice((-1, -1, 0, HOUR_MS))
            script.do(list_transactions(whose, mine, states, duration_ms, version))
        for pattern in (mine, mine.replace("*", "[0]"), "(", ".*[", f"{script.topic}.t(?=1)", "x"):
            script.do(list_transactions([], pattern, [], -1, 2))
        for group in (f"{script.topic}.g{number}" for number in range(2)):
            for stable in (False, True):
                script.do(
                    fetch_offsets(
                        group,
                        script.topic,
                        script.partitions,
                        stable=stable,
                        version=chance.choice((8, 9, 10)),
                    )
                )
        script.probe(2)

    def play(self, count: int, oddity: float) -> None:
        """
        So many steps in each act; what is open at its end stays so.
        """
        chance = self.script.chance
        for act in range(ACTS):
            for number in range(count):
                player = chance.choice(self.players)
                if chance.random() < oddity:
                    player.be_odd(self.players)
                else:
                    player.go_on()
                if number == count // 2:
                    self.look()
            self.look()
            if act < ACTS - 1:
                self.script.next_act()


def _play(script: Script, *protocols: int, oddity: float, count: int = 14) -> None:
    players = [Player(script, number, protocols) for number in range(3)]
    if script.chance.random() < 0.4:
        players.append(Player(script, 0, protocols, second=True))
    play = Play(script, players)
    play.begin()
    play.play(count, oddity)


def first_protocol(script: Script) -> None:
    """
    As clients of before Kafka 4.0 do it.
    """
    _play(script, FIRST, oddity=0.0)


def second_protocol(script: Script) -> None:
    """
    As Kafka's own clients do it now (KIP-890).
    """
    _play(script, SECOND, oddity=0.0)


def first_protocol_oddly(script: Script) -> None:
    """
    What makes no sense, in between.
    """
    _play(script, FIRST, oddity=0.35)


def second_protocol_oddly(script: Script) -> None:
    """
    The same in the second protocol.
    """
    _play(script, SECOND, oddity=0.35)


def both_protocols(script: Script) -> None:
    """
    A client is replaced by a newer one, and the other way round.
    """
    _play(script, FIRST, SECOND, oddity=0.2)


def timeouts(script: Script) -> None:
    """
    Transactions that take longer than they may, also while the broker is down.
    """
    chance = script.chance
    players = [Player(script, number, (FIRST, SECOND)) for number in range(2)]
    play = Play(script, players)
    play.begin()
    hasty, calm = players
    for act in range(ACTS):
        calm.go_on()
        hasty.initialize(timeout_ms=chance.choice((1, 300)))
        if chance.random() < 0.5:
            script.do(hasty.does.add_partitions({script.topic: [0]}, 3))
        else:
            script.do(hasty.does.add_offsets(f"{script.topic}.g0", 3))
        script.do(Ended(hasty.name, by_time=True))
        hasty.added.add(0)
        hasty.protocol = chance.choice((FIRST, SECOND))
        script.do(hasty.does.produce({0: hasty.batch()}, hasty.version("produce")))
        script.do(hasty.does.end(hasty.version("end"), commit=True))
        hasty.settle()
        hasty.initialize(expected=HONEST)
        hasty.initialize()
        hasty.produce()
        hasty.end()
        calm.go_on()
        hasty.initialize(timeout_ms=1)
        play.look()
        if act < ACTS - 1:
            script.next_act()
