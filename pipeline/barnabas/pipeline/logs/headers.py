"""
The scan of a segment from header to header, without the records of large batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

import numpy as np

from barnabas.pipeline.decoding.batch_headers import SMALLEST_BATCH, Headers, stacked
from barnabas.pipeline.logs.chunks import HEADER_CHUNK_BYTES, Stop, what_is_wrong
from barnabas.protocol.records.batch import HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, MAGIC
from barnabas.storage.fs.interface import File

_LENGTH: Final = Struct(">i")

_TOGETHER: Final = 10_000
"""One array has so many headers."""
WORTH_SKIPPING: Final = 8 << 10
"""Behind a batch of this size, only the next header is read."""
_WINDOW_BYTES: Final = 64 << 10
"""Where batches are smaller, so many bytes are read at once."""


class HeaderScan:
    """
    One walk along a file of batches, from *position* up to *end* or the end of the file, without a
    check of their checksums.

    Args:
        is_local: whether a short read costs little.
    """

    def __init__(self, file: File, position: int, end: int, *, is_local: bool) -> None:
        self._file = file
        self._is_local = is_local
        self._window = _WINDOW_BYTES if is_local else HEADER_CHUNK_BYTES
        self.position = position
        self.end = end
        self.stop: Stop | None = None
        """After the iteration: why it ended before *end*; None if it did not."""

    def __iter__(self) -> Iterator[Headers]:
        """
        Yield headers. Their positions count from the beginning of the file.
        """
        while self.position < self.end and self.stop is None:
            start = self.position
            headers = self._next()
            others = np.flatnonzero(headers["magic"] != MAGIC)
            if len(others):
                headers = headers[: others[0]]
                last = headers[-1:]
                behind = last["position"] + last["batch_length"] + LOG_OVERHEAD
                self._stop_at(int(behind[0]) if len(last) else start)
            if len(headers):
                yield headers

    def _next(self) -> Headers:
        stored: list[bytes] = []
        positions: list[int] = []
        while self.position < self.end and len(stored) < _TOGETHER and self.stop is None:
            data = self._read(self._window)
            at = 0
            while at + HEADER_SIZE <= len(data):
                (length,) = _LENGTH.unpack_from(data, at + LENGTH_AT)
                size = length + LOG_OVERHEAD
                if length < SMALLEST_BATCH or self.position + at + size > self.end:
                    break
                stored.append(data[at : at + HEADER_SIZE])
                positions.append(self.position + at)
                at += size
            if at == 0:
                self._stop_at(self.position)
            elif self._is_local:
                self._window = HEADER_SIZE if size >= WORTH_SKIPPING else _WINDOW_BYTES
            self.position += at
        return stacked(stored, positions)

    def _read(self, size: int) -> bytes:
        return bytes(self._file.read(self.position, min(size, self.end - self.position)))

    def _stop_at(self, position: int) -> None:
        self.position = position
        data = self._read(HEADER_SIZE)
        size = 0
        if len(data) >= LENGTH_AT + _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, LENGTH_AT)
            size = -1 if length < SMALLEST_BATCH else length + LOG_OVERHEAD
        self.stop = what_is_wrong(position, data, size)
