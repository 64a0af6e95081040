"""
The rules by which a broker fails requests.
"""

from __future__ import annotations

from barnabas.testing.chance import Chance
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.rule import Rule


async def add(broker: Embedded, rule: Rule) -> int:
    """
    Add a rule, and return its number.
    """
    return broker.rules.add(rule)


async def remove(broker: Embedded, number: int) -> None:
    """
    Remove a rule.
    """
    broker.rules.remove(number)


async def clear(broker: Embedded) -> None:
    """
    Remove all rules.
    """
    broker.rules.clear()


async def count(broker: Embedded, number: int) -> int:
    """
    The number of requests that a rule has met.
    """
    return broker.rules.count(number)


async def begin_chaos(broker: Embedded, seed: int, one_in: int) -> None:
    """
    Let chance decide about the requests that no rule meets.
    """
    broker.rules.chance = Chance(seed, one_in)


async def end_chaos(broker: Embedded) -> None:
    """
    Let it decide no more.
    """
    broker.rules.chance = None


async def note_chaos(broker: Embedded, line: str) -> None:
    """
    Put a line into the schedule of chance.
    """
    if broker.rules.chance is not None:
        broker.rules.chance.note(line)


async def schedule(broker: Embedded) -> list[str]:
    """
    What chance has done, a line for each fault.
    """
    chance = broker.rules.chance
    return [] if chance is None else chance.schedule
