"""
The logs of a broker, as a subject of failures of the disk.
"""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest

from barnabas.storage.fs.open_files import OpenFiles
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.crash.workloads import WORKLOADS, Workload, crashes
from tests.support.crash.world import World

LIVES = pytest.mark.parametrize(
    "workload",
    [workload for workload in WORKLOADS if workload is not crashes],
    ids=lambda workload: workload.__name__,
)


class CountingFiles(MemoryFiles):
    """
    A file system that counts what it does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.done: Counter[str] = Counter()

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        self.done[action] += 1


def operations_of(workload: Workload, open_files: OpenFiles | None = None) -> Counter[str]:
    """
    How often a workload does what with the disk.

    Args:
        open_files: how many files it may have open.
    """
    files = CountingFiles()
    if open_files is not None:
        files.open_files = open_files
    workload(World(files))
    return files.done


def check_nothing_is_held(files: FailingFiles) -> None:
    if files.in_use:
        # In a failure that somebody has caught, the frames know each other.
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
