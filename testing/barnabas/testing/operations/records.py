"""
Appending records to the logs, and reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.protocol.records.control import ControlRecordType
from barnabas.server.partitions.partition import Partition
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.segment.fetch_data import AbortedTransaction
from barnabas.testing.errors import AppendRefused, BrokerError, hides_frame
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.operations.topics import partition_indexes
from barnabas.testing.records import Record

__tracebackhide__ = hides_frame

READ_BYTES = 1 << 20


async def append(broker: Embedded, topic: str, built: Sequence[tuple[int, bytes]]) -> None:
    """
    Append batches to partitions, and return when they can be read.

    Raises:
        UnknownTopic: the topic or a partition does not exist.
        AppendRefused: a log refuses its records; earlier batches are appended.
    """
    for index, batch in built:
        partition_indexes(broker, topic, index)
        try:
            partition = broker.parts.partitions.expect(topic, index)
            info = partition.append(memoryview(bytearray(batch)), origin=AppendOrigin.CLIENT)
            await partition.committed(info.last_offset + 1)
        except KafkaError as error:
            raise AppendRefused(f"{topic}-{index} refuses the records: {error}") from error


class Stored(NamedTuple):
    """
    The batches of a partition.
    """

    partition: int
    start_offset: int
    data: list[bytes]
    """Whole batches, of growing offsets."""
    aborted: list[AbortedTransaction]


async def read(
    broker: Embedded, topic: str, partition: int | None, committed: bool
) -> list[Stored]:
    """
    The batches of a topic, up to the high watermark or the last stable offset.

    Raises:
        UnknownTopic: the topic or the partition does not exist.
        BrokerError: a log cannot be read.
    """
    isolation = FetchIsolation.TXN_COMMITTED if committed else FetchIsolation.HIGH_WATERMARK
    try:
        return [
            _read(broker.parts.partitions.expect(topic, index), isolation)
            for index in partition_indexes(broker, topic, partition)
        ]
    except KafkaError as error:
        raise BrokerError(f"{topic} cannot be read: {error}") from error


def _read(partition: Partition, isolation: FetchIsolation) -> Stored:
    start = offset = partition.log.log_start_offset
    data: list[bytes] = []
    aborted: set[AbortedTransaction] = set()
    while True:
        found = partition.read(offset, READ_BYTES, isolation, min_one_message=True).data
        content = b"" if found is None or found.records is None else bytes(found.records.read())
        whole = [batch.next_offset for batch in batches(content)]
        if found is None or not whole:
            return Stored(partition.index, start, data, sorted(aborted, key=_first_offset))
        data.append(content)
        aborted.update(found.aborted_transactions or ())
        offset = whole[-1]


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset


def decoded(topic: str, stored: Stored) -> Iterator[Record]:
    """
    The records of a partition, without those of aborted transactions and without markers.
    """
    waiting = list(stored.aborted)
    aborting: set[int] = set()
    for batch in (batch for content in stored.data for batch in batches(content)):
        while waiting and waiting[0].first_offset <= batch.last_offset:
            aborting.add(waiting.pop(0).producer_id)
        if batch.is_control:
            if _is_abort(batch):
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            for offset, timestamp, key, value, headers in batch.records():
                if offset >= stored.start_offset:
                    plain = (
                        tuple((header.key, header.value) for header in headers) if headers else ()
                    )
                    yield Record(topic, stored.partition, offset, timestamp, key, value, plain)


def _is_abort(batch: RecordBatch) -> bool:
    return any(
        ControlRecordType.of(record.key) is ControlRecordType.ABORT for record in batch.records()
    )
