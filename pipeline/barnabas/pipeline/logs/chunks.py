"""
The scan of a segment, a chunk of whole batches at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.pipeline.decoding.batch_headers import Headers, walk
from barnabas.protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT
from barnabas.storage.fs.interface import File

HEADER_CHUNK_BYTES: Final = 1 << 20
"""So many bytes are read at once if only headers are needed."""


class Chunk(NamedTuple):
    """
    Bytes of a segment, and the whole batches in them, at least one.
    """

    position: int
    """The position of *data* in the file."""
    data: bytes
    headers: Headers
    """Their positions count from the beginning of *data*."""


class Stop(NamedTuple):
    """
    The position at which a scan found no whole batch, and the reason.
    """

    position: int
    reason: str
    is_old_format: bool = False


class SegmentScan:
    """
    One walk along a file of batches, from *position* up to *end* or the end of the file.

    A broker may append to the file or truncate it during the walk. After the iteration, ``stop``
    says why it ended before *end*; it is None if it did not.
    """

    def __init__(self, file: File, position: int, end: int, chunk_bytes: int) -> None:
        self._file = file
        self._chunk_bytes = chunk_bytes
        self.position = position
        self.end = end
        self.stop: Stop | None = None

    def __iter__(self) -> Iterator[Chunk]:
        while self.position < self.end and self.stop is None:
            chunk = self._next()
            if chunk is not None:
                yield chunk
            # The next chunk is then read into the same memory, which is still in the CPU caches.
            del chunk

    def _next(self) -> Chunk | None:
        position, left = self.position, self.end - self.position
        data = bytes(self._file.read(position, min(self._chunk_bytes, left)))
        walked = walk(data)
        if self._chunk_bytes < walked.next_size <= left and not len(walked.headers):
            data = bytes(self._file.read(position, walked.next_size))
            walked = walk(data)
        headers = walked.headers
        others = headers["magic"] != MAGIC
        if others.any():
            headers = headers[: int(others.argmax())]
        if not len(headers):
            self.stop = what_is_wrong(position, data, walked.next_size)
            return None
        last = headers[-1]
        self.position += int(last["position"] + last["batch_length"]) + LOG_OVERHEAD
        return Chunk(position, data, headers)


def what_is_wrong(position: int, data: bytes, next_size: int) -> Stop:
    """
    The reason why *data* at *position* do not begin with a whole batch.

    Args:
        next_size: the size in the header there, as in ``Walk``.
    """
    magic = data[MAGIC_AT] if len(data) > MAGIC_AT else MAGIC
    if not any(data[:HEADER_SIZE]):
        return Stop(position, "there are zeros instead of a batch")
    if magic in (0, 1):
        reason = (
            f"message format {magic} is not supported: Kafka 4 does not keep it, a Kafka of "
            "version 3 rewrites it"
        )
        return Stop(position, reason, is_old_format=True)
    if magic != MAGIC:
        return Stop(position, f"there is no batch: its magic byte is {magic}")
    if next_size < 0:
        return Stop(position, "there is no batch: no batch has such a length")
    if len(data) < HEADER_SIZE:
        return Stop(position, f"the file ends {len(data)} bytes into a batch")
    return Stop(position, f"a batch of {next_size} bytes ends behind the file")
