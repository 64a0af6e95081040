"""
At which offset each leader epoch of a log begins.

A client that has lost its place asks where an epoch ended, and compares that with the records that
it has read (KIP-101). A broker without replicas gives its logs a new epoch at every start.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.storage.state_files.checkpoints import EpochEntry, LeaderEpochCheckpointFile

logger = logging.getLogger(__name__)

UNDEFINED_EPOCH: Final = -1

# Changes that the file does not have yet, by urgency.
_NOTHING: Final = 0
_WHAT_IS_FORGOTTEN: Final = 1
_AN_EPOCH: Final = 2

Schedule = Callable[[Callable[[], None]], object]
"""
Lets some thread do the work soon.
"""


class OffsetAndEpoch(NamedTuple):
    """
    An epoch, and the offset behind its last record.
    """

    offset: int
    epoch: int


def _at_once(work: Callable[[], None]) -> None:
    work()


class LeaderEpochFileCache:
    """
    The epochs of one log, in memory and in ``leader-epoch-checkpoint``.

    Invariants:

    1. Epochs and start offsets both grow.
    2. The file lacks no epoch that has a record: it is written before ``assign`` returns, which
       every append calls. It may have epochs that were truncated away; loading a log truncates
       again.
    3. An append does not write that epochs are forgotten: should a crash bring their records back,
       the file still has them.

    Safe from any thread: readers see an immutable tuple, changes are made one at a time.
    """

    __slots__ = (
        "_changing",
        "_checkpoint",
        "_schedule",
        "_topic_partition",
        "_unwritten",
        "entries",
    )

    def __init__(
        self,
        topic_partition: object,
        checkpoint: LeaderEpochCheckpointFile,
        entries: Iterable[EpochEntry],
        schedule: Schedule = _at_once,
    ) -> None:
        """
        Args:
            topic_partition: the name of the log in messages.
            entries: those of the file.
            schedule: for writes that no caller waits for.
        """
        self._topic_partition = topic_partition
        self._checkpoint = checkpoint
        self._schedule = schedule
        self._changing = threading.RLock()
        self.entries: tuple[EpochEntry, ...] = ()
        self._unwritten = _NOTHING
        for entry in entries:
            self._assign(entry)

    # Asking.

    @property
    def is_empty(self) -> bool:
        return not self.entries

    @property
    def earliest_entry(self) -> EpochEntry | None:
        entries = self.entries
        return entries[0] if entries else None

    @property
    def latest_entry(self) -> EpochEntry | None:
        entries = self.entries
        return entries[-1] if entries else None

    @property
    def latest_epoch(self) -> int | None:
        entries = self.entries
        return entries[-1].epoch if entries else None

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> OffsetAndEpoch | None:
        """
        The end of the last epoch that is known up to *requested_epoch*.

        An epoch older than all known ones ended at the start of the first of them. The end of later
        epochs is not known (KIP-101): None.
        """
        entries = self.entries
        if entries and entries[-1].epoch == requested_epoch:
            return OffsetAndEpoch(log_end_offset, requested_epoch)
        at = bisect_right(entries, requested_epoch, key=_epoch)
        if requested_epoch == UNDEFINED_EPOCH or at == len(entries):
            return None
        floor = entries[at - 1].epoch if at else requested_epoch
        return OffsetAndEpoch(entries[at].start_offset, floor)

    # Changing.

    def assign(self, epoch: int, start_offset: int) -> None:
        """
        *epoch* begins with *start_offset*, unless it is known to have begun before.

        Entries that are not older, or that begin later, are forgotten.

        Raises:
            ValueError: one of them is negative.
        """
        latest = self.latest_entry
        if (
            latest is not None
            and latest.epoch == epoch
            and start_offset >= latest.start_offset
            and self._unwritten != _AN_EPOCH
        ):
            return  # As for nearly every batch.
        with self._changing:
            if self._assign(EpochEntry(epoch, start_offset)) or self._unwritten == _AN_EPOCH:
                self._write()

    def begin(self, epoch: int, start_offset: int) -> None:
        """
        As ``assign``, but the file follows soon, at the latest with the first append.

        Raises:
            ValueError: one of them is negative.
        """
        with self._changing:
            if self._assign(EpochEntry(epoch, start_offset)):
                self._unwritten = _AN_EPOCH
                self._schedule(self.write_pending)

    def _assign(self, new: EpochEntry) -> bool:
        if new.epoch < 0 or new.start_offset < 0:
            raise ValueError(f"Received invalid partition leader epoch entry {new}")
        latest = self.latest_entry
        if latest and latest.epoch == new.epoch and new.start_offset >= latest.start_offset:
            return False
        kept = list(self.entries)
        removed = []
        while kept and (kept[-1].epoch >= new.epoch or kept[-1].start_offset >= new.start_offset):
            removed.append(kept.pop())
        # The removal of an epoch in which nothing was written is not worth a warning.
        if len(removed) > 1 or (removed and removed[0].start_offset != new.start_offset):
            logger.warning(
                "%s: new epoch entry %s caused truncation of conflicting entries %s",
                self._topic_partition,
                new,
                removed,
            )
        self.entries = (*kept, new)
        return True

    def truncate_from_end_async_flush(self, end_offset: int) -> None:
        """
        Forget the epochs that begin at *end_offset* or later. The file follows soon.
        """
        with self._changing:
            if end_offset < 0:
                return
            kept = tuple(entry for entry in self.entries if entry.start_offset < end_offset)
            self._replace(kept)

    def truncate_from_start_async_flush(self, start_offset: int) -> None:
        """
        Forget the epochs that ended before *start_offset*; the one it lies in begins with it now.

        The file follows soon.
        """
        with self._changing:
            entries = self.entries
            at = bisect_right(entries, start_offset, key=_start_offset)
            if at:
                self._replace((EpochEntry(entries[at - 1].epoch, start_offset), *entries[at:]))

    def _replace(self, entries: tuple[EpochEntry, ...]) -> None:
        if entries != self.entries:
            self.entries = entries
            self._unwritten = max(self._unwritten, _WHAT_IS_FORGOTTEN)
            self._schedule(self.write_pending)

    def clear_and_flush(self) -> None:
        """
        Forget all epochs.
        """
        with self._changing:
            self.entries = ()
            self._write()

    def clear(self) -> None:
        """
        Forget all epochs, but leave the file as it is: it is going to be deleted.
        """
        with self._changing:
            self.entries = ()
            self._unwritten = _NOTHING

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory of the log, which was renamed.
        """
        with self._changing:
            self._checkpoint.update_parent_dir(directory)

    def _write(self) -> None:
        self._unwritten = _AN_EPOCH  # Also where this fails: the next append tries again.
        self._checkpoint.write(self.entries)
        self._unwritten = _NOTHING

    def write_pending(self) -> None:
        """
        Write the changes that the file does not have yet.
        """
        with self._changing:
            if self._unwritten != _NOTHING:
                self._checkpoint.write_if_dir_exists(self.entries)
                self._unwritten = _NOTHING


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset
