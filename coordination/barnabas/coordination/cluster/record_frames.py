"""
Metadata records as the values of records in a batch (Kafka ``MetadataRecordSerde``).

The key is null. The value begins with three uvarints, then comes the record itself::

    1 (frame version)   record type   record version   fields
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from barnabas.coordination.cluster.errors import UnknownMetadataRecord
from barnabas.coordination.cluster.image import Versioned
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.primitives import Buffer, read_uvarint, uvarint
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import DecodeError, InvalidRequest, RecordListTooLarge
from barnabas.protocol.internal_topics.metadata_records import RECORDS
from barnabas.protocol.records.batch import HEADER_SIZE, build_batch
from barnabas.protocol.records.control import ControlRecordType, control_key
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.errors import WRITTEN_LATER

FRAME_VERSION: Final = 1

MAX_BATCH_BYTES: Final = 8 * 1024 * 1024
"""
The largest batch of Kafka's raft layer (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``).
"""

MAX_BATCH_RECORDS: Final = 10_000
"""
The size at which Kafka's controller divides records that need not be atomic (``QuorumController``).
"""

_RECORD_OVERHEAD: Final = 32  # lengths, attributes and deltas of a record take less than this
_FRAME_START: Final = uvarint(FRAME_VERSION)


def encode_record(record: Message, version: int) -> bytes:
    """
    *record* as the value of a record in a batch.

    Raises:
        InvalidRequest: a field cannot be written, as a string that is too long.
    """
    try:
        fields = encode(record, version)
    except ValueError as error:
        raise InvalidRequest(f"The change cannot be stored: {error}") from error
    return b"".join((_FRAME_START, uvarint(record.api.key), uvarint(version), fields))


def decode_record(value: Buffer) -> Versioned:
    """
    The record in the value of a record in a batch, and the version it was written in.

    Raises:
        UnknownMetadataRecord: a later release wrote it.
        DecodeError: it is damaged.
    """
    try:
        frame, position = read_uvarint(value, 0)
        key, position = read_uvarint(value, position)
        version, position = read_uvarint(value, position)
    except IndexError:
        raise DecodeError("a metadata record ends within its frame") from None
    kind = RECORDS.get(key)
    if frame != FRAME_VERSION or kind is None or version not in kind.api.versions:
        raise UnknownMetadataRecord(
            f"a metadata record of type {key}, version {version}, frame version {frame}, which this"
            f" version does not know. {WRITTEN_LATER}"
        )
    return decode(kind, version, value[position:]), version


def check_sizes(values: Iterable[bytes]) -> None:
    """
    Raises:
        RecordListTooLarge: one of the *values* fits into no batch, not even alone.
    """
    longest = MAX_BATCH_BYTES - HEADER_SIZE - _RECORD_OVERHEAD
    largest = max(map(len, values), default=0)
    if largest > longest:
        raise RecordListTooLarge(
            f"A metadata record of {largest} bytes is larger than the {longest} bytes that a record"
            " may have."
        )


def atomic_batch(
    values: Iterable[bytes], *, base_offset: int, epoch: int, timestamp: int
) -> list[bytearray]:
    """
    All records with those *values* in one batch, the only one of the list.

    Raises:
        RecordListTooLarge: that would be larger than a batch may be.
    """
    batches = list(
        divided_batches(
            values,
            base_offset=base_offset,
            epoch=epoch,
            timestamp=timestamp,
            max_records=sys.maxsize,
        )
    )
    if len(batches) > 1:
        raise RecordListTooLarge(
            f"The records to be written atomically do not fit into a batch of {MAX_BATCH_BYTES}"
            " bytes."
        )
    return batches


def divided_batches(
    values: Iterable[bytes],
    *,
    base_offset: int,
    epoch: int,
    timestamp: int,
    max_records: int = MAX_BATCH_RECORDS,
) -> Iterator[bytearray]:
    """
    *records* in as few batches as possible.
    """
    pending: list[SimpleRecord] = []
    size = HEADER_SIZE

    def batch() -> bytearray:
        return build_batch(pending, base_offset=base_offset, partition_leader_epoch=epoch)

    for value in values:
        needed = len(value) + _RECORD_OVERHEAD
        if pending and (size + needed > MAX_BATCH_BYTES or len(pending) == max_records):
            yield batch()
            base_offset += len(pending)
            pending, size = [], HEADER_SIZE
        pending.append(SimpleRecord(timestamp, None, value))
        size += needed
    if pending:
        yield batch()


def quorum_batch(
    control: Mapping[ControlRecordType, bytes], *, base_offset: int, epoch: int, timestamp: int
) -> bytearray:
    """
    A batch of control records, which are about the log itself and its voters.
    """
    return build_batch(
        [SimpleRecord(timestamp, control_key(kind), value) for kind, value in control.items()],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
        is_control=True,
    )
