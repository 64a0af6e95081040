"""
The logs of a broker whose machine crashes, at every instant of lives with everything in them.

A crash keeps nothing, all, or some part of what was not synced. Whatever it keeps: what was
promised is there, what is there is a prefix of the appended records, and the log can be used.
"""

from __future__ import annotations

import pytest

from barnabas.testing.disks.memory import MemoryFiles
from tests.support.crash.logs import Logs
from tests.support.crash.points import (
    NONE,
    any_part,
    crash_again_in_recovery,
    crash_at_every_point,
)
from tests.support.crash.workloads import WORKLOADS, Workload, compaction, crashes, transactions
from tests.support.crash.world import World
from tests.support.some import some

pytestmark = pytest.mark.usefixtures("silent_logs")

USUAL = {crashes, transactions}
"""Workloads of the usual run; the others are played by make prove."""
EACH = pytest.mark.parametrize(
    "workload",
    [
        pytest.param(each, marks=() if each in USUAL else pytest.mark.prove, id=each.__name__)
        for each in WORKLOADS
    ],
)


@EACH
async def test_crash_at_any_operation_loses_nothing_that_was_flushed(
    workload: Workload, all_crash_points: bool
) -> None:
    await crash_at_every_point(Logs(workload), all_crash_points)


@EACH
async def test_second_crash_during_recovery_loses_nothing_that_was_flushed(
    workload: Workload, all_crash_points: bool
) -> None:
    await crash_again_in_recovery(Logs(workload), all_crash_points)


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if w is not crashes])
def test_everything_is_there_without_a_crash(workload: Workload) -> None:
    world = World(MemoryFiles())
    workload(world)
    world.logs.shutdown()

    world.start()

    assert world.ledgers
    for ledger in some(world.ledgers.values()):
        assert ledger.acknowledged_end == ledger.end
        ledger.durable_end = ledger.acknowledged_end
    world.check()


@pytest.mark.parametrize("workload", [transactions, compaction])
async def test_crash_points_of_a_workload_are_deterministic(workload: Workload) -> None:
    first, second = [await Logs(workload).points((NONE, any_part(1))) for _ in range(2)]

    assert [point.place for point in first] == [point.place for point in second]
    assert [point.image.key for point in first] == [point.image.key for point in second]
