"""
A disk that fails one write and works again, under a broker that is started again.

The kernel reports the failure to one fsync. Afterwards the pages that it could not write count as
clean: they can be read, the next fsync succeeds, and a power cut loses them. Runs in a process of
its own, which has mounts of its own::

    python -m tests.interop.disks.fails_once FOLDER ext4
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from typing import Final

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.topic_partition import TopicPartition
from tests.interop.disks.journal import ALL, Instant, Journal, RebuiltDisk, RecordingDisk, Shared
from tests.interop.disks.machine import FILE_SYSTEMS, FileSystem, mounted, served, told
from tests.interop.disks.mounts import enter_own_mounts
from tests.support.crash.ledger import Ledger
from tests.support.crash.logs import copied
from tests.support.crash.world import World

MARK: Final = b"fails once, "

Ledgers = dict[TopicPartition, Ledger]


def fail_once(shared: Shared) -> Ledgers:
    """
    Append until a write fails, start again on the same mount, and append more. Each append is
    flushed before it is acknowledged.
    """
    world = World(DiskFiles())
    world.start()
    log = world.create("t", flush_messages=1, internal_segment_bytes=1 << 20)
    for _ in range(3):
        world.append(log, b"before")
    shared.failing = MARK
    try:
        # So many pages that later appends write to none but the last.
        world.append(log, MARK * 1000)
    except KafkaStorageError:
        assert not shared.failing, "another operation has failed"
    else:
        raise AssertionError("a failed fsync was acknowledged")
    world.release()

    again = World(DiskFiles(), copied(world.ledgers), now_ms=world.clock.now_ms())
    again.start()
    try:
        again.check()
        for _ in range(3):
            again.append(log, b"after")
    finally:
        again.release()
    return copied(again.ledgers)


def check_power_cut(kind: FileSystem, journal: Journal, position: int, ledgers: Ledgers) -> None:
    """
    Everything that was acknowledged is there after a power cut.
    """
    disk = RebuiltDisk(kind.size, journal)
    disk.cut_power(Instant(position, ALL, 0))
    with served(disk) as file, mounted(kind, file):
        told(partial(_check, ledgers))


def _check(ledgers: Ledgers) -> None:
    world = World(DiskFiles(), ledgers)
    try:
        world.start()
        world.check()
    finally:
        world.release()


def main(folder: Path, kind: FileSystem) -> None:
    root = folder / "root"
    root.mkdir()
    enter_own_mounts(root, "data", "backing")
    shared = Shared()
    disk = RecordingDisk(kind.size, folder / "journal", shared)
    with served(disk, disk.close) as file, mounted(kind, file, make=True):
        ledgers = told(partial(fail_once, shared))
        position = shared.position
    disk.close()
    check_power_cut(kind, Journal(folder / "journal"), position, ledgers)


if __name__ == "__main__":
    logging.disable()
    main(Path(sys.argv[1]), FILE_SYSTEMS[sys.argv[2]])
