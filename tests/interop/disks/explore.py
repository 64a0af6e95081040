"""
Lives of brokers on real file systems, and what they find after power cuts.

Each ``Subject`` lives on a file system whose disk is recorded. The disk is rebuilt as of instants
that a seed chooses, and mounted. There the promises that were made by then are checked. This runs
in a process with mounts of its own::

    python -m tests.interop.disks.explore FOLDER ext4 200 0 appends topics
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from barnabas.server.cluster.offline_topics import read_topics
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX
from barnabas.storage.state_files.file_names import STRAY_DIR_SUFFIX
from barnabas.storage.verify.report import Violation
from tests.interop.disks.journal import (
    TORN_512,
    Instant,
    Journal,
    RebuiltDisk,
    RecordingDisk,
    Shared,
    instants,
)
from tests.interop.disks.machine import DATA, FILE_SYSTEMS, FileSystem, mounted, served
from tests.interop.disks.modelled import model_at, unmodelled
from tests.interop.disks.mounts import enter_own_mounts
from tests.interop.disks.recorded import (
    MountedPoint,
    Operation,
    RecordedMachine,
    Trail,
    point_at,
)
from tests.support.crash.group_clients import ConsumerClient, ShareGroupClient, StreamsClient
from tests.support.crash.group_workloads import consumers, shares, streams
from tests.support.crash.groups import Groups
from tests.support.crash.logs import Logs
from tests.support.crash.points import Subject
from tests.support.crash.topics import Topics
from tests.support.crash.transactions import Transactions
from tests.support.crash.workloads import WORKLOADS, Workload, crashes
from tests.support.transactional_client import FIRST, SECOND
from tests.support.verifying import verified

REPORT: Final = "report.json"
COPY: Final = "data"
OUTCOMES: Final = "outcomes.json"

THOROUGHLY: Final = 6
"""Every so many-th broker also continues after its check."""
COMPARED: Final = 3
"""Every so many-th state is compared with the model."""


def _logs(workload: Workload) -> Logs:
    return Logs(workload)


LOGS: Final[dict[str, Callable[[], Subject[Any]]]] = {
    each.__name__: partial(_logs, each) for each in WORKLOADS if each is not crashes
}
WEIGHT_OF_LOGS: Final = 2
"""For each instant of a broker, so many of logs alone, which take a third of the time."""
SUBJECTS: Final[dict[str, Callable[[], Subject[Any]]]] = {
    **LOGS,
    "administration": Topics,
    "first_protocol": lambda: Transactions(FIRST, False, True),
    "second_protocol": lambda: Transactions(SECOND, True, False),
    "consumer_groups": lambda: Groups(
        consumers, lambda name: ConsumerClient(name, "t"), is_synced=True
    ),
    "share_groups": lambda: Groups(
        shares, lambda name: ShareGroupClient(name, "t"), is_synced=True
    ),
    "streams_groups": lambda: Groups(streams, StreamsClient, is_synced=True),
}


class Recording(NamedTuple):
    """
    A life that was recorded.
    """

    kind: FileSystem
    subject: Subject[Any]
    journal: Journal
    trail: Trail[Any]
    operations: list[Operation]

    @property
    def first(self) -> int:
        """
        The position at which the promises begin.
        """
        return self.trail.notes[0].position


def record(kind: FileSystem, subject: Subject[Any], path: Path, seed: int) -> Recording:
    path.unlink(missing_ok=True)
    shared = Shared()
    disk = RecordingDisk(kind.size, path, shared)
    machine: RecordedMachine[Any] = RecordedMachine(lambda: shared.position, Random(seed))
    with served(disk, disk.close) as file, mounted(kind, file, make=True):
        asyncio.run(subject.live(machine))
        # The file system is to be unmounted.
        del machine.files
    disk.close()
    return Recording(kind, subject, Journal(path), machine.trail, machine.operations)


class Checked(NamedTuple):
    """
    What came of instants: how many there were, and the promises that were broken.
    """

    instants: int
    failures: list[str]
    unmountable: int
    """Instants at which a torn write keeps the file system itself from being mounted."""
    unmodelled: list[str]
    """States that the model of a disk does not allow."""


def check_instants(recording: Recording, found: Sequence[Instant], copies: Path) -> Checked:
    """
    Cut the power at these instants, in the order of their positions.

    Args:
        copies: the folder for the directory that Apache Kafka is to open.
    """
    failures: list[str] = []
    beyond: list[str] = []
    unmountable = 0
    disk = RebuiltDisk(recording.kind.size, recording.journal)
    for number, instant in enumerate(found):
        place = f"{recording.subject.name} on {recording.kind.name}: {instant}"
        point = point_at(recording.trail, instant.position, place)
        disk.cut_power(instant)
        with served(disk) as file, ExitStack() as stack:
            try:
                stack.enter_context(mounted(recording.kind, file))
            except OSError as error:
                # The superblock of ext4 is 1,024 bytes under one checksum.
                if error.errno != errno.EBADMSG or instant.keeping != TORN_512:
                    raise
                unmountable += 1
                continue
            if number % COMPARED == 0:
                model = model_at(recording.operations, instant.position, DATA)
                beyond += [f"{place}: {each}" for each in unmodelled(model, DATA)]
            if number == len(found) // 2 and isinstance(recording.subject, Transactions):
                copy_for_kafka(point, copies)
            try:
                check_mounted(recording.subject, point, thoroughly=number % THOROUGHLY == 0)
            except Exception:
                # As text: a traceback would hold files that are open.
                failures.append(f"{point.place}\n{traceback.format_exc()}")
    return Checked(len(found) - unmountable, failures, unmountable, beyond)


def copy_for_kafka(point: MountedPoint[Any], folder: Path) -> None:
    """
    Copy the directory of a broker as it is after a power cut, with the values that a reader may
    find.
    """
    shutil.copytree(DATA, folder / COPY)
    outcomes = [[str(number) for number in outcome] for outcome in point.promised.outcomes]
    (folder / OUTCOMES).write_text(json.dumps({"place": point.place, "outcomes": outcomes}))


def check_mounted(subject: Subject[Any], point: MountedPoint[Any], *, thoroughly: bool) -> None:
    # What it finds is for the next start to repair; it must read what is there.
    verified([DATA], read_topics)
    # The check of transactions uses the disk twice then.
    thoroughly = thoroughly and not isinstance(subject, Transactions)
    asyncio.run(subject.check(point, lives=1, thoroughly=thoroughly))
    if not isinstance(subject, Logs):
        found = [each for each in verified([DATA], read_topics)[0] if not _is_harmless(each)]
        assert not found, f"after a clean stop, barnabas verify finds {found}"


def _is_harmless(violation: Violation) -> bool:
    """
    A log whose topic id never reached the disk is put aside and begun again, as in Kafka. A file
    that was being written is written over.
    """
    return any(part.endswith(STRAY_DIR_SUFFIX) for part in violation.path.parts) or (
        violation.rule == "leftover" and violation.found.endswith(TEMPORARY_SUFFIX)
    )


def explore(
    kind: FileSystem, names: Sequence[str], count: int, seed: int, folder: Path
) -> dict[str, Any]:
    """
    Cut the power at *count* instants, which the lives share.

    Args:
        folder: for files. This process has mounts of its own from now on.
    """
    figures: dict[str, Any] = {
        "instants": 0,
        "unmountable": 0,
        "unmodelled": [],
        "lives": 0,
        "records": 0,
        "failures": [],
    }
    root = folder / "root"
    root.mkdir()
    enter_own_mounts(root, "data", "backing")
    gc.freeze()  # A collection looks only at what a life has made.
    weights = [WEIGHT_OF_LOGS if name in LOGS else 1 for name in names]
    for number, name in enumerate(names):
        began = time.monotonic()
        before, after = sum(weights[:number]), sum(weights[: number + 1])
        share = count * after // sum(weights) - count * before // sum(weights)
        recording = record(kind, SUBJECTS[name](), folder / "journal", seed)
        copies = folder / name
        copies.mkdir()
        chosen = instants(recording.journal, recording.first, share, seed, kind.keepings)
        checked = check_instants(recording, chosen, copies)
        figures["failures"] += checked.failures
        figures["instants"] += checked.instants
        figures["unmodelled"] += checked.unmodelled
        figures["unmountable"] += checked.unmountable
        figures["lives"] += 1
        figures["records"] += len(recording.journal.writes) - recording.first
        seconds = time.monotonic() - began
        print(
            f"{name} on {kind.name}: {checked.instants} instants, {len(checked.failures)} broken"
            f" promises, {seconds:.1f} s",
            flush=True,
        )
    return figures


if __name__ == "__main__":
    logging.disable()
    folder_name, kind_name, count_text, seed_text, *subject_names = sys.argv[1:]
    result = explore(
        FILE_SYSTEMS[kind_name],
        subject_names or list(SUBJECTS),
        int(count_text),
        int(seed_text),
        Path(folder_name),
    )
    Path(folder_name, REPORT).write_text(json.dumps(result))
