"""
The logs of a broker whose disk fails, at each operation in lives that have everything in them.

A change fails once, or the disk is broken from then on; it is full, or has an error. The log
directory becomes offline, no object is kept, and once the disk is repaired, all acknowledged
records are there.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Mapping

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.testing.disks.crashable import READING
from barnabas.testing.disks.failing import FailingFiles
from tests.support.crash.count import CRASH_POINTS
from tests.support.crash.failures import LIVES, check_nothing_is_held, operations_of, start_again
from tests.support.crash.workloads import Workload
from tests.support.crash.world import ROOT, World

READS = READING - {"look", "list"}
NEVER = 10**9
STRIDE = 3
"""Every so many-th operation fails, unless all points are asked for."""

pytestmark = [pytest.mark.usefixtures("silent_logs"), pytest.mark.prove]


@LIVES
def test_disk_error_at_any_write_loses_nothing_acknowledged(
    workload: Workload, all_crash_points: bool
) -> None:
    changes = {name: n for name, n in operations_of(workload).items() if name not in READING}
    fail_at_each(workload, changes, all_crash_points)


@LIVES
def test_disk_error_at_any_read_loses_nothing_acknowledged(
    workload: Workload, all_crash_points: bool
) -> None:
    reads = {name: n for name, n in operations_of(workload).items() if name in READS}
    fail_at_each(workload, reads, all_crash_points)


def fail_at_each(workload: Workload, operations: Mapping[str, int], everything: bool) -> None:
    """
    Fail at every ``STRIDE``-th of the operations of these names, of which there are so many.
    """
    points = range(0, sum(operations.values()), 1 if everything else STRIDE)
    assert points
    for at in points:
        kinds = [(errno.ENOSPC, False), (errno.EIO, True), (errno.EIO, False)]
        for number, forever in kinds if everything else [kinds[at // STRIDE % 3]]:
            fail_at(workload, at, number, only=frozenset(operations), forever=forever)
            CRASH_POINTS["operations of the disk that fail"] += 1


def fail_at(
    workload: Workload, at: int, number: int, *, only: frozenset[str], forever: bool
) -> None:
    files = FailingFiles()
    world = World(files)
    files.fail(at, errno=number, only=only, forever=forever, written=at % 90)
    before = set(threading.enumerate())
    try:
        try:
            workload(world)
        except KafkaStorageError:
            offline(world)
        else:
            # Nothing depended on the change: as of the removal of a lock file.
            world.logs.shutdown()
        check_nothing_is_held(files)
        assert not set(threading.enumerate()) - before
        files.fail(NEVER)
        start_again(world)
    except BaseException as error:
        kind = f"{errno.errorcode[number]}{', forever' if forever else ''}"
        error.add_note(f"in the workload {workload.__name__}: operation {at} fails with {kind}")
        raise


def offline(world: World) -> None:
    """
    What the broker does that learns of the failure.
    """
    logs = getattr(world, "logs", None)
    if logs is None or logs.failures is not world.failures:
        # The disk was of no use from the start.
        return
    logs.handle_failures()
    if world.failures.has_offline_log_dir(ROOT):
        assert logs.directories.offline == (ROOT,)
        assert not logs.logs()
    logs.shutdown()
