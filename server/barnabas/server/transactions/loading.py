"""
Replaying a partition of ``__transaction_state`` from its log.

The last record of each transactional id is all that counts. Records of a version that is not known
are passed over, as in Kafka: an upgrade that was given up may have left them.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import TYPE_CHECKING, Final

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.internal_topics.transaction_records import (
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.protocol.records.batch import batches
from barnabas.server.transactions.transaction import (
    Transaction,
    from_record,
    to_record,
)
from barnabas.storage.log.fetch_isolation import FetchIsolation

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

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
    return _VERSION.pack(version) + encode(to_record(transaction), version)


def decode_key(key: bytes) -> str | None:
    """
    The transactional id of a record, or None if its version is not known.

    Raises:
        DecodeError: it is not what a coordinator writes.
    """
    version = _version(key)
    if version != KEY_VERSION:
        logger.warning("A key of __transaction_state is of version %d: passed over", version)
        return None
    return decode(TransactionLogKey, version, key[_VERSION.size :]).transactional_id


def decode_value(value: bytes) -> Transaction | None:
    """
    What a record says, or None if its version is not known.

    Raises:
        DecodeError, ValueError: it is not what a coordinator writes.
    """
    version = _version(value)
    if version not in TransactionLogValue.api.versions:
        logger.warning("A value of __transaction_state is of version %d: passed over", version)
        return None
    return from_record(decode(TransactionLogValue, version, value[_VERSION.size :]))


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ValueError(f"A record of __transaction_state without a version: {data!r}")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def load(source: Log, buffer_bytes: int) -> dict[str, Transaction]:
    """
    All transactional ids that a log knows.

    Blocks; nobody may append to the log meanwhile.

    Args:
        buffer_bytes: how much to read at a time; a larger batch is read whole.

    Raises:
        Exception: as ``decode_key``, ``decode_value`` and ``Log.read``.
    """
    latest: dict[bytes | None, bytes | None] = {}
    offset, end = source.log_start_offset, source.log_end_offset
    while offset < end:
        found = source.read(offset, buffer_bytes, FetchIsolation.LOG_END, True).records
        before = offset
        if found is not None:
            for batch in batches(found.read()):
                offset = batch.next_offset
                if not batch.is_control:
                    latest.update((record.key, record.value) for record in batch.records())
        if offset == before:
            # Compaction has left nothing from here to the end.
            break
    loaded: dict[str, Transaction] = {}
    for key, value in latest.items():
        if key is None:
            raise ValueError("A record of __transaction_state without a key")
        transactional_id = decode_key(key)
        transaction = None if value is None else decode_value(value)
        if transactional_id is not None and transaction is not None:
            loaded[transactional_id] = transaction
    return loaded
