"""
Records of ``__transaction_state``, and their replay.

The last record of a transactional id has its whole state. A record of an unknown version is passed
over, as in Kafka: a later release may have left it before a downgrade.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from struct import Struct
from typing import Final

from barnabas.coordination.transactions.state import BY_NUMBER, TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.internal_topics.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

KEY_VERSION: Final = 0
_VERSION: Final = Struct(">h")


def encode_key(transactional_id: str) -> bytes:
    """
    The key of a transactional id's records.
    """
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(KEY_VERSION) + encode(key, KEY_VERSION)


def encode_value(transaction: Transaction, version: int) -> bytes:
    """
    The value of a record, in that version of the schema (0 or 1).
    """
    return _VERSION.pack(version) + encode(_to_value(transaction), version)


def decode_key(key: bytes) -> str | None:
    """
    The transactional id of a record, or None if its version is not known.

    Raises:
        DecodeError: no coordinator writes this key.
    """
    version = _version(key)
    if version != KEY_VERSION:
        logger.warning("A key of __transaction_state is of version %d: passed over", version)
        return None
    return decode(TransactionLogKey, version, key[_VERSION.size :]).transactional_id


def decode_value(value: bytes) -> Transaction | None:
    """
    The state in a record, or None if its version is not known.

    Raises:
        DecodeError, ValueError: no coordinator writes this value.
    """
    version = _version(value)
    if version not in TransactionLogValue.api.versions:
        logger.warning("A value of __transaction_state is of version %d: passed over", version)
        return None
    return _of_value(decode(TransactionLogValue, version, value[_VERSION.size :]))


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ValueError(f"A record of __transaction_state without a version: {data!r}")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _to_value(transaction: Transaction) -> TransactionLogValue:
    partitions: list[PartitionsSchema] | None = None
    if transaction.state is not TransactionState.EMPTY:
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for topic, index in sorted(transaction.partitions):
            by_topic[topic].append(index)
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()
        ]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.number,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )


def _of_value(value: TransactionLogValue) -> Transaction:
    state = BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise ValueError(f"Unknown status of a transaction: {value.transaction_status}")
    listed = value.transaction_partitions or [] if state is not TransactionState.EMPTY else []
    return Transaction(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(schema.topic, index)
            for schema in listed
            for index in schema.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
