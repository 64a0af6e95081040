"""
Requests of every API, made of random values that mean something, and then damaged.

What they are answered is compared as a whole, but for what tells of other workloads' topics and
groups, which come and go, and for order and wording.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from struct import pack
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages import REQUESTS, RESPONSES
from barnabas.server.requests.registry import HANDLERS
from tests.interop.differential.recipes import Batch
from tests.interop.differential.scripts import Script
from tests.interop.differential.sides import Session, error_codes
from tests.interop.differential.steps import Answer, Configured, Ready, create_topic

APIVERSIONS: Final = 18
INCREMENTAL_ALTER_CONFIGS: Final = 44
CORRELATION_ID: Final = 77
SECONDS: Final = 5.0
"""How long an answer is waited for: some requests wait for others that never come."""
NUMBERS: Final = (0, 0, 1, 1, 2, -1, -2, 3, 10, 100, 1000)
EXTREMES: Final = [pack(">i", value) for value in (-(2**31), -1, 0, 1, 2**16, 2**31 - 1)]
ITS_ID: Final = UUID("77777777-7777-7777-7777-777777777777")
PLACES: Final = 40
"""How many requests a workload sends."""


@dataclass(frozen=True, slots=True)
class Frame:
    """
    Bytes that were a request.

    Args:
        topic: whose id, which each broker chooses for itself, goes where ``ITS_ID`` is.
    """

    text: str
    key: int
    version: int
    frame: bytes
    seed: int
    topic: str

    async def run(self, session: Session) -> Any:
        frame = self.frame.replace(ITS_ID.bytes, session.topic_id(self.topic).bytes)
        answer = await session.ask_frame(frame, seconds=SECONDS)
        return answer if isinstance(answer, str) else self._read(answer)

    def _read(self, answer: bytes) -> Any:
        response = RESPONSES[self.key]
        flexible = response.api.is_flexible(self.version) and self.key != APIVERSIONS
        try:
            message = decode(response, self.version, answer[5 if flexible else 4 :])
        except DecodeError as error:
            return f"unreadable: {error}, {answer[:200].hex()}"
        if self.key in SUMMARISED:
            return sorted(set(error_codes(message)))
        return Answer(message, self.version, only_of=self.seed)

    def __str__(self) -> str:
        return f"{self.text}: {self.frame.hex()}"


class Inventor:
    def __init__(self, script: Script) -> None:
        self._chance = script.chance
        times = (script.now_ms,) * 2
        self._sized: dict[Type, list[Any]] = {
            Kind.RECORDS: [Batch(times=times, keys=2, seed=n).build() for n in range(3)],
            Kind.UUID: [ITS_ID, ITS_ID, UUID(int=0), UUID(int=7)],
            Kind.BYTES: [b"", b"abc"],
            Kind.STRING: [script.topic, script.topic, f"x-{script.seed}", "", "a b", "range"],
        }

    def message(self, cls: Any, version: int) -> Any:
        """
        A *cls* with random values in the fields that *version* has.
        """
        values = {
            field.name: self._field(cls, field, version)
            for field in fields(cls)
            if field.is_in(version) and (field.tag is None or self._chance.random() < 0.2)
        }
        return cls(**values)

    def _field(self, cls: type, field: Field, version: int) -> Any:
        if field.is_nullable_in(version) and self._chance.random() < 0.15:
            return None
        if field.name in WAITS:
            return self._chance.choice(WAITS[field.name])
        if field.name in CONFIG_FIELDS and "Config" in cls.__name__:
            return self._chance.choice(CONFIG_FIELDS[field.name])
        if field.name in CHOICES:
            return self._chance.choice(CHOICES[field.name])
        return self._value(field.name, field.type, version)

    def _value(self, name: str, kind: Type, version: int) -> Any:
        chance = self._chance
        match kind:
            case Array():
                count = chance.choice((0, 1, 1, 1, 2))
                return [self._value(name, kind.element, version) for _ in range(count)]
            case Struct():
                return self.message(kind.cls, version)
            case Fixed(letter):
                return self._number(letter)
            case _:
                return chance.choice(self._sized[kind])

    def _number(self, letter: str) -> float:
        number = self._chance.choice(NUMBERS)
        if letter in "?d":
            return number > 0
        return max(number, 0) if letter.isupper() else max(min(number, 127), -128)


CHOICES: Final = {
    "acks": (1, -1, 1, 2),
    # Another operation is a fault of the controller, which then resigns.
    "config_operation": (0, 1, 2, 3),
    "current_leader_epoch": (-1, -1, -1, 0, 1, 2),
    "generation_id_or_member_epoch": (-1, -1, -1, 0),
    "isolation_level": (0, 0, 1, 1, 2),
    "iterations": (4096, 4096, 100, 20_000),
    "mechanism": (0, 1, 2, 2),
    "member_id": ("", "", "x"),
    "replica_id": (-1, -1, -1, -2, 0, 1),
    "resource_type": (2, 2, 2, 0, 4, 8, 16, 32, -1),
    "timestamp": (-1, -2, -3, -4, -5, -6, -7, 0, 1000, 2**40, 2**50),
}
"""Fields that have few values, but for which nearly all requests would be refused."""
CONFIG_FIELDS: Final = {
    "name": ("flush.messages", "max.message.bytes", "segment.bytes", "x", ""),
    "value": ("1", "100", "1048576", "-1", "", "x"),
    "configuration_keys": (["flush.messages", "x"], ["max.message.bytes"], [], None),
}
"""
Options and their values: none that brokers have too, or that let something happen later.
"""
WAITS: Final = {
    "max_wait_ms": (0, 1, 50),
    "rebalance_timeout_ms": (0, 1, 50),
    # What is not done in time is done all the same, or not: nobody can tell.
    "timeout_ms": (30_000,),
}
"""Fields that let a request wait, and how long they do so here."""


SUMMARISED: Final = frozenset({APIVERSIONS})
"""APIs of whose answers only the error codes are compared."""
SASL: Final = frozenset({17, 36})
"""APIs that have a test of their own (``test_sasl.py``)."""
CHANGES: Final = frozenset({19, 20, 30, 31, 33, 37, 44, 45, 49, 51, 57, 64})
"""APIs by which metadata changes, which a broker sees a moment after its controller."""


@cache
def apis() -> tuple[tuple[int, int], ...]:
    """
    Key and version of what Barnabas understands.
    """
    return tuple(
        (key, version)
        for key in sorted(HANDLERS.keys() - SASL)
        if REQUESTS[key].api.is_listed
        for version in REQUESTS[key].api.versions
    )


def damaged(body: bytes, chance: random.Random) -> bytes:
    data = bytearray(body)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                data[at : at + 4] = chance.choice(EXTREMES)
            case 2:
                del data[at:]
            case 3:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 4:
                del data[at : at + chance.randrange(1, 5)]
            case _:
                data[at : at + 1] = chance.choice((b"\0", b"\1", b"\xff", b"\x7f"))
    return bytes(data)


def requests(script: Script) -> None:
    """
    One topic with a few records, and many requests that may be about it.
    """
    chance = script.chance
    script.create(partitions=2, retention_ms=-1)
    marked = _create_marked(script)
    inventor = Inventor(script)
    for act in range(3):
        for _ in range(3):
            script.produce(Batch(times=(script.now_ms,) * 3, seed=chance.randrange(1000)))
        for place in range(PLACES):
            frame = _frame(inventor, script)
            script.do(frame)
            if frame.key in CHANGES:
                script.do(Configured(marked, act * PLACES + place))
        if act < 2:
            script.next_act()


def _create_marked(script: Script) -> str:
    """
    Another topic, whose configs show that everything before is in force.
    """
    name = f"marked-{script.seed}"
    script.do(create_topic(name))
    script.do(Ready(name, 1))
    return name


def _frame(inventor: Inventor, script: Script) -> Frame:
    chance = script.chance
    key, version = chance.choice(apis())
    request = REQUESTS[key]
    body = encode(inventor.message(request, version), version)
    is_damaged = key != INCREMENTAL_ALTER_CONFIGS and chance.random() < 0.5
    if is_damaged:
        body = damaged(body, chance)
    header = pack(">hhih", key, version, CORRELATION_ID, 1) + b"t"
    if request.api.is_flexible(version):
        header += b"\0"
    frame = pack(">i", len(header) + len(body)) + header + body
    text = f"{'damaged ' if is_damaged else ''}{request.__name__} v{version}"
    return Frame(text, key, version, frame, script.seed, script.topic)
