"""
One segment, to be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from struct import Struct
from typing import Final

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptIndex
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.offset_index import OffsetPosition
from barnabas.storage.index.time_index import TimestampOffset
from barnabas.storage.index.txn_index import CURRENT_VERSION, AbortedTxn
from barnabas.storage.readonly.index_file import IndexFile
from barnabas.storage.segment.records import FileRecords
from barnabas.storage.state_files.file_names import (
    offset_from_file_name,
    offset_index_file,
    time_index_file,
    transaction_index_file,
)

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
TXN_ENTRY: Final = Struct(">hqqqq")


class StoredBatch(NamedTuple):
    """
    A batch, and at which byte of its segment it begins.
    """

    position: int
    batch: RecordBatch


class ReadOnlySegment:
    """
    The files of one segment.

    Size and time are those when the object was made. An index is looked at when it is first asked
    for, which is after that: it may then know batches that this view does not have.
    """

    def __init__(self, files: Files, path: Path) -> None:
        """
        Raises:
            FileNotFoundError: there is no file *path*.
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
        return IndexFile(self._files, path, OFFSET_ENTRY)

    @cached_property
    def time_index(self) -> IndexFile:
        path = time_index_file(self.path.parent, self.base_offset)
        return IndexFile(self._files, path, TIME_ENTRY)

    @cached_property
    def txn_index(self) -> IndexFile:
        path = transaction_index_file(self.path.parent, self.base_offset)
        return IndexFile(self._files, path, TXN_ENTRY)

    def give_back(self) -> None:
        """
        Let go of the indexes, which are opened again when they are asked for.
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
            CorruptIndex: an entry is of a version that is not known.
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
        Whole batches from *position* on; their checksums are not looked at.

        Raises:
            CorruptRecord: there is no batch where one should begin.
            FileNotFoundError: the segment was removed since.
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
        The bytes there, fewer than *size* only at the end of the segment.

        Raises:
            FileNotFoundError: the segment was removed since.
        """
        file = self._files.open(self.path, create=False, read_only=True)
        try:
            return bytes(file.read(position, max(0, min(size, self.size - position))))
        finally:
            file.close()

    def __repr__(self) -> str:
        return f"<ReadOnlySegment {self.path} size={self.size}>"
