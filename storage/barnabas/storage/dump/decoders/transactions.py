"""
``__transaction_state``: what is known of each transactional id.
"""

from __future__ import annotations

from barnabas.protocol.internal_topics.transaction_records import (
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.storage.dump.decoders.coordinator import CoordinatorDecoder


class TransactionLogDecoder(CoordinatorDecoder):
    def __init__(self) -> None:
        super().__init__({TransactionLogKey.api.key: (TransactionLogKey, TransactionLogValue)})
