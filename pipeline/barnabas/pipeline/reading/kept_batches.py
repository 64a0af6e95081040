"""
The batches of a range that have rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from barnabas.pipeline.decoding.batch_headers import Headers, any_has_flag, has_flag, last_offsets
from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from barnabas.storage.index.txn_index import AbortedTxn


def in_range(headers: Headers, offsets: OffsetRange) -> npt.NDArray[np.bool_]:
    """
    Which batches have some of the offsets.
    """
    some: npt.NDArray[np.bool_] = (last_offsets(headers) >= offsets.start) & (
        headers["base_offset"] < offsets.end
    )
    return some


def batches_with_rows(
    headers: Headers, offsets: OffsetRange, aborted: Sequence[AbortedTxn]
) -> Headers:
    """
    The batches that have records for the reader: no markers, nor those of *aborted* transactions,
    as consumers decide it (KIP-98).
    """
    told_apart = CONTROL_FLAG | (TRANSACTIONAL_FLAG if aborted else 0)
    if offsets.covers(headers) and not any_has_flag(headers, told_apart):
        return headers
    kept = in_range(headers, offsets) & ~has_flag(headers, CONTROL_FLAG)
    for transaction in aborted:
        kept &= ~(
            has_flag(headers, TRANSACTIONAL_FLAG)
            & (headers["producer_id"] == transaction.producer_id)
            & (headers["base_offset"] >= transaction.first_offset)
            & (headers["base_offset"] <= transaction.last_offset)
        )
    return headers[kept]
