"""
The rules by which a broker fails requests.
"""

from __future__ import annotations

from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.rules import Rule


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
