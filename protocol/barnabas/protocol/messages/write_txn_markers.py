"""
WriteTxnMarkers (27): writes the markers that end a transaction.

* v1 is the oldest still understood, and flexible.
* v2 adds the version of the transaction (KIP-1228).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import WRITE_TXN_MARKERS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since


@message
class WritableTxnMarkerTopic:
    name: str
    partition_indexes: list[int32]


@message
class WritableTxnMarker:
    producer_id: int64
    producer_epoch: int16
    transaction_result: bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: int32
    transaction_version: int8 = since(2, default=0)


@message
class WriteTxnMarkersRequest:
    api: ClassVar[Api] = WRITE_TXN_MARKERS

    markers: list[WritableTxnMarker]


@message
class WritableTxnMarkerPartitionResult:
    partition_index: int32
    error_code: int16


@message
class WritableTxnMarkerTopicResult:
    name: str
    partitions: list[WritableTxnMarkerPartitionResult]


@message
class WritableTxnMarkerResult:
    producer_id: int64
    topics: list[WritableTxnMarkerTopicResult]


@message
class WriteTxnMarkersResponse:
    api: ClassVar[Api] = WRITE_TXN_MARKERS

    markers: list[WritableTxnMarkerResult]
