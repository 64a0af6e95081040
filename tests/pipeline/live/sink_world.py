"""
The sink of a stream without Spark: tasks are called one by one, as Spark would call them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.client.cluster import Cluster
from barnabas.client.settings import BOOTSTRAP
from barnabas.pipeline.spark.stream_sink import Prepared, TopicStreamWriter, prepare
from barnabas.pipeline.writing.identity import Identity
from barnabas.pipeline.writing.options import WriteOptions, parse_write_options
from barnabas.pipeline.writing.transactions import (
    CommitDecision,
    MicroBatch,
    decide,
    read_decision,
)
from barnabas.storage.topic_partition import TopicPartition
from tests.interop.clients.base import NewRecord
from tests.pipeline.live.wire import values
from tests.pipeline.topics import Topic
from tests.support.broker_process import BrokerProcess, wait_for

COMMITTED: Final = {"kafka.isolation.level": "read_committed"}
LARGEST: Final = 2**63 - 1
SOON_S: Final = 10


class World:
    """
    A topic, and the tasks of a query that write to it, without Spark.
    """

    def __init__(self, broker: BrokerProcess, name: str, timeout_ms: int = 20_000) -> None:
        self.topic = Topic(broker, name)
        self.options: WriteOptions = parse_write_options(
            {
                BOOTSTRAP: broker.bootstrap,
                "topic": name,
                "kafka.request.timeout.ms": str(timeout_ms),
            }
        )
        self.cluster = Cluster(self.options.client)
        self.batch = self.batch_of(5)
        self.place = TopicPartition(name, 0)
        columns = StructType([StructField("value", BinaryType())])
        self.writer = TopicStreamWriter(self.options, columns, overwrite=False)

    def batch_of(self, number: int, run: str = "run") -> MicroBatch:
        return MicroBatch("query", number, f"prefix-{self.topic.name}", run)

    def prepare(
        self,
        task: int,
        attempt: int,
        batch: MicroBatch | None = None,
        rows: Iterable[pa.RecordBatch] | None = None,
    ) -> Prepared:
        if rows is None:
            rows = [pa.record_batch({"value": [b"%d.%d" % (task, attempt)]})]
        return prepare(self.options, batch or self.batch, task, attempt, rows)

    def transactions(self, *attempts: int) -> list[Identity]:
        prepared = [self.prepare(task, attempt) for task, attempt in enumerate(attempts)]
        return [each.transaction for each in prepared if each.transaction is not None]

    def decide(
        self, transactions: list[Identity], number: int = 5, place: TopicPartition | None = None
    ) -> CommitDecision:
        batch = self.batch_of(number)
        previous = read_decision(self.cluster, batch)
        decision = CommitDecision.after(previous, batch, transactions, place or self.place, 0)
        decide(self.cluster, batch.group, decision)
        return decision

    def seen(self) -> list[bytes]:
        """
        The committed values; those behind an open transaction are missing.
        """
        found = values(self.topic.broker.bootstrap, self.topic.name, **COMMITTED)
        return [value for value in found if value is not None]

    def seen_and_after(self) -> list[bytes]:
        """
        The same, when no transaction is open.
        """
        self.topic.send([NewRecord(b"after", timestamp_ms=1)])
        seen: list[bytes] = []

        def is_read() -> bool:
            seen[:] = self.seen()
            return seen[-1:] == [b"after"]

        # A broker answers before it has written the markers.
        wait_for(is_read, "all transactions to end", SOON_S)
        return seen[:-1]

    def some(self, count: int) -> list[Identity]:
        names = [f"{self.batch.prefix}-{10**12 + number}" for number in range(count)]
        return [Identity(LARGEST, 2**15 - 1, name) for name in names]
