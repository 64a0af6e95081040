"""
The directory of a log, in which segments are made, replaced and deleted.

Segments are renamed first and removed later, so that a read in progress can end. A replacement has
steps that a start can finish or undo::

    1. written in full as   .cleaned     a crash: removed
    2. renamed to           .swap        the last one first. A crash: removed, if a .cleaned is left
    3. old ones renamed to  .deleted     a crash: finished, see ``swap_files``
    4. .swap renamed to their names
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaError, TooManyOpenFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.producers.snapshots import ProducerSnapshots
from barnabas.storage.segment.segment import LogSegment, delete_stale_files
from barnabas.storage.segment.segments import LogSegments
from barnabas.storage.state_files.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SET_ASIDE_SUFFIX,
    SWAP_SUFFIX,
)
from barnabas.storage.threads.deferred_work import DeferredWork, run_all
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class SplitSegmentResult(NamedTuple):
    """
    The result of splitting a segment.
    """

    deleted_segments: list[LogSegment]
    """The old one, unless a new one has its base offset."""
    new_segments: list[LogSegment]


class SegmentDirectory:
    """
    The segments of one log and the directory they lie in.

    Invariants:

    1. The files of ``segments`` have their plain names, except for an instant in ``replace``.
    2. A segment leaves ``segments`` before its files are renamed.

    The log holds its lock for every change. Reading ``segments`` needs none.
    """

    __slots__ = (
        "clock",
        "config",
        "deferred",
        "files",
        "path",
        "segments",
        "topic_partition",
    )

    def __init__(
        self,
        path: Path,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        files: Files,
        clock: Clock,
        deferred: DeferredWork,
    ) -> None:
        self.path = path
        self.topic_partition = topic_partition
        self.config = config
        self.files = files
        self.clock = clock
        self.deferred = deferred
        self.segments = LogSegments(topic_partition)

    def update_config(self, config: LogConfig) -> None:
        self.config = config

    # Making segments.

    def open_segment(
        self,
        base_offset: int,
        *,
        file_already_exists: bool = False,
        has_txn_index: bool = False,
        suffix: str = "",
    ) -> LogSegment:
        """
        Open a segment, or make the files of a new one. It does not belong to the log yet.

        Args:
            has_txn_index: whether there is a transaction index; a new segment has none.
        """
        config = self.config
        return LogSegment(
            self.path,
            base_offset,
            config,
            self.clock,
            files=self.files,
            file_already_exists=file_already_exists,
            init_file_size=config.init_file_size,
            file_suffix=suffix,
            has_txn_index=has_txn_index,
        )

    def add_segment(self, base_offset: int) -> LogSegment:
        """
        Begin a new segment at the end of the log.
        """
        segment = self.open_segment(base_offset)
        self.segments.add(segment)
        return segment

    def create_new_cleaned_segment(self, base_offset: int) -> LogSegment:
        """
        A new segment that is going to replace others.
        """
        delete_stale_files(self.files, self.path, base_offset, CLEANED_SUFFIX)
        return self.open_segment(base_offset, suffix=CLEANED_SUFFIX)

    # Deleting segments.

    def remove_and_delete(self, segments: Iterable[LogSegment], reason: str) -> None:
        """
        Take segments out of the log and remove their files after ``file.delete.delay.ms``.
        """
        going = list(segments)
        if going:
            self._log_deletion(going, reason)
            self.segments.replace(going, ())
            self.delete_segment_files(going)

    def create_and_delete(self, new_offset: int, going: LogSegment, reason: str) -> LogSegment:
        """
        Begin a segment at *new_offset* in the place of another one.
        """
        if new_offset == going.base_offset:
            going.change_file_suffixes("", DELETED_SUFFIX)
        segment = self.open_segment(new_offset)
        self._log_deletion([going], reason)
        self.segments.replace([going], [segment])
        self.delete_segment_files([going])
        return segment

    def _log_deletion(self, going: Sequence[LogSegment], reason: str) -> None:
        offsets = f"offset {going[0].base_offset}"
        if len(going) > 1:
            offsets = f"offsets {going[0].base_offset} to {going[-1].base_offset}"
        logger.info(
            "%s: deleting %d segment%s at %s, %d bytes, due to %s",
            self.topic_partition,
            len(going),
            "s"[: len(going) > 1],
            offsets,
            sum(segment.size for segment in going),
            reason,
        )

    def delete_segment_files(self, segments: Collection[LogSegment]) -> None:
        """
        Mark the files of segments that have left the log, and remove them later.
        """
        for segment in segments:
            if not segment.has_suffix(DELETED_SUFFIX):
                segment.change_file_suffixes("", DELETED_SUFFIX)
        self.deferred.later(
            self.config.file_delete_delay_ms,
            lambda: run_all(segment.delete_if_exists for segment in segments),
        )

    def delete_producer_snapshots(
        self, snapshots: ProducerSnapshots, segments: Iterable[LogSegment]
    ) -> None:
        """
        Mark the snapshots at the bases of *segments*, which have left the log, and remove them
        later.
        """
        marked = [
            snapshot
            for segment in segments
            if (snapshot := snapshots.mark_for_deletion(segment.base_offset))
        ]
        if marked:
            self.deferred.later(
                self.config.file_delete_delay_ms,
                lambda: run_all(snapshot.delete_if_exists for snapshot in marked),
            )

    def set_aside(self, segments: Iterable[LogSegment], reason: str) -> None:
        """
        Take segments out of the log and keep their files under names that no broker reads. Nothing
        removes them.
        """
        going = list(segments)
        if not going:
            return
        taken = frozenset(self.files.names(self.path))
        self.segments.replace(going, ())
        # The last one first, so that a crash in between leaves no further gap.
        for segment in reversed(going):
            number = 0
            while f"{segment.log.path.name}{_set_aside_suffix(number)}" in taken:
                number += 1
            suffix = _set_aside_suffix(number)
            segment.change_file_suffixes("", suffix)
            segment.close_handlers()
            logger.warning(
                "%s: the segment with base offset %d (%d bytes) is set aside as %s: %s",
                self.topic_partition,
                segment.base_offset,
                segment.size,
                segment.log.path,
                reason,
            )

    # Replacing segments.

    def replace(
        self,
        new_segments: Sequence[LogSegment],
        old_segments: Sequence[LogSegment],
    ) -> list[LogSegment]:
        """
        Replace segments by others that were written under ``.cleaned``. Until ``sync`` has
        returned, a crash may leave a part of it, which the next start finishes or undoes.

        Returns:
            The old segments whose base offsets no new one has.
        """
        new = sorted(new_segments, key=_base_offset)
        # A segment may have been deleted since the caller looked.
        old = sorted(
            (segment for segment in old_segments if self.segments.contains(segment.base_offset)),
            key=_base_offset,
        )
        for segment in reversed(new):
            segment.change_file_suffixes(CLEANED_SUFFIX, SWAP_SUFFIX)
        self.segments.replace(old, new)
        for segment in old:
            self.delete_segment_files([segment])
        for segment in new:
            segment.change_file_suffixes(SWAP_SUFFIX, "")
        bases = {segment.base_offset for segment in new}
        return [segment for segment in old if segment.base_offset not in bases]

    def split_overflowed_segment(self, segment: LogSegment) -> SplitSegmentResult:
        """
        Split a segment with offsets that are too far from its base, as a broker before 2.0 could
        write them, into several.

        Raises:
            ValueError: the segment has no such offsets.
        """
        if not segment.has_overflow():
            raise ValueError(
                f"Split operation is only permitted for segments with overflow: {segment}"
            )
        logger.info("%s: splitting overflowed segment %s", self.topic_partition, segment)
        pieces: list[LogSegment] = []
        try:
            self._copy_in_pieces(segment, pieces)
        except BaseException:
            for piece in pieces:
                piece.close_handlers()
                piece.delete_if_exists()
            raise
        # From here on a failure leaves files that the next start can use.
        return SplitSegmentResult(self.replace(pieces, [segment]), pieces)

    def _copy_in_pieces(self, segment: LogSegment, pieces: list[LogSegment]) -> None:
        position = 0
        while header := next(segment.log.headers(position), None):
            piece = self.create_new_cleaned_segment(header.base_offset)
            pieces.append(piece)
            copied = piece.append_from_file(segment.log, position)
            if not copied:
                raise KafkaError(f"Failed to append records from position {position} in {segment}")
            position += copied
        if position != segment.size:
            raise KafkaError(f"{segment} has something that is no batch at its end")
        for piece in pieces:
            piece.on_become_inactive_segment()
            piece.flush()
            piece.set_last_modified(segment.last_modified())

    # The directory as a whole.

    def sync(self) -> None:
        """
        Let the names of the segments survive a crash of the machine. No lock is needed.
        """
        self.files.sync_directory(self.path)

    def rename(self, name: str) -> bool:
        """
        Rename the directory; return false if that is its name already.
        """
        renamed = self.path.with_name(name)
        if renamed == self.path:
            return False
        with self.files.open_files.renaming:
            self.files.rename(self.path, renamed)
            self.path = renamed
            self.segments.update_parent_dir(renamed)
        try:
            self.files.sync_directory(renamed.parent)
        except TooManyOpenFiles as error:
            logger.warning("A crash of the machine may undo the name of %s: %s", renamed, error)
        return True


def _set_aside_suffix(number: int) -> str:
    return f"{SET_ASIDE_SUFFIX}-{number}" if number else SET_ASIDE_SUFFIX


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset
