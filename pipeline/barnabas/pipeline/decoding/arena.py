"""
The records of many batches in one buffer, decompressed.

Batches that are not compressed stay where they were read. As soon as one of a chunk is compressed,
all are put one behind the other into a new buffer, until it is large enough: a chunk of a few
megabytes may become many times that, and what is decoded together has to fit into memory.

Nothing is decompressed further than allowed, however much a few bytes claim to stand for.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from barnabas.pipeline.decoding.batch_headers import Headers, any_has_flag, ends
from barnabas.pipeline.decoding.varint_columns import Bytes, Ints
from barnabas.protocol.compression import (
    CompressionType,
    CorruptCompressedData,
    UnknownCompression,
    decompress_chunks,
)
from barnabas.protocol.records.batch import COMPRESSION_MASK, HEADER_SIZE

_CHUNK_BYTES: Final = 1 << 20


class BadBatch(Exception):
    """
    The batch number *index* of those that were given has no records that can be read.

    Args:
        too_large: whether it only decompresses to more than was allowed.
        decoded: how many of the batches before it were given already.
    """

    def __init__(
        self, index: int, reason: str, *, too_large: bool = False, decoded: int = 0
    ) -> None:
        super().__init__(index, reason)
        self.index, self.reason, self.too_large, self.decoded = index, reason, too_large, decoded


class Arena(NamedTuple):
    """
    The records of the first ``len(starts)`` of some batches.
    """

    raw: bytes
    starts: Ints
    ends: Ints

    @property
    def data(self) -> Bytes:
        """
        All of it as an array, not copied.
        """
        return np.frombuffer(self.raw, np.uint8)

    @property
    def batches(self) -> int:
        return len(self.starts)


def fill_arena(
    buffer: bytes, headers: Headers, *, enough_bytes: int, max_batch_bytes: int
) -> Arena:
    """
    The records of the first batches, of at least one.

    Args:
        headers: of at least one batch, all of them in *buffer*.
        enough_bytes: decompressed; no further batch is added once there are so many.
        max_batch_bytes: of one batch, decompressed.

    Raises:
        BadBatch: a batch cannot be decompressed, or is larger than allowed.
    """
    if not any_has_flag(headers, COMPRESSION_MASK):
        return Arena(buffer, headers["position"] + HEADER_SIZE, ends(headers))
    view = memoryview(buffer)
    pieces: list[bytes | memoryview] = []
    filled = [0]
    for index, (start, end, attributes) in enumerate(
        zip(
            (headers["position"] + HEADER_SIZE).tolist(),
            ends(headers).tolist(),
            headers["attributes"].tolist(),
            strict=True,
        )
    ):
        codec = attributes & COMPRESSION_MASK
        payload = view[start:end]
        if codec:
            size = _decompress(index, codec, payload, pieces, max_batch_bytes)
        else:
            pieces.append(payload)
            size = end - start
        filled.append(filled[-1] + size)
        if filled[-1] >= enough_bytes:
            break
    edges = np.array(filled, np.int64)
    return Arena(b"".join(pieces), edges[:-1], edges[1:])


def _decompress(
    index: int,
    codec: int,
    payload: memoryview,
    pieces: list[bytes | memoryview],
    max_batch_bytes: int,
) -> int:
    """
    Append what *payload* becomes to *pieces*, and tell how many bytes that are.
    """
    size = 0
    try:
        for piece in decompress_chunks(CompressionType.of(codec), payload, _CHUNK_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > max_batch_bytes:
                raise BadBatch(
                    index,
                    f"{len(payload)} bytes of {CompressionType(codec).name.lower()} decompress to "
                    f"more than the {max_batch_bytes} that are allowed",
                    too_large=True,
                )
    except (CorruptCompressedData, UnknownCompression) as error:
        raise BadBatch(index, str(error)) from error
    return size
