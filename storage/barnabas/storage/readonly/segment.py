"""
The files of one segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptIndex
from barnabas.storage.fs.interface import Files
from barnabas.storage.index import offset_index, time_index, txn_index
from barnabas.storage.index.offset_index import OffsetPosition
from barnabas.storage.index.time_index import TimestampOffset
from barnabas.storage.index.txn_index import CURRENT_VERSION, AbortedTxn
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.index_file import IndexFile
from barnabas.storage.segment.records import FileRecords
from barnabas.storage.state_files.file_names import (
    offset_from_file_name,
    offset_index_file,
    time_index_file,
    transaction_index_file,
)


class StoredBatch(NamedTuple):
    """
    A batch, and its position in the segment: the byte at which it begins.
    """

    position: int
    batch: RecordBatch


class ReadOnlySegment:
    """
    The files of one segment, for reading.

    Size and time are those at the time when the object was made. An index is opened later, at its
    first use, and may then have entries for batches behind that size.
    """

    def __init__(self, files: Files, path: Path) -> None:
        """
        Raises:
            FileNotFoundError: the file *path* does not exist.
        """
        self._files = files
        self.path = path
        self.base_offset = offset_from_file_name(path.name)
        self.size = files.size(path)
        """Bytes of the ``.log`` file."""
        self.modified_ms = files.modified_ms(path)

    @cached_property
    def offset_index(self) -> IndexFile:
        path = offset_index_file(self.path.parent, self.base_offset)
        return IndexFile(self._files, path, offset_index.ENTRY)

    @cached_property
    def time_index(self) -> IndexFile:
        path = time_index_file(self.path.parent, self.base_offset)
        return IndexFile(self._files, path, time_index.ENTRY)

    @cached_property
    def txn_index(self) -> IndexFile:
        path = transaction_index_file(self.path.parent, self.base_offset)
        return IndexFile(self._files, path, txn_index.ENTRY)

    def give_back(self) -> None:
        """
        Close the indexes. The next use opens them again.
        """
        for name in ("offset_index", "time_index", "txn_index"):
            self.__dict__.pop(name, None)

    def offset_entries(self) -> Iterator[OffsetPosition]:
        for relative_offset, position in self.offset_index.entries():
            yield OffsetPosition(self.base_offset + relative_offset, position)

    def time_entries(self) -> Iterator[TimestampOffset]:
        for timestamp, relative_offset in self.time_index.entries():
            yield TimestampOffset(timestamp, self.base_offset + relative_offset)

    def txn_entries(self) -> Iterator[AbortedTxn]:
        """
        Raises:
            CorruptIndex: the version of an entry is unknown.
        """
        for version, *fields in self.txn_index.entries():
            if version != CURRENT_VERSION:
                raise CorruptIndex(
                    f"Unexpected aborted transaction version {version} in transaction index "
                    f"{self.txn_index.path}, current version is {CURRENT_VERSION}",
                    path=self.txn_index.path,
                )
            yield AbortedTxn._make(fields)

    def batches(self, position: int = 0) -> Iterator[StoredBatch]:
        """
        Yield the whole batches from *position* on, without a check of their checksums.

        Raises:
            CorruptRecord: the bytes at the position of a batch are not a batch.
            FileNotFoundError: the segment was removed.
            KafkaError: the file is larger than a segment can be.
        """
        records = FileRecords.open(self._files, self.path, mutable=False)
        try:
            records.size = min(records.size, self.size)
            for batch in records.batches(position):
                yield StoredBatch(position, batch)
                position += batch.size
        finally:
            records.close_handlers()

    def read(self, position: int, size: int) -> bytes:
        """
        *size* bytes from *position* on, fewer at the end of the segment.

        Raises:
            FileNotFoundError: the segment was removed.
        """
        with opened(self._files, self.path) as file:
            return bytes(file.read(position, max(0, min(size, self.size - position))))

    def __repr__(self) -> str:
        return f"<ReadOnlySegment {self.path} size={self.size}>"
