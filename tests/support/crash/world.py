"""
A broker's logs on a machine that may crash, and what was promised of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX, Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.log import Log
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.state_files.file_names import STRAY_DIR_SUFFIX
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.verify.cluster import KnownTopic
from barnabas.storage.verify.report import Violation
from barnabas.testing.disks.crashable import NOTHING, Choose, CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.crash.checks import check_indexes, check_log, segments_in_use
from tests.support.crash.ledger import Entry, Ledger, Presence
from tests.support.log_manager import open_manager
from tests.support.logs import planned_retention
from tests.support.verifying import verified

ROOT: Final = Path("/data")
NODE_ID: Final = 1
DIRECTORY_ID: Final = UUID(int=5001)
SMALL: Final[dict[str, Any]] = {
    "internal_segment_bytes": 700,
    "index_interval_bytes": 200,
    "segment_index_bytes": 240,
    "file_delete_delay_ms": 10,
    "retention_ms": -1,
    "min_cleanable_dirty_ratio": 0.0,
}
"""Segments of a few batches, with an index entry for every second one."""


class World:
    """
    A log manager that does what its threads would do when the test says so, and a ledger for each
    log that it has, may have, or has no longer.

    Invariants:

    1. A ledger has an entry before the log gets its batch, and a promise after what is promised
       was done: whenever the machine stops, what the ledgers say holds.
    """

    def __init__(
        self,
        files: Files,
        ledgers: dict[TopicPartition, Ledger] | None = None,
        *,
        now_ms: int | None = None,
    ) -> None:
        self.files = files
        self.clock = StillClock() if now_ms is None else StillClock(now_ms)
        if isinstance(files, MemoryFiles):
            files.now_ms = self.clock.now_ms
        self.ledgers = {} if ledgers is None else ledgers
        self.failures = LogDirFailureChannel()
        self.logs: LogManager
        self._sequences: dict[tuple[TopicPartition, int], int] = {}
        self._marks = 0

    def start(self, *, lives: int = 1) -> None:
        """
        Start as a broker does.

        Args:
            lives: which start this is, since that of the ledgers.
        """
        self.failures = LogDirFailureChannel()
        self.logs = open_manager(
            self.files,
            [ROOT],
            clock=self.clock,
            failures=self.failures,
            config=LogConfig(**SMALL),
            # One, so that the order of all that is done is always the same.
            recovery_threads_per_directory=1,
            transaction_verification=False,
            cleaner=CleanerSettings(dedupe_buffer_bytes=16 * 1024, io_buffer_bytes=16 * 1024),
        )
        self.logs.load(
            {partition.topic: ledger.config for partition, ledger in self.ledgers.items()},
            lambda topic_id, partition: topic_id is None,
        )
        self.check_online()
        for partition, log in self.logs.logs().items():
            ledger = self.ledgers[partition]
            ledger.leader_epoch += lives
            log.update_high_watermark(log.log_end_offset)
            log.assign_epoch_start_offset(ledger.leader_epoch, log.log_end_offset)

    def check_online(self) -> None:
        """
        Raises:
            KafkaStorageError: the disk has failed, though nobody was told.
        """
        self.failures.check_online(ROOT)

    # Logs

    def create(self, topic: str, **config: Any) -> TopicPartition:
        self._marks += 1
        partition = TopicPartition(topic, 0)
        ledger = self.ledgers[partition] = Ledger(
            UUID(int=1000 + self._marks), LogConfig(**{**SMALL, **config})
        )
        log = self.logs.get_or_create_log(partition, topic_id=ledger.topic_id, config=ledger.config)
        ledger.leader_epoch = 0
        log.assign_epoch_start_offset(0, log.log_end_offset)
        return partition

    def delete(self, partition: TopicPartition) -> None:
        self.ledgers[partition].presence = Presence.MAYBE
        for error in self.logs.delete_logs([partition]).values():
            raise error
        self.ledgers[partition].presence = Presence.GONE

    def log(self, partition: TopicPartition) -> Log:
        self.check_online()
        log = self.logs.get_log(partition)
        assert log is not None, f"{partition} is not there"
        return log

    # Records

    def append(
        self,
        partition: TopicPartition,
        *keys: bytes,
        producer_id: int = -1,
        transactional: bool = False,
        values: bool = True,
    ) -> None:
        """
        Append a batch, and acknowledge it as a partition would.
        """
        self._marks += 1
        mark = b"%04d" % self._marks
        records = tuple(
            SimpleRecord(self.clock.now_ms(), key, mark * 8 if values else None) for key in keys
        )
        sequence = -1
        if producer_id >= 0:
            sequence = self._sequences.get((partition, producer_id), 0)
            self._sequences[partition, producer_id] = sequence + len(keys)
        data = build_batch(
            list(records),
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=sequence,
            is_transactional=transactional,
        )
        self._append(
            partition,
            data,
            records=records,
            producer_id=producer_id,
            base_sequence=sequence,
            is_transactional=transactional,
        )

    def end_transaction(self, partition: TopicPartition, producer_id: int, *, commit: bool) -> None:
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        marker = EndTransactionMarker(kind, 0)
        data = marker.batch(self.clock.now_ms(), producer_id=producer_id, producer_epoch=0)
        self._append(partition, data, producer_id=producer_id, control=kind)

    def _append(
        self,
        partition: TopicPartition,
        data: bytearray,
        *,
        records: tuple[SimpleRecord, ...] = (),
        control: ControlRecordType | None = None,
        **more: Any,
    ) -> None:
        log, ledger = self.log(partition), self.ledgers[partition]
        base = log.log_end_offset
        last = base + max(1, len(records)) - 1
        ledger.entries.append(Entry(base, last, data, records, control=control, **more))
        origin = AppendOrigin.CLIENT if control is None else AppendOrigin.COORDINATOR
        info = log.append_as_leader(
            memoryview(data), ledger.leader_epoch, origin=origin, transaction_version=0
        )
        assert (base, last) == (info.first_offset, info.last_offset)
        if info.flush_due:
            self.flush(partition)
        ledger.presence = Presence.SURELY
        ledger.acknowledged_end = log.log_end_offset
        log.update_high_watermark(log.log_end_offset)

    def flush(self, partition: TopicPartition) -> None:
        log, ledger = self.log(partition), self.ledgers[partition]
        end = log.log_end_offset
        log.flush()
        ledger.durable_end = max(ledger.durable_end, end)

    # What threads of a broker do

    def delete_records(self, partition: TopicPartition, offset: int) -> None:
        ledger = self.ledgers[partition]
        ledger.start = max(ledger.start, offset)
        self.log(partition).delete_records(offset)

    def check_retention(self) -> None:
        self._expect_retention()
        self.logs.maintenance.check_retention()

    def clean(self) -> None:
        """
        A round of the cleaner, which also looks at the retention of compacted logs.
        """
        for ledger in self.ledgers.values():
            ledger.may_be_cleaned |= ledger.config.compact
        self._expect_retention()
        assert self.logs.cleaner is not None
        cleaned = self.logs.cleaner.round()
        self.check_online()
        if not cleaned:
            # As in Kafka, a log whose cleaning cannot read it is left alone; its directory stays.
            raise KafkaStorageError("no log was cleaned")

    def _expect_retention(self) -> None:
        for partition, log in self.logs.logs().items():
            for decision in planned_retention(log, self.clock.now_ms()):
                if decision.deletable:
                    last = decision.deletable[-1]
                    following = log.segments.higher_segment(last.base_offset)
                    end = log.log_end_offset if following is None else following.base_offset
                    ledger = self.ledgers[partition]
                    ledger.start = max(ledger.start, end)

    def checkpoint(self) -> None:
        maintenance = self.logs.maintenance
        maintenance.checkpoint_recovery_points()
        maintenance.checkpoint_log_start_offsets()
        self.check_online()
        self._promise_starts()
        maintenance.checkpoint_high_watermarks()

    def _promise_starts(self) -> None:
        for partition, log in self.logs.logs().items():
            # One that starts with its first segment is not noted; the files say it.
            noted = log.log_start_offset > log.first_segment_base_offset
            self.ledgers[partition].durable_start = log.log_start_offset if noted else 0

    def pass_time(self, ms: int) -> None:
        """
        Let time pass, and do what was put off until then.
        """
        self.clock.advance(ms)
        self.logs.remove_deleted()
        self.check_online()

    def stop(self) -> None:
        logs = self.logs.logs()
        if not self.logs.shutdown(broker_epoch=1):
            raise KafkaStorageError("the logs could not be closed")
        for partition, log in logs.items():
            ledger = self.ledgers[partition]
            ledger.presence = Presence.SURELY
            ledger.durable_end = ledger.acknowledged_end = log.log_end_offset

    def release(self) -> None:
        """
        Unlock the directory, as the end of a process does.
        """
        if logs := getattr(self, "logs", None):
            logs.directories.release()

    def crash(self, choose: Choose = NOTHING) -> None:
        """
        Be as after a crash and the start after it; the log goes on with what it has then.
        """
        assert isinstance(self.files, CrashableFiles)
        self.files.crash(choose)
        for ledger in self.ledgers.values():
            ledger.acknowledged_end = ledger.durable_end
        self.start()
        for partition, log in self.logs.logs().items():
            check_log(log, self.ledgers[partition])
        self._sequences = {
            (partition, entry.producer_id): entry.base_sequence + len(entry.records)
            for partition, ledger in self.ledgers.items()
            for entry in ledger.entries
            if entry.base_sequence >= 0
        }

    # What has to be true

    def check(self) -> None:
        """
        Every log that should be there is there, with all of what was promised and nothing else.
        """
        logs = self.logs.logs()
        for partition, ledger in self.ledgers.items():
            log = logs.get(partition)
            if ledger.presence is Presence.SURELY:
                assert log is not None, f"{partition} is lost"
            if log is not None:
                assert ledger.presence is not Presence.GONE, f"{partition} is back"
                check_log(log, ledger)

    def check_that_life_goes_on(self) -> None:
        """
        All logs take records, and have them after a clean stop, with nothing that verifying them
        finds wrong.
        """
        logs = self.logs.logs()
        for partition in logs:
            self.append(partition, b"a", b"b")
        self.stop()
        for log in logs.values():
            check_indexes(self.files, log)
        assert not (found := self._violations(logs.values())), found
        self.start()
        for partition, log in self.logs.logs().items():
            check_log(log, self.ledgers[partition])
        self.logs.shutdown()

    def _violations(self, logs: Iterable[Log]) -> Sequence[str]:
        found, _ = verified(
            [ROOT], lambda root: self._known_topics(), files=self.files, clock=self.clock
        )
        bases = {log.dir: segments_in_use(log)[0].base_offset for log in logs}
        return [
            f"{violation.path}: {violation.rule}: {violation.found}"
            for violation in found
            if not _is_harmless(violation, bases.get(violation.path.parent, 0))
        ]

    def _known_topics(self) -> dict[str, KnownTopic]:
        """
        The logs that are there, as the metadata of a cluster would have them.
        """
        return {
            partition.topic: KnownTopic(
                ledger.topic_id,
                {"cleanup.policy": "compact" if ledger.config.compact else "delete"},
                {partition.partition: {NODE_ID: DIRECTORY_ID}},
            )
            for partition, ledger in self.ledgers.items()
            if partition in self.logs.logs()
        }


def _is_harmless(violation: Violation, first: int) -> bool:
    """
    Nobody looks after logs that nobody knows; what was being written is written over; and of a
    snapshot that is torn the checksum tells, so that an older one is used. What is below the
    *first* segment in use does not matter. ``check_log`` decides which gaps are legal.
    """
    base = violation.path.name.partition(".")[0]
    return (
        any(part.endswith(STRAY_DIR_SUFFIX) for part in violation.path.parts)
        or (violation.rule == "leftover" and violation.found.endswith(TEMPORARY_SUFFIX))
        or (base.isdecimal() and int(base) < first)
        or violation.rule in ("snapshot-format", "segment-missing")
    )
