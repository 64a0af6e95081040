"""
The logs of a broker whose machine crashes, at every instant of lives with everything in them.

A crash keeps nothing, all, or some part of what was not synced. Whatever it keeps: what was
promised is there, what is there is a prefix of the appended records, and the log can be used.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.crash.count import CRASH_POINTS
from tests.support.crash.points import (
    ALL,
    NONE,
    Keep,
    Point,
    any_part,
    check,
    points_of,
    points_of_recovery,
)
from tests.support.crash.workloads import WORKLOADS, Workload, compaction, crashes, transactions
from tests.support.crash.world import World
from tests.support.disk import MemoryFiles

SECOND_CRASHES = 9
"""From how many points of a workload a start is cut short, at how many of its changes each."""


pytestmark = pytest.mark.usefixtures("silent_logs")


def keeps(everything: bool) -> tuple[Keep, ...]:
    return (NONE, ALL, *map(any_part, range(1, 9 if everything else 2)))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
def test_a_crash_at_any_instant_takes_nothing_that_was_promised(
    workload: Workload, all_crash_points: bool
) -> None:
    points = points_of(workload, keeps(all_crash_points))

    for number, point in enumerate(points):
        check(point, thoroughly=all_crash_points or number % 5 == 0)
        CRASH_POINTS["crashes while logs are used"] += 1


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
def test_a_second_crash_while_the_first_is_recovered_takes_nothing_either(
    workload: Workload, all_crash_points: bool
) -> None:
    chance = Random(workload.__name__)
    points = points_of(workload, keeps(all_crash_points))

    for point in points if all_crash_points else sample(chance, points):
        of_recovery = points_of_recovery(point, keeps(all_crash_points))
        for second in of_recovery if all_crash_points else sample(chance, of_recovery):
            check(second, lives=2)
            CRASH_POINTS["crashes while logs are recovered"] += 1


def sample(chance: Random, points: list[Point]) -> list[Point]:
    return chance.sample(points, min(len(points), SECOND_CRASHES))


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if w is not crashes])
def test_without_a_crash_all_is_there(workload: Workload) -> None:
    """
    The ledgers themselves tell the truth.
    """
    world = World(MemoryFiles())
    workload(world)
    world.logs.shutdown()

    world.start()

    for ledger in world.ledgers.values():
        assert ledger.acknowledged_end == ledger.end
        ledger.durable_end = ledger.acknowledged_end
    world.check()


@pytest.mark.parametrize("workload", [transactions, compaction])
def test_the_points_of_a_workload_are_always_the_same(workload: Workload) -> None:
    first, second = (points_of(workload, (NONE, any_part(1))) for _ in range(2))

    assert [point.place for point in first] == [point.place for point in second]
    assert [point.image.key for point in first] == [point.image.key for point in second]
