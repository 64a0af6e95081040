"""
The logs of a broker that finds no descriptor, at each opening of a file in lives that have
everything in them.

The disk is well: no log directory becomes offline. The operation that needs the
file fails as a whole, and succeeds when it is tried again.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from barnabas.storage.errors import TooManyOpenFiles
from barnabas.storage.fs.open_files import OpenFiles
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.failing import FailingFiles
from tests.support.crash.count import CRASH_POINTS
from tests.support.crash.failures import LIVES, check_nothing_is_held, operations_of, start_again
from tests.support.crash.workloads import Workload
from tests.support.crash.world import ROOT, World

OPENINGS = frozenset({"open", "map", "list", "sync directory"})
T = TypeVar("T")
NEVER = 10**9
MOST_NEEDED = 4
"""The files of a log and its indexes, which one append needs at a time."""
STRIDE = 3
"""Every so many-th opening fails, unless all are asked for."""


pytestmark = [pytest.mark.usefixtures("silent_logs"), pytest.mark.prove]


@LIVES
@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM], ids=["process", "system", "maps"]
)
def test_open_without_a_free_file_descriptor_is_not_a_disk_failure(
    workload: Workload, number: int, all_crash_points: bool
) -> None:
    done = operations_of(workload, OpenFiles(MOST_NEEDED))
    openings = sum(done[name] for name in OPENINGS)
    assert openings > STRIDE
    for at in range(number % 2, openings, 1 if all_crash_points else STRIDE):
        try:
            fail_at(workload, at, number)
        except BaseException as error:
            error.add_note(f"in the workload {workload.__name__}: opening {at} fails")
            raise
        CRASH_POINTS["openings that find no descriptor"] += 1


class PatientWorld(World):
    def start(self, *, lives: int = 1) -> None:
        try:
            super().start(lives=lives)
        except TooManyOpenFiles:
            # The broker ends, and is started again.
            if logs := getattr(self, "logs", None):
                logs.shutdown()
            super().start(lives=lives)

    def create(self, topic: str, **config: Any) -> TopicPartition:
        marks = self._marks

        def create() -> TopicPartition:
            self._marks = marks
            return super(PatientWorld, self).create(topic, **config)

        return twice(create)

    def _append(self, partition: TopicPartition, data: bytearray, **more: Any) -> None:
        entries, end = self.ledgers[partition].entries, self.log(partition).log_end_offset
        try:
            super()._append(partition, bytearray(data), **more)
        except TooManyOpenFiles:
            assert end == self.log(partition).log_end_offset, "half of it was appended"
            entries.pop()
            super()._append(partition, bytearray(data), **more)

    def flush(self, partition: TopicPartition) -> None:
        twice(lambda: super(PatientWorld, self).flush(partition))

    def delete_records(self, partition: TopicPartition, offset: int) -> None:
        twice(lambda: super(PatientWorld, self).delete_records(partition, offset))

    def stop(self) -> None:
        """
        Stop; a log that cannot be closed is recovered by the next start.
        """
        logs = self.logs.logs()
        self.logs.shutdown(broker_epoch=1)
        for partition, log in logs.items():
            self.ledgers[partition].acknowledged_end = log.log_end_offset


def twice(work: Callable[[], T]) -> T:
    try:
        return work()
    except TooManyOpenFiles:
        return work()


def fail_at(workload: Workload, at: int, number: int) -> None:
    files = FailingFiles()
    if at % 2:
        # Files are given back and opened again all the time.
        files.open_files = OpenFiles(MOST_NEEDED + at % 3)
    world = PatientWorld(files)
    files.fail(at, errno=number, only=OPENINGS)
    try:
        workload(world)
    except TooManyOpenFiles:
        world.check()
        for partition in world.logs.logs():
            world.append(partition, b"and on")
    assert not world.failures.has_offline_log_dir(ROOT)
    world.logs.shutdown()
    check_nothing_is_held(files)
    files.fail(NEVER)
    start_again(world)
