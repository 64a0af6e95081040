"""
The rows of a range of offsets, from the leader of its partition.

What a fetch brings are the batches of a segment as they are stored, so it is decoded as a file is.
The next fetch is on its way meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.retries import Patience
from barnabas.client.settings import ClientSettings, number
from barnabas.pipeline.decoding.batch_headers import Headers, has_flag, last_offsets, walk
from barnabas.pipeline.decoding.decode import OffsetRange, RowPartition, Wanted, bad_checksums
from barnabas.pipeline.errors import (
    BrokerError,
    ClientError,
    CorruptBatch,
    Disconnected,
    OldFormat,
)
from barnabas.pipeline.live.plan import LiveRange, client_of
from barnabas.pipeline.live.topics import isolation_of
from barnabas.pipeline.logs.chunks import Chunk, what_is_wrong
from barnabas.pipeline.options import Mode, ReadOptions
from barnabas.pipeline.reading.gathered_batches import ChunkPiece, GatheredBatches
from barnabas.pipeline.reading.kept_batches import batches_with_rows
from barnabas.pipeline.reading.kept_memory import keep_memory
from barnabas.pipeline.reading.plan import report_loss
from barnabas.pipeline.topic_ids import confirmed_ids
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.protocol.records.batch import CONTROL_FLAG, MAGIC
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.units import LONG_MAX

logger = logging.getLogger(__name__)

_NEVER: Final = LONG_MAX
_WAIT_MS: Final = 500
"""Kafka's ``fetch.max.wait.ms``. What is asked for is there, and nothing is waited for."""
_END, _BEGINNING = -1, -2


