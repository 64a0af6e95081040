"""
The result of a request or a timeout: records for the log of the shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar

from barnabas.coordination.coordinator_runtime.producer import NO_PRODUCER, ProducerIdAndEpoch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.structs import struct
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard

R_co = TypeVar("R_co", covariant=True)

EncodedRecord: TypeAlias = tuple[bytes, bytes | None]
"""
Key and value.
"""

AppendListener: TypeAlias = Callable[[ErrorCode | None, int], None]
"""
Called with the error that kept records out of the log, or None, and with the time in ms. The error
is one for a client of the coordinator, see ``coordinator_error``.
"""


@struct(kw_only=True)
class CoordinatorResult(Generic[R_co]):
    """
    Records to append, and how to append them (Kafka's class of this name).
    """

    records: Sequence[R_co] = ()
    encoded: Sequence[EncodedRecord] = ()
    """The records as bytes, where the request has encoded them in steps."""
    producer: ProducerIdAndEpoch = NO_PRODUCER
    """The producer of the transaction that the records belong to."""
    guard: VerificationGuard = SENTINEL
    """The log's guard for the first records of that transaction (KIP-890)."""
    replay_records: bool = True
    """
    Whether the append applies the records to the state. A classic group in a rebalance is ahead of
    its log instead: its records repeat what it has become already.
    """
    is_atomic: bool = True
    """Whether all records have to be in one batch, so that all are appended or none."""
    on_append: AppendListener | None = None
    """Called once the records are committed, or refused; see ``CoordinatorShard.write``."""


NOTHING: Final[CoordinatorResult[Any]] = CoordinatorResult()
"""
The result without records.
"""
