"""
Transactions whose broker dies, at every step of them.

After each request and before each change of the disk: the outcome is all or nothing, of records
and of offsets, and the next producer with the same id goes on.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.crash.count import CRASH_POINTS
from tests.support.crash.points import ALL, NONE, Keep, any_part
from tests.support.crash.transaction_steps import (
    Script,
    TransactionPoint,
    check,
    points_of,
    points_of_recovery,
    transactions,
)
from tests.support.transactional_client import FIRST, SECOND

pytestmark = pytest.mark.usefixtures("silent_logs")

SCRIPTS = {
    "commit, then abort": transactions(True, False),
    "abort, then commit": transactions(False, True),
}
SECOND_CRASHES = 4
"""From how many points of a script a start is cut short, at how many instants each."""
USUAL = {("commit, then abort", SECOND), ("abort, then commit", FIRST)}
"""The scripts and protocols of a run that is not told to go through all."""


@pytest.fixture(params=SCRIPTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[FIRST, SECOND], ids=["first protocol", "second protocol"])
def protocol(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def script(name: str, protocol: int, all_crash_points: bool) -> Script:
    if not all_crash_points and (name, protocol) not in USUAL:
        pytest.skip("only with --crash-points all")
    return SCRIPTS[name]


def keeps(everything: bool) -> tuple[Keep, ...]:
    return (NONE, ALL, *map(any_part, range(1, 6 if everything else 2)))


async def test_a_crash_at_any_step_leaves_all_of_a_transaction_or_nothing(
    script: Script, protocol: int, all_crash_points: bool
) -> None:
    points = await points_of(script, protocol, keeps(all_crash_points))

    for number, point in enumerate(points):
        await checked(point, by_timeout=number % 4 == 0)
        CRASH_POINTS["crashes while a transaction is under way"] += 1


async def test_a_second_crash_while_a_transaction_is_completed_changes_nothing(
    script: Script, protocol: int, all_crash_points: bool
) -> None:
    chance = Random(protocol)
    points = await points_of(script, protocol, keeps(all_crash_points))

    for point in sample(chance, points, all_crash_points):
        of_recovery = await points_of_recovery(point, keeps(all_crash_points))
        for second in sample(chance, of_recovery, all_crash_points):
            await checked(second, by_timeout=False)
            CRASH_POINTS["crashes while a transaction is completed after a crash"] += 1


def sample(
    chance: Random, points: list[TransactionPoint], everything: bool
) -> list[TransactionPoint]:
    most = SECOND_CRASHES * 5 if everything else SECOND_CRASHES
    return chance.sample(points, min(len(points), most))


async def checked(point: TransactionPoint, *, by_timeout: bool) -> None:
    try:
        await check(point, by_timeout=by_timeout)
    except Exception as error:
        error.add_note(point.place)
        raise
