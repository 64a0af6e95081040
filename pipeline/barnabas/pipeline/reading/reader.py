"""
The rows of a task.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence

import pyarrow as pa

from barnabas.pipeline.decoding.batch_headers import Headers, last_offsets
from barnabas.pipeline.decoding.decode import RowPartition, Wanted, bad_checksums
from barnabas.pipeline.errors import CorruptBatch, OldFormat
from barnabas.pipeline.logs.chunks import Chunk, SegmentScan, Stop
from barnabas.pipeline.logs.headers import HeaderScan
from barnabas.pipeline.logs.indexes import next_indexed
from barnabas.pipeline.options import IsolationLevel, Mode, ReadOptions
from barnabas.pipeline.reading.batch_rows import batch_rows
from barnabas.pipeline.reading.gathered_batches import ChunkPiece, GatheredBatches
from barnabas.pipeline.reading.kept_batches import batches_with_rows, in_range
from barnabas.pipeline.reading.kept_memory import keep_memory
from barnabas.pipeline.reading.open import OpenedRange, files_of, open_sources
from barnabas.pipeline.reading.plan import SegmentRange, Work
from barnabas.pipeline.reading.segment_rows import segment_rows
from barnabas.pipeline.reading.unverified_transactions import UnverifiedTransactions
from barnabas.pipeline.schemas import RowLevel
from barnabas.storage.fs.disk import DiskFiles

logger = logging.getLogger(__name__)

RowBatches = Generator[pa.RecordBatch, None, Stop | None]
"""Ends with where there was no whole batch, if so."""


def read(work: Work, columns: Sequence[str], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """
    The rows of one task, of the level that the options say.

    Args:
        columns: of that level's schema, in the order that the rows are to have.

    Raises:
        CorruptBatch: a batch cannot be read, unless the options say what to do with it.
        DataLoss: offsets were deleted since the plan was made, unless the options say to go on.
        MissingDirectory: this machine does not have a log directory.
        MissingTransactionIndex: records of an aborted transaction would be rows.
    """
    if options.level is RowLevel.SEGMENTS:
        for piece in work.ranges:
            yield from segment_rows(piece, columns, options)
        return
    reader = _Reader(columns, options)
    for piece in work.ranges:
        yield from reader.rows(piece)
    yield from reader.rest()


class _Reader:
    """
    Reads range after range.
    """

    def __init__(self, columns: Sequence[str], options: ReadOptions) -> None:
        keep_memory()
        self._options = options
        self._columns = tuple(columns)
        self._wanted = Wanted(self._columns, max_batch_bytes=options.max_batch_bytes)
        self._gathered = GatheredBatches(self._wanted, self._corrupt)
        self._transactions = UnverifiedTransactions()
        self._range: SegmentRange
        self._place: RowPartition
        self._next_offset: int
        """Behind the last batch of the range that was seen."""

    def rows(self, piece: SegmentRange) -> Iterator[pa.RecordBatch]:
        """
        Rows of a range, and of those before it; some may still be missing.
        """
        self._range = piece
        self._place = RowPartition(*piece.topic_partition)
        self._next_offset = piece.offsets.start
        self._transactions.begin(piece, files_of(piece.url, self._options.storage))
        with open_sources(piece, self._options) as sources:
            for source in sources:
                yield from self._rows_of(source)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """
        The rows that were still missing.
        """
        self._transactions.finish()
        yield from self._gathered.rows()

    def _rows_of(self, source: OpenedRange) -> Iterator[pa.RecordBatch]:
        rows_from = self._batches if self._options.level is RowLevel.BATCHES else self._records
        position: int | None = source.position
        while position is not None:
            stop = yield from rows_from(source, position)
            if stop is None:
                return
            yield from self._gathered.rows()
            yield from self._corrupt(self._place, self._stopped(source, stop))
            position = self._behind(source, stop)

    def _batches(self, source: OpenedRange, position: int) -> RowBatches:
        is_local = isinstance(files_of(self._range.url, self._options.storage), DiskFiles)
        scan = HeaderScan(source.file, position, source.end_position, is_local=is_local)
        for headers in scan:
            wanted = headers[in_range(headers, self._range.offsets)]
            rows = batch_rows(wanted, self._place, self._range.base_offset, self._columns)
            if rows.num_rows:
                yield rows
            if self._is_over(headers):
                return None
        return scan.stop

    def _records(self, source: OpenedRange, position: int) -> RowBatches:
        scan = SegmentScan(source.file, position, source.end_position, self._options.chunk_bytes)
        for chunk in scan:
            yield from self._rows_in(source, chunk)
            if self._is_over(chunk.headers):
                return None
            del chunk
        return scan.stop

    def _is_over(self, headers: Headers) -> bool:
        """
        Whether no batch behind these has any of the offsets.
        """
        self._next_offset = int(last_offsets(headers[-1:])[0]) + 1
        return self._next_offset >= self._range.offsets.end

    def _rows_in(self, source: OpenedRange, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        offsets = self._range.offsets
        piece = ChunkPiece(
            str(source.path), chunk, batches_with_rows(chunk.headers, offsets, self._range.aborted)
        )
        if self._options.isolation_level is IsolationLevel.READ_COMMITTED:
            self._transactions.note(piece.path, chunk, piece.headers)
        start = 0
        for bad in bad_checksums(chunk.data, piece.headers):
            good = piece._replace(headers=piece.headers[start:bad])
            yield from self._gathered.add(self._place, offsets, good)
            yield from self._gathered.rows()
            reason = "the batch does not have the CRC that its header says"
            yield from self._corrupt(self._place, piece.corrupt(bad, reason))
            start = bad + 1
        rest = piece._replace(headers=piece.headers[start:])
        yield from self._gathered.add(self._place, offsets, rest)

    # What cannot be read.

    def _stopped(self, source: OpenedRange, stop: Stop) -> CorruptBatch:
        kind = OldFormat if stop.is_old_format else CorruptBatch
        return kind(str(source.path), stop.position, self._next_offset, stop.reason)

    def _corrupt(self, place: RowPartition, error: CorruptBatch) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            CorruptBatch: unless the options say otherwise. An old format is not corruption that one
                could pass over.
        """
        mode = self._options.mode
        if mode is Mode.FAILFAST or isinstance(error, OldFormat):
            raise error
        logger.warning("%s", error)
        if mode is Mode.PERMISSIVE and self._options.level is RowLevel.RECORDS:
            row = {
                "topic": place.topic,
                "partition": place.partition,
                "offset": error.offset,
                self._options.corrupt_column: str(error),
            }
            yield pa.RecordBatch.from_pylist([row], schema=self._wanted.schema)

    def _behind(self, source: OpenedRange, stop: Stop) -> int | None:
        """
        Where the next batch begins of which the index knows; what is between cannot be read.
        """
        files = files_of(self._range.url, self._options.storage)
        position = next_indexed(files, source.path, stop.position)
        return None if position is None or position >= source.end_position else position
