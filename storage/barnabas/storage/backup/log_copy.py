"""
One log: copied while records are appended to it, deleted from it and compacted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from stat import S_IMODE, S_IRWXU
from threading import Event
from typing import Final, NamedTuple, TypeAlias

from barnabas.storage.clock import Clock
from barnabas.storage.state_files.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    offset_from_file_name,
)

TRIES: Final = 50
PAUSE_S: Final = 0.1
"""
How often a log is copied that changes under the copy, and the pause in between. The swap of a
compacted segment takes milliseconds.
"""
PIECE_BYTES: Final = 1 << 20
SNAPSHOT_OF_METADATA_SUFFIX: Final = ".checkpoint"
_SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_LEFT_OUT: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp", ".part")


class BackupFailed(Exception):
    """
    A backup cannot be made; the sentence says why.
    """


class Version(NamedTuple):
    """
    What tells one version of a file from another.
    """

    inode: int
    size: int
    changed_ns: int


@dataclass(slots=True)
class Copied:
    """
    How much was copied, and how much was there already.
    """

    logs: int = 0
    segments: int = 0
    copied_bytes: int = 0
    linked_bytes: int = 0
    is_later: bool = False
    """Whether a log has records that were appended after the listing."""

    def add(self, other: Copied) -> None:
        self.logs += other.logs
        self.segments += other.segments
        self.copied_bytes += other.copied_bytes
        self.linked_bytes += other.linked_bytes
        self.is_later |= other.is_later


class _Changed(Exception):
    """
    The log is not what it was when it was listed.
    """


class CompactedBeyond(Exception):
    """
    The last segment of the listing was compacted: the end that the log had then is not known.
    """


Listing: TypeAlias = Mapping[str, Version]
"""
The files of a log, by name.
"""


def copy_log(
    source: Path,
    target: Path,
    previous: Path,
    listing: Listing,
    *,
    is_served: bool,
    clock: Clock,
    may_be_later: bool = True,
) -> Copied | None:
    """
    Copy the log *source* as it was when it was listed into a new directory *target*.

    Args:
        previous: the same log in an earlier backup; it need not exist.
        is_served: whether a broker has the log: then the indexes of its last segment have room for
            more, and a start makes them from the segment.
        may_be_later: whether the copy may have records that were appended after the listing, if the
            last segment was compacted meanwhile.

    Returns:
        None if the log is gone: its topic was deleted.

    Raises:
        BackupFailed: the log does not keep still.
        CompactedBeyond: the copy would have later records, and may not.
    """
    active = _active_of(listing)
    is_later = False
    for _ in range(TRIES):
        try:
            copied = _copy_once(source, target, previous, listing, is_served=is_served)
            copied.is_later = is_later
            return copied
        except FileNotFoundError:
            if not source.is_dir():
                shutil.rmtree(target, ignore_errors=True)
                return None
        except _Changed:
            pass
        shutil.rmtree(target, ignore_errors=True)
        clock.wait(Event(), PAUSE_S)
        with suppress(FileNotFoundError):
            found = versions(source)
            if _has_active(found, active, listing):
                listing = _as_long_as(found, active, listing)
            elif may_be_later:
                listing, active, is_later = found, _active_of(found), True
            else:
                raise CompactedBeyond
    raise BackupFailed(f"{source} has changed {TRIES} times while it was copied")


def _active_of(listing: Listing) -> str:
    return max((name for name in listing if name.endswith(LOG_SUFFIX)), default="")


def _has_active(found: Listing, active: str, listing: Listing) -> bool:
    """
    Whether the last segment of the *listing* is there, and has only grown.
    """
    if active not in listing:
        return active not in found
    return active in found and found[active].inode == listing[active].inode


def _as_long_as(found: Listing, active: str, listing: Listing) -> Listing:
    """
    What was *found* later, without the records that have come since the *listing*.
    """
    if active not in listing:
        return found
    end = offset_of(active)
    kept = {
        name: version
        for name, version in found.items()
        if not _is_of_segment(name) or offset_of(name) <= end
    }
    kept[active] = found[active]._replace(size=listing[active].size)
    return kept


def _copy_once(
    source: Path, target: Path, previous: Path, listing: Listing, *, is_served: bool
) -> Copied:
    if any(name.endswith(SWAP_SUFFIX) for name in listing):
        raise _Changed
    copied = Copied(logs=1)
    active = _active_of(listing)
    make_directory_like(target, source)
    for name in _in_order(listing):
        is_closed = _is_of_segment(name) and offset_of(name) != offset_of(active)
        if not is_closed and is_served and name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX)):
            continue
        before = previous / name if is_closed else None
        size = listing[name].size if _is_of_segment(name) else None
        try:
            copied.add(copy_file(source / name, target / name, before, size))
        except FileNotFoundError:
            # Snapshots of producers are deleted as newer ones are written.
            if _is_of_segment(name):
                raise
        copied.segments += name.endswith(LOG_SUFFIX)
    _check_unchanged(listing, versions(source), active)
    return copied


def _check_unchanged(before: Listing, after: Listing, active: str) -> None:
    """
    Raises:
        _Changed: something was replaced, or is gone without being at the beginning of the log.
    """
    if any(name.endswith(SWAP_SUFFIX) for name in after):
        raise _Changed
    first = min((offset_of(name) for name in after if name.endswith(LOG_SUFFIX)), default=0)
    for name, version in before.items():
        if name.endswith(SNAPSHOT_OF_METADATA_SUFFIX):
            if name not in after:  # and with it perhaps the records behind it
                raise _Changed
        elif _is_of_segment(name):
            now = after.get(name)
            if now is None:
                if offset_of(name) >= first:
                    raise _Changed
                continue
            if name.startswith(active.removesuffix(LOG_SUFFIX)):  # it may have grown
                now = now._replace(size=version.size, changed_ns=version.changed_ns)
            if now != version:
                raise _Changed


def versions(directory: Path) -> dict[str, Version]:
    """
    The files of *directory*.

    Raises:
        FileNotFoundError: it is gone.
    """
    found = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                stat = entry.stat(follow_symlinks=False)
                if entry.is_file(follow_symlinks=False):
                    found[entry.name] = Version(stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


def _in_order(listing: Listing) -> Iterator[str]:
    """
    The small files first, then the segments, each before its indexes.
    """
    kept = [name for name in listing if not name.endswith(_LEFT_OUT)]
    yield from sorted(name for name in kept if not _is_of_segment(name))
    yield from sorted(
        (name for name in kept if _is_of_segment(name)),
        key=lambda name: (offset_of(name), not name.endswith(LOG_SUFFIX), name),
    )


def _is_of_segment(name: str) -> bool:
    return name.endswith(_SEGMENT_SUFFIXES)


def offset_of(name: str) -> int:
    """
    The base offset of a segment, of which *name* is a file; -1 if it has no number.
    """
    try:
        return offset_from_file_name(name)
    except ValueError:
        return -1


def copy_file(source: Path, target: Path, previous: Path | None, size: int | None) -> Copied:
    """
    Copy *source*, with its time and permissions, and wait until the copy is on the disk.

    Args:
        size: how many bytes; None is all.
        previous: an earlier copy, which becomes the new one too if the file has not changed.
    """
    with source.open("rb", buffering=0) as reading:
        stat = os.fstat(reading.fileno())
        if previous is not None and _is_same(previous, stat):
            with suppress(OSError):  # of another disk, or linked too often
                os.link(previous, target)
                return Copied(linked_bytes=stat.st_size)
        with open(target, "xb", buffering=0, opener=_private) as writing:
            left = size = stat.st_size if size is None else size
            while left and (piece := reading.read(min(left, PIECE_BYTES))):
                writing.write(piece)
                left -= len(piece)
            os.fchmod(writing.fileno(), S_IMODE(stat.st_mode))
            os.fsync(writing.fileno())
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return Copied(copied_bytes=size - left)


def make_directory_like(target: Path, *sources: Path) -> None:
    """
    Make *target* with the permissions that all *sources* grant, and every one for its owner.
    """
    target.mkdir(mode=S_IRWXU)
    granted = reduce(and_, [S_IMODE(source.stat().st_mode) for source in sources])
    target.chmod(granted | S_IRWXU)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_same(previous: Path, stat: os.stat_result) -> bool:
    try:
        found = previous.stat()
    except OSError:
        return False
    return (found.st_size, found.st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
