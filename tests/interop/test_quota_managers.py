"""
Rates, waits and the choice of quotas are those of Apache Kafka's quota managers, on random uses.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from barnabas.protocol.errors import ThrottlingQuotaExceeded
from barnabas.server.security.quotas.limits import DEFAULT, Entity
from barnabas.server.security.quotas.quotas import MutationQuotas, RateQuotas
from barnabas.server.security.quotas.rate import Windows
from barnabas.testing.manual_clock import ManualClock
from tests.support.java_programs import run_program

pytestmark = pytest.mark.prove

PROGRAM: Final = Path(__file__).parent / "java" / "Quotas.java"
WORLDS: Final = 80
USES: Final = 120
SEED: Final = 20_261_125
START_MS: Final = 1_700_000_000_000
UNLIMITED: Final = "1.7976931348623157E308"

USERS: Final = ("u", "v", "w")
CLIENTS: Final = ("c", "d", "e", "")
ENTITIES: Final[tuple[Entity, ...]] = tuple(
    (user, client)
    for user in ("u", "v", DEFAULT, None)
    for client in ("c", "d", DEFAULT, None)
    if (user, client) != (None, None)
)


def text(name: str | None) -> str:
    return "-" if name is None else name or "*"


def world(chance: random.Random, lines: list[str]) -> list[str]:
    """
    Our answers to the *lines* that it adds.
    """
    windows = Windows(chance.choice((1, 2, 5, 11)), chance.choice((1, 1, 3)) * 1000)
    lines.append(f"new\t{windows.num}\t{windows.size_ms // 1000}\n")
    clock = ManualClock(START_MS)
    now = START_MS
    rates, mutations = RateQuotas(windows), MutationQuotas(windows, clock)
    there: list[Entity] = []

    def change(entity: Entity, value: float | None) -> None:
        rates.change(entity, value)
        mutations.change(entity, value)
        told = "-" if value is None else repr(value)
        lines.append("\t".join(("quota", *map(text, entity), told)) + "\n")

    # As in Kafka, but for this: what a client did before it had a quota is not counted.
    kinds = chance.choice((ENTITIES, ENTITIES, [e for e in ENTITIES if e[1] is None]))
    for entity in chance.sample(kinds, chance.choice((0, 1, 1, 2, 3)) if len(kinds) > 2 else 1):
        there.append(entity)
        change(entity, chance.choice((0.5, 10.0, 33.3, 1000.0)))
    answers = []
    for number in range(USES):
        if there and number % 20 == 19:
            entity = chance.choice(there)
            value = chance.choice((None, 5.0, 100.0))
            if value is None:
                there.remove(entity)
            change(entity, value)
        passed = round(windows.size_ms * chance.choice((0, 0.01, 0.3, 1, 1.7, 6, 30)))
        now += passed
        clock.advance(passed / 1000)
        user, client = chance.choice(USERS), chance.choice(CLIENTS)
        used = chance.choice((1, 7, 300, 20_000))
        verb = chance.choice(("use", "use", "use", "back", "strict", "lax"))
        lines.append("\t".join((verb, str(now), user, client, str(used))) + "\n")
        if verb == "use":
            wait = rates.record(user, client, used, now)
            most = rates.most_at_once(user, client)
            answers.append(f"{wait} {UNLIMITED if most is None else most}")
        elif verb == "back":
            rates.take_back(user, client, used, now)
        else:
            answers.append(charged(mutations, user, client, used, is_strict=verb == "strict"))
    return answers


def charged(made: MutationQuotas, user: str, client: str, used: float, *, is_strict: bool) -> str:
    quota = made.of(user, client, is_strict=is_strict)
    if quota is None:
        return "taken 0"
    told = "taken"
    try:
        quota.charge(round(used))
    except ThrottlingQuotaExceeded:
        told = "refused"
    return f"{told} {quota.throttle_ms()}"


def test_random_usage_is_throttled_as_in_kafka() -> None:
    chance = random.Random(SEED)
    lines: list[str] = []
    ours: list[str] = []
    for _ in range(WORLDS):
        ours += world(chance, lines)

    theirs = run_program(PROGRAM, lines=lines).splitlines()

    assert len(ours) == len(theirs)
    assert {"0", "taken", "refused"} <= {each.split()[0] for each in ours}
    wrong = [
        (number, one, other)
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True))
        if not alike(one, other)
    ]
    assert wrong == []


def alike(one: str, other: str) -> bool:
    """
    Whether the answers are equal, but for the rounding of a sum of fractions.
    """
    if one.startswith(("taken", "refused")):
        return one == other
    (wait, most), (their_wait, their_most) = one.split(), other.split()
    return abs(int(wait) - int(their_wait)) <= 1 and float(most) == float(their_most)
