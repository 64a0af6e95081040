"""
All log directories of a node, in the order in which a copy of them holds together.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.storage.backup.log_copy import (
    BackupFailed,
    CompactedBeyond,
    Copied,
    Listing,
    copy_file,
    copy_log,
    make_directory_like,
    versions,
)
from barnabas.storage.clock import Clock
from barnabas.storage.directories.directory import LOCK_FILE
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.fs.disk_lock import DiskLock
from barnabas.storage.state_files.checkpoints import CLEAN_SHUTDOWN_FILE
from barnabas.storage.state_files.file_names import (
    CLUSTER_METADATA_TOPIC,
    DELETE_DIR_SUFFIX,
    parse_topic_partition_name,
)
from barnabas.storage.state_files.meta_properties import META_PROPERTIES
from barnabas.storage.state_files.quorum_state import QUORUM_STATE

PARTIAL: Final = ".partial"
_NAME_FORMAT: Final = "%Y-%m-%dT%H-%M-%SZ"
LISTINGS: Final = 5
"""
How often all logs are listed, if those that are first are compacted while they are copied.
"""
_LAST: Final = 2
_MARKS: Final = (LOCK_FILE, CLEAN_SHUTDOWN_FILE, f"{CLUSTER_METADATA_TOPIC}-0/{QUORUM_STATE}")
_FIRST: Final = ("__consumer_offsets", "__share_group_state", "__transaction_state")


class Backup(NamedTuple):
    """
    A backup that was made.
    """

    path: Path
    previous: Path | None
    copied: Copied


def order(topic: str) -> int:
    """
    When the logs of *topic* are listed: everything that was written since is not in the copy.

    Offsets before the records that they are about: a group continues at an offset that is there.
    If their log cannot be copied as it was then, all logs are listed again.
    States of transactions before the records too: a transaction that the copy has as open is ended
    by its timeout, whatever the records say, whereas markers that are missing would never be
    written. Metadata last: it has the ids of all producers in the copied records, so that none is
    given to another producer.
    """
    if topic in _FIRST:
        return 0
    return _LAST if topic == CLUSTER_METADATA_TOPIC else 1


def back_up(directories: Sequence[Path], target: Path, clock: Clock) -> Backup:
    """
    Make a backup of all log *directories* of one node in the directory *target*.

    Args:
        clock: its time names the backup.

    Raises:
        BackupFailed: a directory is none of a broker, or changes too much; another backup is made
            in *target*; or *target* lies in a log directory.
        OSError: something cannot be read or written. What was copied is removed.
    """
    _check(directories, target)
    target.mkdir(parents=True, exist_ok=True)
    lock = DiskLock.acquire(target / LOCK_FILE)
    if lock is None:
        raise BackupFailed(f"another backup is being made in {target}")
    try:
        partial = target / PARTIAL
        shutil.rmtree(partial, ignore_errors=True)
        previous = max(complete(target), default=None)
        try:
            copied = _copy_all(directories, partial, previous, clock)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        path = target / _free_name(target, clock.now_ms())
        partial.rename(path)
        sync_directory(target)
    finally:
        lock.release()
    return Backup(path, previous, copied)


def complete(target: Path) -> list[Path]:
    """
    The backups in *target*, the oldest one first.
    """
    return sorted(path for path in target.glob("[0-9]*T*Z*") if path.is_dir())


def prune(target: Path, keep: int) -> list[Path]:
    """
    Remove all backups in *target* but the newest *keep* ones, and return them.
    """
    removed = complete(target)[:-keep]
    for path in removed:
        shutil.rmtree(path)
    return removed


def _check(directories: Sequence[Path], target: Path) -> None:
    place = target.absolute()
    for directory in directories:
        if not (directory / META_PROPERTIES).is_file():
            raise BackupFailed(f"{directory} is no log directory: it has no {META_PROPERTIES}")
        if place.is_relative_to(directory.absolute()):
            raise BackupFailed(f"{target} lies in the log directory {directory}")


def _free_name(target: Path, now_ms: int) -> str:
    name = datetime.fromtimestamp(now_ms // 1000, UTC).strftime(_NAME_FORMAT)
    number, free = 1, name
    while (target / free).exists():
        number += 1
        free = f"{name}-{number:03d}"
    return free


def _copy_all(
    directories: Sequence[Path], partial: Path, previous: Path | None, clock: Clock
) -> Copied:
    for _ in range(LISTINGS):
        try:
            return _copy(directories, partial, previous, clock)
        except CompactedBeyond:
            # Of a log that is copied first: little is lost.
            shutil.rmtree(partial)
    raise BackupFailed(
        f"the logs of groups and transactions were compacted {LISTINGS} times while they were"
        " copied: make the backup again"
    )


def _copy(
    directories: Sequence[Path], partial: Path, previous: Path | None, clock: Clock
) -> Copied:
    served = is_served(directories)
    run = _marks_of_run(directories)
    names = dict(zip(directories, _names_in(directories), strict=True))
    make_directory_like(partial, *directories)
    copied = Copied()
    for directory, name in names.items():
        make_directory_like(partial / name, directory)
        copied.add(_copy_files(directory, partial / name))
    # All at once, so that the copy is of one moment: that takes some milliseconds.
    for log, listed in _list_logs(directories):
        place = Path(names[log.parent], log.name)
        rank = order(parse_topic_partition_name(log).topic)
        # Metadata are not older than the records: see ``order``.
        listing = versions(log) if rank == _LAST and copied.is_later else listed
        of_log = copy_log(
            log,
            partial / place,
            partial if previous is None else previous / place,
            listing,
            is_served=served,
            clock=clock,
            may_be_later=rank != 0,
        )
        if of_log is not None:
            copied.add(of_log)
    if is_served(directories) != served or _marks_of_run(directories) != run:
        raise BackupFailed("a broker was started or stopped meanwhile: make the backup again")
    if not served:
        for directory, name in names.items():
            if (directory / CLEAN_SHUTDOWN_FILE).exists():
                shutil.copy2(directory / CLEAN_SHUTDOWN_FILE, partial / name)
    for inner, _, _ in os.walk(partial):
        sync_directory(Path(inner))
    return copied


def is_served(directories: Sequence[Path]) -> bool:
    """
    Whether a broker runs on them.
    """
    return any(DiskLock.is_held(directory / LOCK_FILE) for directory in directories)


def _marks_of_run(directories: Sequence[Path]) -> object:
    """
    What another run of a broker changes, even one that has begun and ended between two looks: who
    holds the lock, when it was taken, the file of a clean stop, and the state of the quorum, which
    has an election in each run.
    """
    return [
        (
            DiskLock.holder(directory / LOCK_FILE),
            *(_mark_of(directory / name) for name in _MARKS),
        )
        for directory in directories
    ]


def _mark_of(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def _names_in(directories: Sequence[Path]) -> Iterator[str]:
    """
    The names of the log directories in the backup: their own, with a number where two are the same.
    """
    used: set[str] = set()
    for directory in directories:
        name = base = directory.absolute().name or "data"
        number = 1
        while name in used:
            number += 1
            name = f"{base}-{number}"
        used.add(name)
        yield name


def _copy_files(directory: Path, target: Path) -> Copied:
    """
    Copy the files that lie directly in a log directory, without the marks of a process.
    """
    copied = Copied()
    for name in versions(directory):
        if name not in (LOCK_FILE, CLEAN_SHUTDOWN_FILE) and not name.endswith(".tmp"):
            copied.add(copy_file(directory / name, target / name, None, None))
    return copied


def _list_logs(directories: Sequence[Path]) -> list[tuple[Path, Listing]]:
    """
    The logs and their files, in the order in which they are to be looked at.
    """
    logs = [log for directory in directories for log in _logs_of(directory)]
    logs.sort(key=lambda log: order(parse_topic_partition_name(log).topic))
    listed: list[tuple[Path, Listing]] = []
    for log in logs:
        with suppress(FileNotFoundError):
            listed.append((log, versions(log)))
    return listed


def _logs_of(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.name.endswith(DELETE_DIR_SUFFIX) or not path.is_dir():
            continue
        with suppress(InvalidLogDirectory):
            parse_topic_partition_name(path)
            yield path


def sync_directory(directory: Path) -> None:
    """
    Wait until the names in *directory* are on the disk.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
