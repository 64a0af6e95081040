"""
Records of a response that are still in their file.

A response names how many bytes of records follow long before the peer can take all of them. So they
are read only when it is about to take them, a piece at a time: a slow peer costs one piece of
memory, however much it has asked for, and what is sent was read a moment ago.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.fetch_data import FileSlice

if TYPE_CHECKING:
    from barnabas.storage.files import Buffer


class FileTruncated(Exception):
    """
    Bytes that were promised to a client are not in the file any more.
    """


class StoredRecords:
    """
    What is left to be sent of a slice of a file. Its length is what the response says.
    """

    __slots__ = ("_slice",)

    def __init__(self, file_slice: FileSlice) -> None:
        self._slice = file_slice

    def __len__(self) -> int:
        return self._slice.size

    def take(self, size: int, *, nowait: bool) -> Buffer:
        """
        Read the next bytes, as many as *size* or what is left.

        Raises:
            WouldBlock: with *nowait*, the page cache lacks some of them.
            FileTruncated, KafkaStorageError: they cannot be had any more.
        """
        file, position, left = self._slice
        size = min(left, size)
        data = file.read(position, size, nowait=nowait)
        if len(data) < size:
            raise FileTruncated(f"{file.path} ends before {position + size}")
        self._slice = FileSlice(file, position + size, left - size)
        return data
