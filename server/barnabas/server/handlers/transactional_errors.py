"""
Errors of transactions, as clients of each version understand them.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode, KafkaError, ProducerFenced

FENCED_SINCE: Final = 2
"""
The version of the APIs of transactions from which on clients know PRODUCER_FENCED (KIP-588).
"""


def told(error: KafkaError, version: int) -> ErrorCode:
    """
    The code that a client of that version is told: a fenced producer was one of an invalid epoch.
    """
    if isinstance(error, ProducerFenced) and version < FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
