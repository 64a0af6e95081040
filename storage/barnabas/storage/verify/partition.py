"""
The log of one partition: its files, its segments from the first to the last, and its end.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.storage.clock import Clock
from barnabas.storage.errors import CorruptCheckpoint, InvalidQuorumState, KafkaStorageError
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX
from barnabas.storage.readonly.files import read_if_exists
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.checkpoints import LEADER_EPOCH_CHECKPOINT
from barnabas.storage.state_files.file_names import (
    CLEANED_SUFFIX,
    CLUSTER_METADATA_TOPIC,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SET_ASIDE_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from barnabas.storage.state_files.partition_metadata import (
    PARTITION_METADATA,
    PartitionMetadataFile,
    format_partition_metadata,
)
from barnabas.storage.state_files.quorum_state import QUORUM_STATE, QuorumState
from barnabas.storage.verify import invariants
from barnabas.storage.verify.context import DirectoryState, LogContext, check_leftovers
from barnabas.storage.verify.epochs import EpochCheck
from barnabas.storage.verify.metadata_snapshots import check_metadata_snapshot
from barnabas.storage.verify.producers import ProducerCheck
from barnabas.storage.verify.report import FileReport, VerifyReport
from barnabas.storage.verify.segment import LogProgress, SegmentCheck, SegmentContext

_LEFTOVERS: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX, ".part")
_INDEXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
_SEGMENT_FILE: Final = re.compile(
    rf"[0-9]+({'|'.join(map(re.escape, (LOG_SUFFIX, *_INDEXES, PRODUCER_SNAPSHOT_SUFFIX)))})"
)
_METADATA_SNAPSHOT: Final = re.compile(r"[0-9]{20}-([0-9]{10})\.checkpoint")
_OTHERS: Final = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)


class PartitionCheck:
    """
    Checks one log, once.
    """

    def __init__(
        self, partition: PartitionDirectory, context: LogContext, report: VerifyReport, clock: Clock
    ) -> None:
        self._partition = partition
        self._context = context
        self._totals = report
        self._clock = clock
        self._report = FileReport(report.add, partition.path)
        self._is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
        segments = partition.segments
        self._recovery_base = self._first_recovered(segments)
        first = segments[0].base_offset if segments else 0
        self._progress = LogProgress(
            end_offset=first, next_offset=first, may_be_compacted=context.may_be_compacted
        )

    def _first_recovered(self, segments: tuple[ReadOnlySegment, ...]) -> int | None:
        """
        The base offset of the first segment that the next start recovers; None if there is none.
        """
        point = self._context.recovery_point
        if self._context.state is not DirectoryState.CRASHED or not segments:
            return None
        if self._is_metadata:
            # Every start recovers all of it, and every append is synced: only the last append can
            # be torn.
            return segments[-1].base_offset
        if point is None:
            return None
        return max((each.base_offset for each in segments if each.base_offset <= point), default=0)

    def run(self) -> None:
        self._totals.logs += 1
        self._check_names()
        self._check_partition_metadata()
        epochs = EpochCheck(self._partition, self._report)
        first = self._progress.end_offset
        producers = ProducerCheck(
            self._partition, self._report, self._clock, self._context, first_offset=first
        )
        segments = self._partition.segments
        for number, segment in enumerate(segments, 1):
            following = segments[number] if number < len(segments) else None
            self._check_segment(segment, following, epochs, producers)
        if not segments and not self._context.live:
            # A crash may come between the creation of the directory and that of the segment.
            is_new = not self._context.recovery_point
            self._report.add(invariants.SEGMENT_MISSING, "no segment", "one or more", mended=is_new)
        progress = self._progress
        if not self._context.live:
            epochs.end(2**63 if progress.end_damaged else progress.end_offset)
        producers.end(
            progress.end_offset,
            [segment.base_offset for segment in segments],
            is_end_known=not progress.end_damaged,
        )
        self._check_ends()

    # Segments.

    def _check_segment(
        self,
        segment: ReadOnlySegment,
        following: ReadOnlySegment | None,
        epochs: EpochCheck,
        producers: ProducerCheck,
    ) -> None:
        context, base = self._context, segment.base_offset
        mended = self._recovery_base is not None and base >= self._recovery_base
        report = FileReport(self._totals.add, segment.path, mended=mended)
        self._begin_segment(base, report, producers)
        active = following is None and context.state is not DirectoryState.CLEAN
        surroundings = SegmentContext(
            next_base_offset=None if following is None else following.base_offset,
            closed=not active,
            live=active and context.live,
            may_have_zeros=active and (context.live or context.preallocate is True),
        )
        self._totals.segments += 1
        try:
            SegmentCheck(
                segment,
                surroundings,
                self._progress,
                report=report,
                totals=self._totals,
                epochs=epochs,
                producers=producers,
            ).run()
        except FileNotFoundError:
            # A broker has removed it, or compaction has replaced it.
            self._forget(producers)
        except KafkaStorageError as error:
            report.add(invariants.UNREADABLE, str(error), "a file that can be read")
            self._forget(producers)
        finally:
            segment.give_back()

    def _begin_segment(self, base: int, report: FileReport, producers: ProducerCheck) -> None:
        progress = self._progress
        end = progress.next_offset
        if end is not None and end < base:
            if not progress.may_be_compacted:
                found, expected = (
                    f"a segment that begins with {base}",
                    f"one that begins with {end}",
                )
                report.add(invariants.SEGMENT_MISSING, found, expected, offset=end)
            producers.gap(base)
        elif progress.end_offset > base:
            # The overlap is reported already. Batches that are there twice cannot be replayed.
            producers.unknown()
        progress.end_offset = progress.next_offset = base

    def _forget(self, producers: ProducerCheck) -> None:
        producers.unknown()
        self._progress.next_offset = None
        self._progress.end_damaged = True

    # Files.

    def _check_names(self) -> None:
        names = frozenset(self._partition.names)
        leftovers: list[str] = []
        for name in self._partition.names:
            report = self._report.beside(self._partition.path / name)
            if name.endswith(_LEFTOVERS):
                leftovers.append(name)
            elif _SEGMENT_FILE.fullmatch(name):
                log = name[: name.index(".")] + LOG_SUFFIX
                if name.endswith(_INDEXES) and log not in names and not self._context.live:
                    report.add(invariants.ORPHAN_INDEX, "an index", f"{log}, or no index")
            elif self._is_metadata and (snapshot := _METADATA_SNAPSHOT.fullmatch(name)):
                epoch = int(snapshot[1])
                check_metadata_snapshot(self._partition.files, report, epoch)
            elif self._is_metadata and name == QUORUM_STATE:
                self._check_quorum_state(report)
            elif name not in _OTHERS and SET_ASIDE_SUFFIX not in name:
                report.add(invariants.UNKNOWN_FILE, "a file", "none")
        check_leftovers(leftovers, self._context.state, self._report)

    def _check_quorum_state(self, report: FileReport) -> None:
        try:
            QuorumState.read(self._partition.path, self._partition.files)
        except InvalidQuorumState as error:
            report.add(invariants.QUORUM_STATE, str(error), "the outcome of the last election")
        except KafkaStorageError as error:
            report.add(invariants.UNREADABLE, str(error), "a file that can be read")

    def _check_partition_metadata(self) -> None:
        report = self._report.beside(self._partition.path / PARTITION_METADATA)
        try:
            metadata = self._partition.partition_metadata
        except CorruptCheckpoint as error:
            report.add(invariants.PARTITION_METADATA, str(error), "a version and a topic id")
            return
        if metadata is None and self._partition.mark == "":
            # A broker writes it soon after the creation of the log, and before the first record.
            is_new = not any(segment.size for segment in self._partition.segments)
            if not (is_new and self._context.live):
                report.add(invariants.PARTITION_METADATA, "no file", "a topic id", mended=is_new)
        elif metadata is not None:
            self._check_text(metadata, report)

    def _check_text(self, metadata: PartitionMetadataFile, report: FileReport) -> None:
        """
        Check the names in front of the colons and the version. No broker reads them, and no release
        has written others.
        """
        data = read_if_exists(self._partition.files, report.path)
        expected = format_partition_metadata(metadata.topic_id)
        if data is not None and data.split() != expected.split():
            report.add(invariants.PARTITION_METADATA, repr(data), repr(expected))

    def _check_ends(self) -> None:
        """
        Compare the checkpoints with the end of the log.
        """
        context, progress = self._context, self._progress
        end, damaged = progress.end_offset, progress.end_damaged
        # After a crash a damaged end is cut off, which loses only records that were not flushed.
        # After a clean stop good batches may be behind the damage, which is reported already.
        if not (damaged and context.state is DirectoryState.CLEAN):
            self._check_end(invariants.RECOVERY_POINT, context.recovery_point, end)
        if not damaged:
            self._check_end(invariants.LOG_START_OFFSET, context.log_start_offset, end)
            self._check_end(invariants.HIGH_WATERMARK, context.high_watermark, end)
            self._check_end(invariants.CLEANER_OFFSET, context.cleaner_offset, end)

    def _check_end(self, invariant: invariants.Invariant, offset: int | None, end: int) -> None:
        if offset is not None and offset > end:
            self._report.add(invariant, f"offset {offset}", f"up to {end}", offset=offset)
