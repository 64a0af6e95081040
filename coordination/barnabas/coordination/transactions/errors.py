"""
Errors of transactions, as producers of each protocol and version understand them.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import (
    ErrorCode,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
)
from barnabas.protocol.structs import NamedTuple

FENCED_SINCE: Final = 2
"""
The version of the APIs of transactions from which on clients know PRODUCER_FENCED (KIP-588).
"""


class TransactionProtocol(NamedTuple):
    """
    The transaction protocol of a producer, known from the version of its request.
    """

    adds: bool
    """Whether the broker adds partitions for the producer (TV2)."""
    knows_abortable: bool
    """Whether it understands TRANSACTION_ABORTABLE; older ones get INVALID_TXN_STATE."""


def producer_error(error: KafkaError, protocol: TransactionProtocol) -> KafkaError:
    """
    Replace an error that producers of the protocol do not know.
    """
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(str(error))
    if isinstance(error, TransactionAbortable) and not protocol.knows_abortable:
        return InvalidTxnState(str(error))
    return error


def told(error: KafkaError, version: int) -> ErrorCode:
    """
    The code that a client of that version is told: a fenced producer was one of an invalid epoch.
    """
    if isinstance(error, ProducerFenced) and version < FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
