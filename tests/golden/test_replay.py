"""
What producers sent to Apache Kafka, sent to a log of ours: the same files must come out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.records.batch import (
    NO_PARTITION_LEADER_EPOCH,
    RecordBatch,
    TimestampType,
    assign,
    batches,
    set_max_timestamp,
)
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.log.log import Log
from barnabas.storage.producers.append import TV_2
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import SENTINEL
from barnabas.storage.state_files.partition_metadata import parse_partition_metadata
from tests.golden.test_recovery import contents
from tests.support.clock import StillClock
from tests.support.kafka_directory import AFTERWARDS_MS, topic_configs
from tests.support.logs import new_log

LOGS = [
    "append-time-0",
    "canary-0",
    "canary-index300-0",
    "canary-index300-default-0",
    "constant-time-0",
    "empty-0",
    "future-0",
    "index-100-0",
    "index-full-0-0",
    "index-full-150-0",
    "interval-4096-0",
    "multi-record-0",
    "no-timestamp-0",
    "out-of-order-0",
    "preallocated-0",
    "restarts-0",
    "roll-ms-0",
    "size-1000-0",
    "size-exact-0",
]
RESTARTS = {"restarts-0": [7, 14]}
"""Offsets at which the broker was restarted. All other logs were complete before."""


class Replay:
    """
    A log that is written, closed and opened as the one in *source* was.
    """

    def __init__(
        self, source: Path, target: Path, config: LogConfig, *, transaction_version: int = TV_2
    ) -> None:
        self._path = target / source.name
        self._transaction_version = transaction_version
        self._config = config
        metadata = source / "partition.metadata"
        self._topic_id = parse_partition_metadata(metadata.read_bytes(), metadata).topic_id
        self.clock = StillClock()
        self.log = self._open(0)

    def _open(self, epoch: int) -> Log:
        self._epoch = epoch
        log = new_log(
            self._path,
            self._config,
            files=DiskFiles(),
            clock=self.clock,
            topic_id=self._topic_id,
            producer_config=None,
        )
        log.assign_epoch_start_offset(epoch, log.log_end_offset)
        log.update_high_watermark(log.log_end_offset)
        return log

    def restart(self) -> None:
        self.log.close()
        self.log = self._open(self._epoch + 2)

    def append(self, batch: RecordBatch) -> None:
        """
        Append *batch* as it was before the broker had it.
        """
        sent = memoryview(bytearray(batch.data))
        assign(sent, 0, 0, NO_PARTITION_LEADER_EPOCH)
        if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.clock.advance(batch.max_timestamp - self.clock.now_ms())
            set_max_timestamp(sent, 0, TimestampType.CREATE_TIME, batch.base_timestamp)
        log = self.log
        origin, guard = AppendOrigin.CLIENT, SENTINEL
        if batch.is_control:
            origin = AppendOrigin.COORDINATOR
        elif batch.is_transactional:
            guard = log.maybe_start_transaction_verification(
                batch.producer_id,
                batch.base_sequence,
                batch.producer_epoch,
                supports_epoch_bump=self._transaction_version >= TV_2,
            )
        log.append_as_leader(
            sent,
            self._epoch,
            origin=origin,
            verification_guard=guard,
            transaction_version=self._transaction_version,
        )
        log.update_high_watermark(log.log_end_offset)

    def close(self) -> dict[str, Any]:
        self.log.close()
        return contents(self._path)


def written(source: Path) -> Iterator[RecordBatch]:
    for path in sorted(source.glob("*.log")):
        yield from batches(path.read_bytes())


@pytest.mark.parametrize("log_name", LOGS)
def test_batches_sent_to_kafka_give_the_same_files(
    golden: Path, tmp_path: Path, log_name: str
) -> None:
    source = golden / "segments" / "data" / log_name
    config = topic_configs(golden / "segments")[log_name[:-2]]
    replay = Replay(source, tmp_path, config)
    restarts = RESTARTS.get(log_name, [])

    for batch in written(source):
        if batch.base_offset in restarts:
            replay.restart()
        if batch.max_timestamp < 0 and (source / f"{batch.base_offset:020d}.log").exists():
            # Without timestamps it is the clock by which segments roll.
            replay.clock.advance(config.segment_ms + 1)
        replay.append(batch)
    for _ in range(2 - len(restarts)):
        replay.restart()

    assert contents(source) == replay.close()


@pytest.mark.parametrize("log_name", ["txn-0", "txn-1", "idem-0"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_transactions_sent_to_kafka_give_the_same_files(
    golden: Path, tmp_path: Path, version: int, log_name: str
) -> None:
    golden_set = golden / f"transactions-tv{version}"
    source = golden_set / "data" / log_name
    config = topic_configs(golden_set)[log_name[:-2]]
    replay = Replay(source, tmp_path, config, transaction_version=version)
    replay.clock.advance(AFTERWARDS_MS - replay.clock.now_ms())

    for batch in written(source):
        replay.append(batch)

    assert contents(source) == replay.close()