def read_live(
    work: LiveRange, columns: Sequence[str], options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """
    The rows of one task.

    Args:
        columns: of the records, in the order that the rows are to have.

    Raises:
        CorruptBatch: a batch cannot be read, unless the options say what to do with it.
        DataLoss: offsets were deleted since the plan was made, unless the options say to go on.
        Disconnected, BrokerError: no leader of the partition answers for too long.
    """
    keep_memory()
    with Cluster(client_of(options)) as cluster:
        yield from _Reader(cluster, work, columns, options).rows()


class _Reader:
    """
    Fetches one range, batch after batch.
    """

    def __init__(
        self, cluster: Cluster, work: LiveRange, columns: Sequence[str], options: ReadOptions
    ) -> None:
        settings: ClientSettings = cluster.settings
        self._cluster = cluster
        self._options = options
        self._partition = work.partition
        self._topic_id = work.topic_id
        self._place = RowPartition(*work.partition)
        self._offsets = work.offsets
        self._next = work.offsets.start
        self._wanted = Wanted(tuple(columns), max_batch_bytes=options.max_batch_bytes)
        self._gathered = GatheredBatches(self._wanted, self._corrupt)
        self._bytes = number(
            settings.others, "max.partition.fetch.bytes", options.chunk_bytes, at_least=1
        )
        self._wait_ms = number(settings.others, "fetch.max.wait.ms", _WAIT_MS)
        self._from = ""

    def rows(self) -> Iterator[pa.RecordBatch]:
        patience = self._cluster.patience()
        while self._next < self._offsets.end:
            before = self._next
            try:
                yield from self._from_leader()
            except (Disconnected, BrokerError) as error:
                failed = error
            else:
                break
            if self._next > before:
                patience.restart()
            self._after(failed, patience)
        self._check_topic()
        yield from self._gathered.rows()

    def _check_topic(self) -> None:
        """
        Raises:
            DataLoss: the topic was created again since the plan was made, and the records may be
                those of the new one, unless the options say to go on.
        """
        topic, known = self._partition.topic, self._topic_id
        if known is None:
            return
        if confirmed_ids(self._cluster, {topic: known}).get(topic, known) != known:
            report_loss(f"{topic} was deleted and created again while it was read.", self._options)

    def _after(self, failed: ClientError, patience: Patience) -> None:
        """
        Prepare the next try.

        Only a log start offset behind the next offset proves that records are lost. A log that ends
        before that offset may be the one of a leader that lags, or that is no longer the leader.

        Raises:
            DataLoss: records are deleted, or the log still ends too early when the time is over,
                and the options do not say to go on.
            Disconnected, BrokerError: the time is over.
        """
        if isinstance(failed, BrokerError) and failed.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._skips_deleted():
                return
            failed = self._gives_nothing()
        try:
            patience.after(failed)
        except BrokerError as error:
            if error.code != ErrorCode.OFFSET_NOT_AVAILABLE or not self._skips_missing_end():
                raise
        self._cluster.forget()

    def _skips_deleted(self) -> bool:
        start = self._cluster.offsets({self._partition: _BEGINNING})[self._partition]
        if start <= self._next:
            return False
        last = min(start, self._offsets.end) - 1
        report_loss(f"Offsets {self._next} to {last} of {self._partition} are gone.", self._options)
        self._next = start
        return True

    def _skips_missing_end(self) -> bool:
        end = self._cluster.offsets({self._partition: _END})[self._partition]
        if end > self._next:
            return False
        report_loss(
            f"{self._partition} is to be read from offset {self._next} to {self._offsets.end - 1},"
            f" and ends at {end} now.",
            self._options,
        )
        self._next = self._offsets.end
        return True

    def _from_leader(self) -> Iterator[pa.RecordBatch]:
        """
        What one leader gives, up to the end of the range.
        """
        leader = self._cluster.leader(self._partition)
        self._from = f"{self._partition} of {leader.address}"
        leader.send(self._request())
        waited = self._cluster.patience()
        while True:
            answered = self._answer(leader)
            data = bytes(answered.records or b"")
            headers, next_offset = self._walked(data, answered)
            if next_offset == self._next:
                # Nothing that is whole: a batch may be larger than what was asked for.
                self._nothing(answered, waited)
                leader.send(self._request())
                continue
            waited.restart()
            aborted = _aborted(headers, answered)
            start, self._next = self._next, next_offset
            is_last = next_offset >= self._offsets.end
            failed = None if is_last else self._sent_ahead(leader)
            yield from self._decoded(data, headers, OffsetRange(start, self._offsets.end), aborted)
            if failed is not None:
                raise failed
            if is_last:
                return
            del data, headers, answered

    def _sent_ahead(self, leader: Connection) -> Disconnected | None:
        """
        Ask for what follows. An error waits until what has arrived is given.
        """
        try:
            leader.send(self._request())
        except Disconnected as error:
            return error
        return None

    def _request(self) -> FetchRequest:
        topic, partition = self._partition
        wanted = FetchPartition(
            partition=partition, fetch_offset=self._next, partition_max_bytes=self._bytes
        )
        return FetchRequest(
            max_wait_ms=self._wait_ms,
            min_bytes=1,
            max_bytes=self._bytes,
            isolation_level=isolation_of(self._options),
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )

    def _answer(self, leader: Connection) -> PartitionData:
        answer, _ = leader.receive()
        if answer.error_code:
            raise BrokerError.of(answer.error_code, f"{self._from} is not read")
        answered: PartitionData = answer.responses[0].partitions[0]
        if answered.error_code:
            raise BrokerError.of(answered.error_code, f"{self._from} is not read")
        return answered

    def _walked(self, data: bytes, answered: PartitionData) -> tuple[Headers, int]:
        """
        The batches of an answer, and the offset behind them.
        """
        walked = walk(data)
        headers = walked.headers
        others = headers["magic"] != MAGIC
        if others.any() or (not len(headers) and walked.next_size < 0):
            stop = what_is_wrong(walked.end, data[walked.end :], walked.next_size)
            kind = OldFormat if others.any() else CorruptBatch
            reason = "a message of format 0 or 1" if others.any() else stop.reason
            raise kind(self._from, stop.position, self._next, reason)
        if not len(headers):
            self._bytes = max(self._bytes, walked.next_size)
            return headers, self._next
        return headers, max(self._next, int(last_offsets(headers[-1:])[0]) + 1)

    def _nothing(self, answered: PartitionData, waited: Patience) -> None:
        if answered.records:
            return
        if answered.high_watermark <= self._next:
            # The high watermark of a new leader lags until its followers fetch (KIP-207), and an
            # old leader does not know the new one: look for the leader again.
            raise self._gives_nothing()
        waited.after(self._gives_nothing())

    def _gives_nothing(self) -> BrokerError:
        sentence = f"{self._from} gives nothing from offset {self._next} on"
        return BrokerError.of(ErrorCode.OFFSET_NOT_AVAILABLE, sentence)

    def _decoded(
        self, data: bytes, headers: Headers, offsets: OffsetRange, aborted: Sequence[AbortedTxn]
    ) -> Iterator[pa.RecordBatch]:
        with_rows = batches_with_rows(headers, offsets, aborted)
        piece = ChunkPiece(self._from, Chunk(0, data, with_rows), with_rows)
        start = 0
        for bad in bad_checksums(data, with_rows):
            good = piece._replace(headers=with_rows[start:bad])
            yield from self._gathered.add(self._place, offsets, good)
            yield from self._gathered.rows()
            reason = "the batch does not have the CRC that its header says"
            yield from self._corrupt(self._place, piece.corrupt(bad, reason))
            start = bad + 1
        rest = piece._replace(headers=with_rows[start:])
        yield from self._gathered.add(self._place, offsets, rest)

    def _corrupt(self, place: RowPartition, error: CorruptBatch) -> Iterator[pa.RecordBatch]:
        mode = self._options.mode
        if mode is Mode.FAILFAST or isinstance(error, OldFormat):
            raise error
        logger.warning("%s", error)
        if mode is Mode.PERMISSIVE:
            row = {
                "topic": place.topic,
                "partition": place.partition,
                "offset": error.offset,
                self._options.corrupt_column: str(error),
            }
            yield pa.RecordBatch.from_pylist([row], schema=self._wanted.schema)


def _aborted(headers: Headers, answered: PartitionData) -> list[AbortedTxn]:
    """
    The aborted transactions of an answer, which has where each begins: it ends with the next
    marker of its producer.
    """
    if not answered.aborted_transactions:
        return []
    markers = headers[has_flag(headers, CONTROL_FLAG)]
    found = []
    for transaction in answered.aborted_transactions:
        first = transaction.first_offset
        ends = markers["base_offset"][
            (markers["producer_id"] == transaction.producer_id) & (markers["base_offset"] >= first)
        ]
        last = int(ends.min()) if len(ends) else _NEVER
        found.append(AbortedTxn(transaction.producer_id, first, last, _NEVER))
    return found
