"""
Batches one after the other, of any format version.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.records.batch.layout import MAGIC, MAGIC_AT
from barnabas.protocol.records.batch.legacy import read_legacy_batch
from barnabas.protocol.records.batch.view import RecordBatch, batch_size, read_batch


def stored_batch(view: memoryview, position: int) -> RecordBatch:
    """
    The batch at *position*, all of which is in *view*, of the current format or of an old one.

    Raises:
        CorruptMessage: as ``read_batch``.
    """
    if view[position + MAGIC_AT] < MAGIC:
        return read_legacy_batch(view, position)
    return read_batch(view, position)


def batches(data: Buffer, position: int = 0) -> Iterator[RecordBatch]:
    """
    The whole batches that lie one after the other in *data*, from *position* on.

    What follows the last whole batch is passed over, as in Kafka: a fetch ends where its size ends,
    and a file where the machine stopped.

    Raises:
        CorruptMessage: as ``batch_size`` and ``read_batch``.
    """
    view = data if isinstance(data, memoryview) else memoryview(data)
    end = len(view)
    while size := batch_size(view, position, end):
        yield stored_batch(view, position)
        position += size
