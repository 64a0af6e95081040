"""
The result of a read of the log: slices of files, whose bytes are read later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata

if TYPE_CHECKING:
    from barnabas.storage.fs.interface import File


class FileSlice(NamedTuple):
    """
    Bytes of a segment that are not read yet.

    The slice keeps the file open: it can be read after retention has removed the segment.
    """

    file: File
    position: int
    size: int

    def read(self, *, nowait: bool = False) -> bytes | bytearray:
        """
        The bytes, fewer than ``size`` if the segment was truncated since.

        Raises:
            WouldBlock: with *nowait*, the page cache lacks some of them.
            KafkaStorageError: the disk failed, or the log was closed since.
        """
        return self.file.read(self.position, self.size, nowait=nowait)


class AbortedTransaction(NamedTuple):
    """
    Records that a consumer leaves out: the producer's, from the first offset to its next marker.
    """

    producer_id: int
    first_offset: int


@struct(frozen=False)
class FetchDataInfo:
    """
    The answer to one read.
    """

    fetch_offset_metadata: LogOffsetMetadata
    """The first batch of the slice, which may begin before the offset that was asked for."""
    records: FileSlice | None
    """None if there is nothing to read."""
    first_entry_incomplete: bool = False
    """The size that was asked for is smaller than the first batch."""
    aborted_transactions: list[AbortedTransaction] | None = None
    """None unless only committed records were asked for."""

    @property
    def fetch_offset(self) -> int:
        return self.fetch_offset_metadata.message_offset
