"""
The check that no record of an aborted transaction becomes a row because its index is missing.

Kafka makes the ``.txnindex`` of a segment with its first entry, so a segment without one looks like
a segment without aborted transactions. The markers in the log itself tell the difference: a range
whose transactional records were taken for committed ones must not meet their ABORT marker. The
marker may lie behind the range, so the batches there are read until every transaction has ended.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline.decoding.batch_headers import (
    Headers,
    any_has_flag,
    has_flag,
    last_offsets,
)
from barnabas.pipeline.errors import MissingTransactionIndex
from barnabas.pipeline.logs.chunks import HEADER_CHUNK_BYTES, Chunk, SegmentScan
from barnabas.pipeline.logs.indexes import position_of
from barnabas.pipeline.reading.gathered_batches import ChunkPiece
from barnabas.pipeline.reading.plan import SegmentRange
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records.batch import (
    CONTROL_FLAG,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
    read_batch,
)
from barnabas.protocol.records.control import ControlRecordType
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.file_names import (
    offset_from_file_name,
    transaction_index_file,
)


class UnverifiedTransactions:
    """
    The transactions of one partition with records that were taken for committed ones, and whose
    end was not seen yet.
    """

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """The first such offset by producer."""
        self._range: SegmentRange | None = None
        self._files: Files
        self._next_offset = 0
        """Behind the last batch that was seen."""

    def begin(self, piece: SegmentRange, files: Files) -> None:
        """
        Continue with *piece*; the transactions of another place are followed to their ends first.

        Raises:
            MissingTransactionIndex: one of them was aborted.
        """
        before = self._range
        if before is not None and self._open:
            is_next = before.directory == piece.directory and (
                before.offsets.end == piece.offsets.start
            )
            if not is_next:
                self.finish()
        self._range, self._files, self._next_offset = piece, files, piece.offsets.start

    def note(self, path: str, chunk: Chunk, kept: Headers) -> None:
        """
        Look at a *chunk* of the segment *path*, of which the batches *kept* become rows.

        Raises:
            CorruptBatch: a marker cannot be read.
            MissingTransactionIndex: a transaction was aborted whose records are among them.
        """
        headers = chunk.headers
        if any_has_flag(headers, TRANSACTIONAL_FLAG):
            transactional = headers[has_flag(headers, TRANSACTIONAL_FLAG)]
            rows = {*kept["position"].tolist()}
            for index, (producer, offset, position, is_marker) in enumerate(
                zip(
                    transactional["producer_id"].tolist(),
                    transactional["base_offset"].tolist(),
                    transactional["position"].tolist(),
                    has_flag(transactional, CONTROL_FLAG).tolist(),
                    strict=True,
                )
            ):
                if position in rows:
                    self._open.setdefault(producer, offset)
                elif is_marker and producer in self._open:
                    marker = ChunkPiece(path, chunk, transactional[index : index + 1])
                    self._end(marker, self._open.pop(producer))
        self._next_offset = max(self._next_offset, int(last_offsets(headers[-1:])[0]) + 1)

    def finish(self) -> None:
        """
        Read on behind the range until all transactions have ended.

        Raises:
            MissingTransactionIndex: one of them was aborted.
        """
        piece = self._range
        if piece is None or not self._open:
            return
        try:
            segments = PartitionDirectory(Path(piece.directory), self._files).segments
            bases = [segment.base_offset for segment in segments][1:]
            for segment, next_base in zip(segments, [*bases, None], strict=True):
                if next_base is not None and next_base <= self._next_offset:
                    continue
                position = position_of(self._files, segment, self._next_offset)
                with opened(self._files, segment.path) as file:
                    for chunk in SegmentScan(file, position, segment.size, HEADER_CHUNK_BYTES):
                        behind = last_offsets(chunk.headers) >= self._next_offset
                        later = chunk._replace(headers=chunk.headers[behind])
                        if len(later.headers):
                            self.note(str(segment.path), later, later.headers[:0])
                        if not self._open:
                            return
        except FileNotFoundError:
            # Retention has deleted what was read here, and its markers.
            pass
        self._open.clear()

    def _end(self, marker: ChunkPiece, first_offset: int) -> None:
        start, length = marker.headers["position"][0], marker.headers["batch_length"][0]
        data = memoryview(marker.chunk.data)[start : start + length + LOG_OVERHEAD]
        try:
            (record,) = read_batch(data.toreadonly()).records()
            is_aborted = ControlRecordType.of(record.key) is ControlRecordType.ABORT
        except (KafkaError, ValueError) as error:
            raise marker.corrupt(0, f"its marker cannot be read: {error}") from error
        if is_aborted:
            segment = offset_from_file_name(Path(marker.path).name)
            path = transaction_index_file(Path(marker.path).parent, segment)
            raise MissingTransactionIndex(str(path), first_offset, record.offset)
