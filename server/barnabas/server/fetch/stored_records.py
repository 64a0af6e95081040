"""
Records of a response that are still in their file.

A response names how many bytes of records follow long before the peer can take all of them. So they
are read only when it is about to take them, a piece at a time: a slow peer costs one piece of
memory, however much it has asked for, and what is sent was read a moment ago.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.segment.fetch_data import FileSlice

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.storage.fs.interface import File


class FileTruncated(Exception):
    """
    Bytes that were promised to a client are not in the file any more.
    """


class StoredRecords:
    """
    What is left to be sent of a slice of a file. Its length is what the response says.
    """

    __slots__ = ("_partition", "_slice")

    def __init__(self, file_slice: FileSlice, partition: Partition | None = None) -> None:
        """
        Args:
            partition: hears of a file that cannot be read.
        """
        self._slice = file_slice
        self._partition = partition

    def __len__(self) -> int:
        return self._slice.size

    def copy_into(self, room: memoryview, at: int) -> int:
        """
        Copy what the page cache has of the bytes from *at* on into *room*, without taking them.

        Returns:
            How many, at least one.

        Raises:
            WouldBlock: the page cache lacks the first of them.
            FileTruncated, KafkaStorageError: they cannot be had any more.
        """
        file, position, left = self._slice
        try:
            count = file.read_into(position + at, room[: left - at], nowait=True)
        except KafkaStorageError:
            self._suspect(file)
            raise
        if not count:
            raise FileTruncated(f"{file.path} ends before {position + left}")
        return count

    def load(self, most: int) -> bytes | bytearray:
        """
        The next bytes, *most* of them at most, from the disk if need be; they are not taken.

        Raises:
            FileTruncated, KafkaStorageError: they cannot be had any more.
        """
        file, position, left = self._slice
        wanted = min(left, most)
        try:
            data = file.read(position, wanted)
        except KafkaStorageError:
            self._suspect(file)
            raise
        if len(data) < wanted:
            raise FileTruncated(f"{file.path} ends before {position + left}")
        return data

    def splice_into(self, pipe: int, most: int) -> int:
        """
        Put the next bytes into *pipe* without taking them, *most* of them at most; how many, which
        may be none (``File.splice_into``).
        """
        file, position, left = self._slice
        return file.splice_into(pipe, position, min(left, most))

    def skip(self, count: int) -> None:
        """
        The next *count* bytes are sent.
        """
        file, position, left = self._slice
        self._slice = FileSlice(file, position + count, left - count)

    def _suspect(self, file: File) -> None:
        if self._partition is not None:
            self._partition.suspect = file
