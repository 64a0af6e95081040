"""
Topics whose broker dies while they are made, changed or deleted, at every step of it.

After each answer and before each change of the disk: what was answered is there, what was asked for
is there wholly or not at all, and the next broker goes on.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.crash.cluster_steps import ClusterPoint, check, points_of, points_of_recovery
from tests.support.crash.count import CRASH_POINTS
from tests.support.crash.points import ALL, NONE, Keep, any_part

pytestmark = pytest.mark.usefixtures("silent_logs")

SECOND_CRASHES = 6
"""From how many points a start is cut short, at how many instants each."""


def keeps(everything: bool) -> tuple[Keep, ...]:
    return (NONE, ALL, *map(any_part, range(1, 6 if everything else 2)))


async def test_a_crash_at_any_step_leaves_topics_whole_or_absent(all_crash_points: bool) -> None:
    for number, point in enumerate(await points_of(keeps(all_crash_points))):
        await checked(point, thoroughly=all_crash_points or number % 5 == 0)
        CRASH_POINTS["crashes while topics are made and deleted"] += 1


async def test_a_second_crash_while_the_metadata_is_recovered_changes_nothing(
    all_crash_points: bool,
) -> None:
    chance = Random(1)

    for point in sample(chance, await points_of(keeps(all_crash_points)), all_crash_points):
        of_recovery = await points_of_recovery(point, keeps(all_crash_points))
        for second in sample(chance, of_recovery, all_crash_points):
            await checked(second)
            CRASH_POINTS["crashes while topics are recovered"] += 1


def sample(chance: Random, points: list[ClusterPoint], everything: bool) -> list[ClusterPoint]:
    most = SECOND_CRASHES * 5 if everything else SECOND_CRASHES
    return chance.sample(points, min(len(points), most))


async def checked(point: ClusterPoint, *, thoroughly: bool = True) -> None:
    try:
        await check(point, thoroughly=thoroughly)
    except Exception as error:
        error.add_note(point.place)
        raise
