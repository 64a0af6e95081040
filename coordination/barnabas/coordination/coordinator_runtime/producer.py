"""
The identity of an idempotent or transactional producer.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.protocol.structs import NamedTuple


class ProducerIdAndEpoch(NamedTuple):
    """
    The id and the epoch that a producer sends (Kafka's ``ProducerIdAndEpoch``).
    """

    producer_id: int
    producer_epoch: int


NO_PRODUCER: Final = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
"""
The producer of records that belong to no transaction.
"""
