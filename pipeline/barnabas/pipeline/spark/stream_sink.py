"""
The source ``barnabas`` as the sink of a stream: each micro-batch is written exactly once.

How that is done is in ``barnabas.pipeline.writing.transactions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from barnabas.client.cluster import Cluster
from barnabas.pipeline.errors import (
    ClientError,
    DataLoss,
    InvalidOption,
    PipelineError,
    TransactionsLost,
)
from barnabas.pipeline.spark.shipped import Shipped
from barnabas.pipeline.spark.sink import check_columns
from barnabas.pipeline.spark.tasks import settle_worker
from barnabas.pipeline.topic_ids import confirmed_ids
from barnabas.pipeline.writing.identity import Identity, initialized
from barnabas.pipeline.writing.options import WriteOptions
from barnabas.pipeline.writing.producer import TaskProducer
from barnabas.pipeline.writing.task import write_rows
from barnabas.pipeline.writing.transactions import (
    CommitDecision,
    MicroBatch,
    abort,
    abort_others,
    commit,
    decide,
    read_decision,
)
from barnabas.storage.topic_partition import TopicPartition

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_RUN_ID: Final = "spark.jobGroup.id"
"""Local properties that Spark gives to all tasks of a micro-batch (``StreamExecution``)."""


@dataclass
class Prepared(WriterCommitMessage):
    """
    What a task has written and not committed; nothing if its micro-batch was decided on before.
    """

    batch: MicroBatch
    attempt: int
    was_decided: bool = False
    transaction: Identity | None = None
    places: tuple[TopicPartition, ...] = ()
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    """The topics that it has written to, as far as their ids are known."""


class TopicStreamWriter(Shipped, DataSourceStreamArrowWriter):
    """
    A streaming query that writes.

    Raises:
        InvalidOption: the columns are not as they should be, or the output mode is complete.
    """

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidOption(
                "The source barnabas appends to topics, outputMode('append') or 'update': with"
                " 'complete', what was written before would have to go."
            )
        if not options.idempotent:
            raise InvalidOption(
                "A stream writes in transactions: kafka.enable.idempotence=false is for batches."
            )
        check_columns(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Prepared:
        settle_worker()
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        batch = self._batch(context)
        return prepare(
            self._options, batch, context.partitionId(), context.taskAttemptId(), iterator
        )

    def _batch(self, context: TaskContext) -> MicroBatch:
        query_id = context.getLocalProperty(_QUERY_ID)
        batch_id = context.getLocalProperty(_BATCH_ID)
        run_id = context.getLocalProperty(_RUN_ID)
        assert query_id is not None, "Spark gives it to all tasks of a stream"
        assert batch_id is not None, "Spark gives it to all tasks of a stream"
        assert run_id is not None, "Spark gives it to all tasks of a stream"
        prefix = self._options.transactional_id_prefix or f"barnabas-spark-{query_id}"
        return MicroBatch(query_id, int(batch_id), prefix, run_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        prepared = _prepared(messages)
        if not prepared:
            return
        batch = prepared[0].batch
        with Cluster(self._options.client) as cluster:
            decision = read_decision(cluster, batch)
            if decision is not None and decision.is_about(batch):
                # A run before this one has decided; what this one may have written does not count.
                commit(cluster, batch.group, decision)
            elif any(each.was_decided for each in prepared):
                # Its tasks have written nothing.
                raise TransactionsLost(
                    f"The note that micro-batch {batch.batch_id} is to be committed is gone from"
                    f" the group {batch.group} since its tasks have read it: a topic or the group"
                    " was deleted. Start the query again: the micro-batch is written again."
                )
            elif transactions := _transactions(prepared):
                place = next(each.places[0] for each in prepared if each.places)
                last = max(each.attempt for each in prepared)
                _check_topics(cluster, batch, prepared)
                decision = CommitDecision.after(decision, batch, transactions, place, last)
                decide(cluster, batch.group, decision)
                commit(cluster, batch.group, decision)
            abort_others(cluster, batch, self._options)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        # Spark calls this after a commit that has failed, too: what is decided is not aborted.
        prepared = _prepared(messages)
        if not prepared:
            return
        batch = prepared[0].batch
        with Cluster(self._options.client) as cluster:
            decision = read_decision(cluster, batch)
            if decision is None or not decision.is_about(batch):
                abort_others(cluster, batch, self._options)


def prepare(
    options: WriteOptions,
    batch: MicroBatch,
    task: int,
    attempt: int,
    rows: Iterable[pa.RecordBatch],
) -> Prepared:
    """
    Write the rows of one attempt at a task, in a transaction that stays open. Nothing is written if
    the micro-batch is decided on.

    Args:
        task: its number, which errors name.
        attempt: its id, unique in an application of Spark.

    Raises:
        RowError: one of the rows cannot be written.
        Disconnected, BrokerError: a broker is gone for too long.
    """
    with Cluster(options.client, creates_topics=True) as cluster:
        decision = read_decision(cluster, batch)
        if decision is not None and decision.is_about(batch):
            return Prepared(batch, attempt, was_decided=True)
        name = batch.transactional_id(attempt, decision)
        identity = initialized(cluster, name, options)
        producer = TaskProducer(cluster, options, identity, task)
        try:
            write_rows(cluster, options, producer, task, rows)
        except (PipelineError, ClientError):
            abort(cluster, [identity] if producer.partitions else [])
            raise
        places = tuple(sorted(producer.partitions))
        decision = read_decision(cluster, batch) if places else None
        if decision is not None and decision.is_about(batch):
            # The driver took another attempt, and may have looked for open transactions already.
            abort(cluster, [] if identity in decision.transactions else [identity])
        return Prepared(
            batch,
            attempt,
            transaction=identity if places else None,
            places=places,
            topic_ids=producer.topic_ids,
        )


def _check_topics(cluster: Cluster, batch: MicroBatch, prepared: Sequence[Prepared]) -> None:
    """
    Raises:
        DataLoss: a topic was created again since a task has begun to write to it.
    """
    noted = {topic: known for each in prepared for topic, known in each.topic_ids.items()}
    now = confirmed_ids(cluster, noted)
    for each in prepared:
        for topic, known in each.topic_ids.items():
            if now.get(topic, known) != known:
                raise DataLoss(
                    f"{topic} was deleted and created again while micro-batch {batch.batch_id} was"
                    " written. Start the query again: none of its rows was committed, and it is"
                    " written again."
                )


def _prepared(messages: Sequence[WriterCommitMessage | None]) -> list[Prepared]:
    return [each for each in messages if isinstance(each, Prepared)]


def _transactions(prepared: Sequence[Prepared]) -> list[Identity]:
    return [each.transaction for each in prepared if each.transaction is not None]
