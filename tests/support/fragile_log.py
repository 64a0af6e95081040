"""
A log in memory that can be made to fail, and tells how often it is read.
"""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records.batch import RecordBatch
from barnabas.server.partitions.partition import Partition
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.segment.fetch_data import FetchDataInfo
from tests.support.logs import new_log, read_batches

_CONFIG = LogConfig.parse({"segment.index.bytes": "4096"})
"""
Indexes are allocated in full, and there is a log for each test.
"""


class FragileLog:
    """
    A real log, except where the test says otherwise.

    Args:
        name: of its directory, topic and partition.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self._log = new_log(Path("/data") / name, _CONFIG, clock=clock, producer_config=None)
        self.append_error: KafkaError | None = None
        self.reads = 0

    def lead(self, topic_id: UUID, io: Executor) -> FragilePartition:
        """
        The partition of this log.
        """
        topic, index = self._log.topic_partition
        return FragilePartition(
            self,
            Partition(topic, index, topic_id=topic_id, leader_epoch=0, log=self._log, io=io),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(
        self, offset: int, max_length: int, isolation: FetchIsolation, min_one_message: bool
    ) -> FetchDataInfo:
        self.reads += 1
        return self._log.read(offset, max_length, isolation, min_one_message)

    def configure(self, **options: str) -> None:
        """
        Change options of the log, with ``_`` for ``.``.
        """
        named = {name.replace("_", "."): value for name, value in options.items()}
        self._log.update_config(_CONFIG.overridden(named))

    @property
    def batches(self) -> list[RecordBatch]:
        """
        All that is in the log.
        """
        return read_batches(self._log)


class FragilePartition:
    """
    A real partition whose appends fail as its log says, and whose log counts reads.
    """

    def __init__(self, log: FragileLog, partition: Partition) -> None:
        self.log = log
        self._partition = partition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._partition, name)

    def append(self, records: memoryview, **options: Any) -> LogAppendInfo:
        if self.log.append_error is not None:
            raise self.log.append_error
        return self._partition.append(records, **options)
