"""
The source ``barnabas`` as the sink of a stream: each micro-batch is written exactly once.

How that is done is in ``barnabas.pipeline.writing.transactions``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from barnabas.client.cluster import Cluster
from barnabas.pipeline.errors import ClientError, InvalidOption, PipelineError
from barnabas.pipeline.spark.shipped import Shipped
from barnabas.pipeline.spark.sink import check_columns
from barnabas.pipeline.spark.tasks import settle_worker
from barnabas.pipeline.writing.identity import Identity, initialized
from barnabas.pipeline.writing.options import WriteOptions
from barnabas.pipeline.writing.producer import TaskProducer
from barnabas.pipeline.writing.task import write_rows
from barnabas.pipeline.writing.transactions import (
    CommitDecision,
    MicroBatch,
    abort,
    abort_earlier,
    commit,
    decide,
    read_decision,
)
from barnabas.storage.topic_partition import TopicPartition

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
"""Local properties that Spark gives to all tasks of a micro-batch (``StreamExecution``)."""


@dataclass
class Prepared(WriterCommitMessage):
    """
    What a task has written and not committed; nothing if its micro-batch was decided on before.
    """

    batch: MicroBatch
    task: int
    attempt: int
    was_decided: bool = False
    transaction: Identity | None = None
    places: tuple[TopicPartition, ...] = ()


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
        task, attempt = context.partitionId(), context.attemptNumber()
        batch = self._batch(context)
        with Cluster(self._options.client, creates_topics=True) as cluster:
            decision = read_decision(cluster, batch)
            if decision is not None and decision.is_about(batch):
                return Prepared(batch, task, attempt, was_decided=True)
            name = batch.transactional_id(task, attempt)
            # What a run before has left open under this name is aborted, be there rows or not.
            identity = initialized(cluster, name, self._options)
            producer = TaskProducer(cluster, self._options, identity, task)
            try:
                write_rows(cluster, self._options, producer, task, iterator)
            except (PipelineError, ClientError):
                abort(cluster, [identity] if producer.partitions else [])
                raise
            places = tuple(sorted(producer.partitions))
            return Prepared(
                batch, task, attempt, transaction=identity if places else None, places=places
            )

    def _batch(self, context: TaskContext) -> MicroBatch:
        query_id = context.getLocalProperty(_QUERY_ID)
        batch_id = context.getLocalProperty(_BATCH_ID)
        assert query_id is not None, "Spark gives it to all tasks of a stream"
        assert batch_id is not None, "Spark gives it to all tasks of a stream"
        prefix = self._options.transactional_id_prefix or f"barnabas-spark-{query_id}"
        return MicroBatch(query_id, int(batch_id), prefix)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        prepared = _prepared(messages)
        if not prepared:
            return
        batch = prepared[0].batch
        with Cluster(self._options.client) as cluster:
            decision = read_decision(cluster, batch)
            if decision is not None and decision.is_about(batch):
                # A run before this one has decided; what this one may have written does not count.
                abort(cluster, _transactions(prepared))
                if decision.batch_id == batch.batch_id:
                    commit(cluster, batch.group, decision)
                return
            transactions = _transactions(prepared)
            if not transactions:
                return
            place = next(each.places[0] for each in prepared if each.places)
            decision = CommitDecision(batch.query_id, batch.batch_id, tuple(transactions), place)
            decide(cluster, batch.group, decision)
            commit(cluster, batch.group, decision)
            attempts = {each.task: each.attempt for each in prepared}
            abort_earlier(cluster, batch, attempts, self._options)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        # Spark calls this after a commit that has failed, too: what is decided is not aborted.
        prepared = _prepared(messages)
        if not prepared:
            return
        batch = prepared[0].batch
        with Cluster(self._options.client) as cluster:
            decision = read_decision(cluster, batch)
            if decision is None or not decision.is_about(batch):
                abort(cluster, _transactions(prepared))


def _prepared(messages: Sequence[WriterCommitMessage | None]) -> list[Prepared]:
    return [each for each in messages if isinstance(each, Prepared)]


def _transactions(prepared: Sequence[Prepared]) -> list[Identity]:
    return [each.transaction for each in prepared if each.transaction is not None]
