"""
The logs of a broker whose disk fails, at each change in lives that have everything in them.

A change fails once, or the disk is broken from then on; it is full, or has an error. The log
directory becomes offline, no object is kept, and once the disk is repaired, all acknowledged
records are there.
"""

from __future__ import annotations

import errno
import gc
import logging
import threading
from collections.abc import Iterator

import pytest

from barnabas.storage.errors import KafkaStorageError
from tests.support.crash.count import CRASH_POINTS
from tests.support.crash.workloads import WORKLOADS, Workload, crashes
from tests.support.crash.world import ROOT, World
from tests.support.crashable_disk import CrashableFiles
from tests.support.disk import FailingFiles

CHANGES = frozenset(
    {"create", "write", "truncate", "sync", "rename", "remove", "make directory", "sync directory"}
)
NEVER = 10**9
STRIDE = 3
"""Every so many-th change fails, unless all points are asked for."""

LIVES = [workload for workload in WORKLOADS if workload is not crashes]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def changes_of(workload: Workload) -> int:
    files = CrashableFiles()
    workload(World(files))
    return files.steps


@pytest.mark.parametrize("workload", LIVES, ids=lambda workload: workload.__name__)
def test_a_disk_that_fails_at_any_change_takes_nothing_that_was_acknowledged(
    workload: Workload, all_crash_points: bool
) -> None:
    for at in range(0, changes_of(workload), 1 if all_crash_points else STRIDE):
        kinds = [(errno.ENOSPC, False), (errno.EIO, True), (errno.EIO, False)]
        for number, forever in kinds if all_crash_points else [kinds[at % 3]]:
            fail_at(workload, at, number, forever=forever)
            CRASH_POINTS["changes of the disk that fail"] += 1


def fail_at(workload: Workload, at: int, number: int, *, forever: bool) -> None:
    files = FailingFiles()
    world = World(files)
    files.fail(at, errno=number, only=CHANGES, forever=forever, written=at % 90)
    threads = threading.active_count()
    try:
        try:
            workload(world)
        except KafkaStorageError:
            offline(world)
        else:
            # Nothing depended on the change: as of the removal of a lock file.
            world.logs.shutdown()
        check_nothing_is_held(files)
        assert threads == threading.active_count()
        files.fail(NEVER)
        start_again(world)
    except BaseException as error:
        kind = f"{errno.errorcode[number]}{', forever' if forever else ''}"
        error.add_note(f"in the workload {workload.__name__}: change {at} fails with {kind}")
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


def check_nothing_is_held(files: FailingFiles) -> None:
    if files.in_use:
        # The frames of a caught failure refer to each other.
        gc.collect()
    assert not [file.path for file in files.in_use]
    assert not files.locked


def start_again(world: World) -> None:
    for ledger in world.ledgers.values():
        ledger.durable_end = ledger.acknowledged_end
    again = World(world.files, world.ledgers, now_ms=world.clock.now_ms())
    again.start()
    again.check()
    again.logs.shutdown()
