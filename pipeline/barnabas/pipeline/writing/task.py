"""
The rows of one task, on their way to a broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.cluster import Cluster
from barnabas.pipeline.errors import BrokerError, RowError
from barnabas.pipeline.writing.encode import record_bytes, record_sets
from barnabas.pipeline.writing.options import WriteOptions
from barnabas.pipeline.writing.partitioning import Rotation, by_key
from barnabas.pipeline.writing.producer import TaskProducer
from barnabas.pipeline.writing.rows import Rows, encoded_headers, nulls_of
from barnabas.pipeline.writing.varints import Ints
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.clock import SystemClock
from barnabas.storage.topic_partition import TopicPartition

_CHUNK_BYTES: Final = 8 << 20
"""So much is encoded together: array operations cost the same for one row as for a thousand."""
_LARGEST_CHUNK_BYTES: Final = 64 << 20
_NO_TIMESTAMP: Final = -1
_TOPIC_SHIFT: Final = 32


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """
    The rows of the batches, gathered where they are few and cut where they are many.
    """
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        pieces = batch.nbytes // _LARGEST_CHUNK_BYTES + 1
        step = -(-batch.num_rows // pieces)
        for start in range(0, batch.num_rows, max(step, 1)):
            piece = batch.slice(start, step)
            gathered.append(piece)
            size += piece.nbytes
            if size >= _CHUNK_BYTES:
                yield from _together(gathered)
                gathered, size = [], 0
    yield from _together(gathered)


def _together(gathered: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(gathered) < 2:
        return gathered
    together: list[pa.RecordBatch] = pa.Table.from_batches(gathered).combine_chunks().to_batches()
    return together


class TaskRows:
    """
    Sends the rows of one task to where their columns say.
    """

    def __init__(
        self, cluster: Cluster, options: WriteOptions, producer: TaskProducer, task: int
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._producer = producer
        self._task = task
        self._rotations: dict[str, Rotation] = {}
        self._topics: dict[str, int] = {}
        self._seen = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """
        Raises:
            RowError: one of the rows cannot be written.
        """
        if not batch.num_rows:
            return
        rows = self._rows(batch)
        self._seen += batch.num_rows
        topics = self._topics_of(batch, rows)
        partitions = self._partitions_of(batch, rows, topics)
        groups = (topics << _TOPIC_SHIFT) | partitions
        names = list(self._topics)
        meant = {
            group: TopicPartition(names[group >> _TOPIC_SHIFT], group & ((1 << _TOPIC_SHIFT) - 1))
            for group in np.unique(groups).tolist()
        }
        self._producer.send(record_sets(rows, groups, meant, self._options.batch_bytes))

    def _rows(self, batch: pa.RecordBatch) -> Rows:
        numbers = np.arange(self._seen, self._seen + batch.num_rows)
        headers = None
        if self._options.with_headers and "headers" in batch.schema.names:
            headers = encoded_headers(_column(batch, "headers"), numbers, self._task)
        key = None
        if "key" in batch.schema.names:
            key = _column(batch, "key").cast(pa.binary())
            key = None if key.null_count == len(key) else key
        value = _column(batch, "value").cast(pa.binary())
        return Rows(value, key, self._timestamps(batch, numbers), headers, numbers)

    def _timestamps(self, batch: pa.RecordBatch, numbers: Ints) -> Ints:
        now = SystemClock().now_ms()
        if "timestamp" not in batch.schema.names:
            return np.full(batch.num_rows, now, np.int64)
        us = _column(batch, "timestamp").cast(pa.int64())
        ms: Ints = np.floor_divide(pc.fill_null(us, now * 1000).to_numpy(), 1000)
        early = ms < _NO_TIMESTAMP
        if early.any():
            row = numbers[int(early.argmax())]
            raise RowError(
                ErrorCode.INVALID_TIMESTAMP,
                f"Row {row} of task {self._task} has a timestamp before 1970, which no record has.",
            )
        return ms

    def _topics_of(self, batch: pa.RecordBatch, rows: Rows) -> Ints:
        """
        The number of each row's topic among those that were seen.
        """
        if self._options.topic is not None:
            self._know(self._options.topic, rows, 0)
            return np.zeros(len(rows), np.int64)
        column = _column(batch, "topic").cast(pa.string())
        if column.null_count:
            index = int(nulls_of(column).argmax())
            raise RowError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"The topic of {rows.name(index, self._task)} is null: the option topic gives one"
                " to all rows.",
            )
        encoded = column.dictionary_encode()
        indices = encoded.indices.to_numpy()
        known = []
        for number, topic in enumerate(encoded.dictionary.to_pylist()):
            self._know(topic, rows, int((indices == number).argmax()))
            known.append([*self._topics].index(topic))
        numbers: Ints = np.array(known, np.int64)[indices]
        return numbers

    def _know(self, topic: str, rows: Rows, index: int) -> None:
        if topic in self._topics:
            return
        try:
            self._topics[topic] = self._cluster.partition_count(topic)
        except BrokerError as error:
            name = rows.name(index, self._task)
            raise RowError(error.code, f"{topic} does not take {name}: {error}") from error
        self._rotations[topic] = Rotation()

    def _partitions_of(
        self, batch: pa.RecordBatch, rows: Rows, topics: npt.NDArray[np.int64]
    ) -> Ints:
        chosen = np.full(len(rows), -1, np.int64)
        if "partition" in batch.schema.names:
            column = _column(batch, "partition")
            chosen = pc.fill_null(column.cast(pa.int64()), -1).to_numpy().copy()
            self._check(column, chosen, topics, rows)
        if rows.key is not None and (chosen < 0).any():
            with_key = (chosen < 0) & ~nulls_of(rows.key)
            for number, count in enumerate(self._topics.values()):
                of_topic = np.flatnonzero(with_key & (topics == number))
                if len(of_topic) == len(rows):
                    return by_key(rows.key, count)
                chosen[of_topic] = by_key(rows.key.take(pa.array(of_topic)), count)
        if (chosen < 0).any():
            sizes = record_bytes(rows)
            for number, (topic, count) in enumerate(self._topics.items()):
                free = np.flatnonzero((chosen < 0) & (topics == number))
                rotation = self._rotations[topic]
                chosen[free] = rotation.take(sizes[free], self._options.batch_bytes, count)
        return chosen

    def _check(
        self, column: pa.Array, chosen: Ints, topics: npt.NDArray[np.int64], rows: Rows
    ) -> None:
        counts = np.array(list(self._topics.values()), np.int64)[topics]
        wrong = (chosen >= counts) | ((chosen < 0) & ~nulls_of(column))
        if wrong.any():
            index = int(wrong.argmax())
            topic = [*self._topics][int(topics[index])]
            raise RowError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{topic}-{chosen[index]} does not take {rows.name(index, self._task)}: the topic"
                f" has the partitions 0 to {counts[index] - 1}.",
            )


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(batch.schema.get_field_index(name))


def write_rows(
    cluster: Cluster,
    options: WriteOptions,
    producer: TaskProducer,
    task: int,
    batches: Iterable[pa.RecordBatch],
) -> int:
    """
    Write all rows of a task; the number of them, once a broker has confirmed all.

    Raises:
        RowError: one of them cannot be written.
        Disconnected, BrokerError: a broker is gone for too long.
    """
    rows = TaskRows(cluster, options, producer, task)
    for chunk in chunks(batches):
        rows.write(chunk)
    producer.flush()
    return producer.written
