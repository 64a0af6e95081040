"""
What there is to archive: closed segments that are not archived yet.

An archive only grows at its end, and only by what follows there. So a plan is refused where the log
does not go on where the archive ends, or is another log than the one that was archived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet as pq

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.parquet import RangeToArchive
from barnabas.pipeline.jobs.archive.table import ArchivedPartition, ArchiveError, ArchiveTable
from barnabas.pipeline.jobs.parquet_files import ALWAYS, COLUMNS
from barnabas.pipeline.logs.partition import StoredLog
from barnabas.pipeline.option_parser import parse_options
from barnabas.pipeline.options import IsolationLevel, MiB, ReadOptions
from barnabas.pipeline.reading.plan import Work, open_logs, pack, ranges
from barnabas.pipeline.reading.reader import read
from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.state_files.file_names import log_file
from barnabas.storage.topic_partition import TopicPartition

BYTES_PER_FILE: Final = 128 * MiB

_OPTIONS: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "isolationLevel",
    "kafka.isolation.level",
    "readUpTo",
    "chunkBytes",
    "maxBatchBytes",
)
"""Those of the source that say nothing against an archive that is whole."""


def archive_options(
    path: str, options: Mapping[str, str], bytes_per_file: int = BYTES_PER_FILE
) -> ReadOptions:
    """
    How a log is read that is archived.

    Unless told otherwise, without the records of transactions that were aborted: in an archive,
    nobody could tell them from others any more.

    Args:
        path: log directories, with commas between them.
        bytes_per_file: of the log, about.

    Raises:
        InvalidOption: there is no such option, or not for archives.
    """
    known = {name.lower() for name in _OPTIONS}
    for name in options:
        if name.lower() not in known:
            raise InvalidOption(f"An archive takes {', '.join(_OPTIONS)}, and not {name}.")
    default = {"isolationlevel": IsolationLevel.READ_COMMITTED.value}
    given = {name.lower(): value for name, value in options.items()}
    if "kafka.isolation.level" in given:
        default = {}
    parsed = parse_options({**default, **given, "path": path})
    return replace(parsed, max_partition_bytes=bytes_per_file)


@dataclass(frozen=True)
class ArchivePlan:
    """
    What is to be archived of one partition.
    """

    topic_partition: TopicPartition
    archived: OffsetRange | None
    """None if there is nothing yet."""
    offsets: OffsetRange
    """What comes now; empty if there is nothing."""
    segments: int
    """In which they are."""
    ranges: tuple[RangeToArchive, ...]
    log_end_offset: int

    @property
    def log_bytes(self) -> int:
        return sum(wanted.log_bytes for wanted in self.ranges)


def plan_archive(
    archive: ArchiveTable, options: ReadOptions, *, allow_gaps: bool = False
) -> list[ArchivePlan]:
    """
    What is to be archived, by partition. Nothing is changed.

    Args:
        allow_gaps: whether offsets may be missing between segments, as they are in the log of a
            topic that is compacted on another broker.

    Raises:
        ArchiveError: the archive is not whole, or the log does not go on where it ends.
        FileNotFoundError, UnknownTopic: as ``open_logs``.
    """
    options = replace(options, storage=archive.storage)
    return [
        _Planner(archive, log, options).plan(allow_gaps=allow_gaps) for log in open_logs(options)
    ]


class _Planner:
    """
    The plan of one partition.
    """

    def __init__(self, archive: ArchiveTable, log: StoredLog, options: ReadOptions) -> None:
        self._archive = archive
        self._log = log
        self._options = options
        self._partition = log.topic_partition

    def plan(self, *, allow_gaps: bool) -> ArchivePlan:
        start = self._log.start_offset
        archived = self._archive.archived(self._partition)
        if archived is not None:
            self._check_archive(archived)
            start = archived.offsets.end
        offsets = OffsetRange(start, max(start, self._closed_end()))
        if not allow_gaps:
            self._check_segments(offsets)
        pieces = list(ranges(self._log, offsets, self._options))
        return ArchivePlan(
            self._partition,
            None if archived is None else archived.offsets,
            offsets,
            len({piece.base_offset for piece in pieces}),
            tuple(self._ranges(pack(pieces, self._options), offsets)),
            self._log.log_end_offset,
        )

    def _closed_end(self) -> int:
        """
        Where the last segment begins behind which there is another one, and whose records all may
        be read by now; the log's start if there is none.
        """
        options = self._options
        readable = self._log.end_offset(options.read_up_to, options.isolation_level)
        ends = [segment.base_offset for segment in self._log.segments[1:]]
        return max([end for end in ends if end <= readable], default=self._log.start_offset)

    def _ranges(self, works: Sequence[Work], offsets: OffsetRange) -> Iterator[RangeToArchive]:
        """
        A range begins where the one before ends, whatever offsets have no batch.
        """
        if not works:
            return
        starts = [offsets.start, *(work.ranges[0].offsets.start for work in works[1:])]
        for work, (start, end) in zip(works, pairwise([*starts, offsets.end]), strict=True):
            yield RangeToArchive(self._partition, OffsetRange(start, end), work)

    # What is refused.

    def _check_archive(self, archived: ArchivedPartition) -> None:
        end, named_by = archived.offsets.end, archived.named_by
        directory = self._log.directory.path
        if archived.isolation_level not in (None, self._options.isolation_level.value):
            raise ArchiveError(
                f"{named_by}: {self._partition} was archived with isolationLevel="
                f"{archived.isolation_level}, and can only go on so."
            )
        if self._log.start_offset > end:
            raise ArchiveError(
                f"Offsets {end} to {self._log.start_offset - 1} of {self._partition}"
                f" were deleted before they were archived: {named_by} is the last commit, and"
                f" {directory} begins at {self._log.start_offset}."
            )
        if end > self._log.log_end_offset:
            raise ArchiveError(
                f"{directory} ends at offset {self._log.log_end_offset}, and {named_by} says that"
                f" {end - 1} was archived: it is not the log that was archived."
            )
        if archived.last_file is not None:
            self._check_last_record(archived.last_file)

    def _check_last_record(self, file: str) -> None:
        """
        The last record of the archive is the one in the log, if that still has it.
        """
        try:
            with self._archive.store.open(file) as parquet:
                archived = _last_row(parquet)
        except FileNotFoundError:
            # A compaction of the table has put it into another file.
            return
        offset = archived["offset"]
        if offset < self._log.start_offset:
            return
        rows = self._rows_in(OffsetRange(offset, offset + 1))
        if rows and not _are_same(archived, rows[0]):
            raise ArchiveError(
                f"{file} and {self._log.directory.path} have different records at offset {offset}"
                f" of {self._partition}: it is not the log that was archived."
            )

    def _check_segments(self, offsets: OffsetRange) -> None:
        """
        Each segment ends where the next one begins, unless it was compacted.
        """
        cleaned = self._cleaned_up_to
        for segment, after in pairwise(self._log.segments):
            if after.base_offset <= offsets.start or after.base_offset <= cleaned:
                continue
            if after.base_offset > offsets.end:
                return
            end = self._log.end_of(segment)
            if end < after.base_offset:
                # Of what is there but cannot be read, it is better said where.
                self._rows_in(OffsetRange(end, after.base_offset))
                path = log_file(self._log.directory.path, after.base_offset)
                raise ArchiveError(
                    f"Offsets {end} to {after.base_offset - 1} of {self._partition} are missing"
                    f" before {path}, and the log was not compacted there."
                )

    def _rows_in(self, offsets: OffsetRange) -> list[dict[str, Any]]:
        """
        Raises:
            CorruptBatch: a batch there cannot be read.
        """
        work = Work(tuple(ranges(self._log, offsets, self._options)))
        return [row for batch in read(work, COLUMNS, self._options) for row in _rows(batch)]

    @property
    def _cleaned_up_to(self) -> int:
        root = self._log.log_directory.root
        return root.checkpoint(CLEANER_CHECKPOINT).get(self._partition, 0)


def _last_row(file: pq.ParquetFile) -> dict[str, Any]:
    """
    The row with the highest offset, in whatever order somebody's compaction has left them.
    """
    offsets = file.read(["offset"]).column("offset").to_numpy()
    row = int(offsets.argmax())
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if row < rows:
            # What an older version has written may lack columns.
            columns = [name for name in COLUMNS if name in file.schema_arrow.names]
            return _rows(file.read_row_group(group, columns=columns).slice(row, 1))[0]
        row -= rows
    raise AssertionError(row)


def _are_same(archived: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """
    Return True if a row of an archive is that of the log, as far as it was archived: a column that
    was added to the table later is null in rows that were there, and pyiceberg writes a null list
    as an empty one when it rewrites a file.
    """
    return all(
        value == row[name] or (value in (None, []) and name not in ALWAYS)
        for name, value in archived.items()
    )


def _rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    # No datetime is as late as a timestamp may be.
    index = table.schema.get_field_index("timestamp")
    times = table.column("timestamp").cast(pa.int64())
    rows: list[dict[str, Any]] = table.set_column(index, "timestamp", times).to_pylist()
    return rows
