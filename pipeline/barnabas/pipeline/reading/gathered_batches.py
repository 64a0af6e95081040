"""
Batches that wait to be decoded together.

Decoding by arrays costs the same for one record as for a thousand. So what comes in little pieces,
from small segments, waits for what follows it in the same partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.pipeline.decoding.arena import BadBatch
from barnabas.pipeline.decoding.batch_headers import Headers, joined
from barnabas.pipeline.decoding.decode import OffsetRange, RowPartition, Wanted, decode
from barnabas.pipeline.errors import CorruptBatch, TooManyBytes
from barnabas.pipeline.logs.chunks import Chunk

_ENOUGH_BYTES: Final = 1 << 20

OnCorruptBatch = Callable[[RowPartition, CorruptBatch], Iterator[pa.RecordBatch]]


class ChunkPiece(NamedTuple):
    """
    Some batches of a chunk, and the file that they are from.
    """

    path: str
    chunk: Chunk
    headers: Headers

    def corrupt(
        self, index: int, reason: str, kind: type[CorruptBatch] = CorruptBatch
    ) -> CorruptBatch:
        """
        The error about one of the batches.
        """
        header = self.headers[index]
        position = self.chunk.position + int(header["position"])
        return kind(self.path, position, int(header["base_offset"]), reason)


class GatheredBatches:
    """
    Batches of one partition at a time, in their order.

    Args:
        on_corrupt: gives the rows for a batch that cannot be decoded, or raises.
    """

    def __init__(self, wanted: Wanted, on_corrupt: OnCorruptBatch) -> None:
        self._wanted = wanted
        self._on_corrupt = on_corrupt
        self._place = RowPartition("", -1)
        self._offsets = OffsetRange()
        self._pieces: list[ChunkPiece] = []
        self._size = 0

    def add(
        self, place: RowPartition, offsets: OffsetRange, piece: ChunkPiece
    ) -> Iterator[pa.RecordBatch]:
        """
        Take batches, and give the rows of as many as should not wait any longer.

        Args:
            offsets: those of the records that are wanted, which follow those of the last call if it
                was about the same partition.
        """
        if not len(piece.headers):
            return
        if place != self._place or offsets.start < self._offsets.start:
            yield from self.rows()
        if self._pieces:
            self._offsets = OffsetRange(self._offsets.start, offsets.end)
        else:
            self._place, self._offsets = place, offsets
        self._pieces.append(piece)
        self._size += len(piece.chunk.data)
        if self._size >= _ENOUGH_BYTES:
            yield from self.rows()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """
        The rows of all that waits.

        Raises:
            CorruptBatch: if ``on_corrupt`` does.
        """
        pieces, self._pieces, self._size = self._pieces, [], 0
        if not pieces:
            return
        data, headers = _joined(pieces)
        ends = np.cumsum([len(piece.headers) for piece in pieces])
        done = 0
        while done < len(headers):
            rest = headers[done:]
            try:
                yield from decode(data, rest, self._place, self._wanted, self._offsets)
                return
            except BadBatch as bad:
                good = rest[bad.decoded : bad.index]
                yield from decode(data, good, self._place, self._wanted, self._offsets)
                index = done + bad.index
                number = int(np.searchsorted(ends, index, side="right"))
                piece = pieces[number]
                within = index - int(ends[number]) + len(piece.headers)
                kind = TooManyBytes if bad.too_large else CorruptBatch
                error = piece.corrupt(within, bad.reason, kind)
                yield from self._on_corrupt(self._place, error)
                done = index + 1


def _joined(pieces: list[ChunkPiece]) -> tuple[bytes, Headers]:
    if len(pieces) == 1:
        return pieces[0].chunk.data, pieces[0].headers
    headers = joined([piece.headers for piece in pieces])
    starts = np.cumsum([0, *(len(piece.chunk.data) for piece in pieces[:-1])])
    headers["position"] += np.repeat(starts, [len(piece.headers) for piece in pieces])
    return b"".join(piece.chunk.data for piece in pieces), headers
