"""
``__cluster_metadata-0``: the log of the cluster's metadata (KRaft, KIP-500, KIP-630).

::

    00000000000000000000.log ...               segments and indexes, as of any log
    00000000000000000047-0000000001.checkpoint ...                              snapshots
    quorum-state                               the epoch of this start
    leader-epoch-checkpoint                    where each epoch begins
    partition.metadata                         the id of this topic, which is always the same

Each start is an epoch, which begins with a LEADER_CHANGE control batch. Records are appended in
batches with their own base offset and epoch, synced, and then applied. A crash may keep a batch
that was not synced, or lose it: its request was not answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from barnabas.coordination.cluster.errors import ForeignQuorum
from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.coordination.cluster.record_frames import (
    MAX_BATCH_BYTES,
    atomic_batch,
    check_sizes,
    divided_batches,
    encode_record,
    quorum_batch,
)
from barnabas.coordination.cluster.replay import Replay
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.protocol.records.control import (
    ControlRecordType,
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
)
from barnabas.protocol.structs import NamedTuple
from barnabas.server.cluster.snapshot_store import SnapshotStore
from barnabas.server.config import BrokerConfig
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log.retention import UNLIMITED
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.recovery.opening import open_log
from barnabas.storage.state_files.quorum_state import QuorumState
from barnabas.storage.uuids import METADATA_TOPIC_ID

DIRECTORY_NAME: Final = "__cluster_metadata-0"

READ_BYTES: Final = 1024 * 1024


class Appended(NamedTuple):
    """
    Records that are in the log, but not applied yet.
    """

    records: Sequence[Versioned]
    size: int
    timestamp: int


class MetadataLog:
    """
    The metadata log of a quorum of one.

    Invariants:

    1. The image is the sum of all committed records, which survive a crash.
    2. No two starts write in the same epoch.
    3. After an error of the disk the log is not written any more. Any other error takes back what
       is not committed, and the next change succeeds.

    Its controller uses it from one thread at a time.
    """

    def __init__(
        self, log: Log, *, node_id: int, config: BrokerConfig, files: Files, clock: Clock
    ) -> None:
        self.epoch = 0
        self.snapshots = SnapshotStore(log, config=config, files=files, clock=clock)
        self._log = log
        self._node_id = node_id
        self._files = files
        self._clock = clock
        self._replay = Replay()
        self._failure: KafkaError | None = None

    @classmethod
    def open(
        cls,
        log_dir: Path,
        *,
        node_id: int,
        config: BrokerConfig,
        files: Files,
        clock: Clock,
        failures: LogDirFailureChannel,
    ) -> Self:
        """
        Open the metadata log of *log_dir*, an empty one if there is none, and replay it.

        Raises:
            CorruptMessage, InconsistentMetadata, InconsistentSnapshots: it is damaged.
            UnknownMetadataRecord, UnsupportedFeatureLevel: a later release wrote it.
            KafkaStorageError: it cannot be read.
        """
        directory = log_dir / DIRECTORY_NAME
        if not files.exists(directory):
            files.make_directory(directory)
            files.restrict(directory)  # Its files have credentials of users and passwords of keys.
        log = open_log(
            directory,
            log_config(config),
            files=files,
            clock=clock,
            failures=failures,
            topic_id=METADATA_TOPIC_ID,
            # As in Kafka all of it is recovered: there is no marker of a clean stop.
            had_clean_shutdown=False,
        )
        try:
            opened = cls(log, node_id=node_id, config=config, files=files, clock=clock)
            opened._load()
        except BaseException:
            log.close_handlers()
            raise
        return opened

    @property
    def image(self) -> MetadataImage:
        return self._replay.image

    @property
    def in_transaction(self) -> bool:
        """
        Whether the log ends within a transaction.
        """
        return self._replay.in_transaction

    @property
    def end_offset(self) -> int:
        """
        The offset of the next record.
        """
        return self._log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """
        The offset below which everything is committed.
        """
        return self._log.high_watermark

    @property
    def voter_directory_id(self) -> UUID:
        """
        The directory that the one vote belongs to; zero unless the voters are kept in the log.
        """
        voters = self._kept_voters()
        return voters[0].voter_directory_id if voters else ZERO_UUID

    def _load(self) -> None:
        log = self._log
        self._replay = self.snapshots.recover()
        latest = self.snapshots.latest
        # With one voter all written records are committed, but they may not be on the disk yet.
        log.flush(force_flush_active_segment=True)
        log.update_high_watermark(log.log_end_offset)
        for batch in self._batches(log.log_start_offset if latest is None else latest.end_offset):
            self._replay.batch(batch)
            self.snapshots.count(batch.size)

    def _batches(self, position: int) -> Iterator[RecordBatch]:
        while position < self._log.log_end_offset:
            info = self._log.read(position, READ_BYTES, FetchIsolation.LOG_END, True)
            assert info.records is not None, f"the log has nothing at offset {position}"
            for batch in batches(info.records.read()):
                if batch.base_offset >= position:
                    yield batch
                    position = batch.next_offset

    # Leading

    def lead(self, *, take_over: bool = False) -> None:
        """
        Begin an epoch of this node.

        Args:
            take_over: also if other controllers have a vote. That is for a log whose changes stay
                in memory.

        Raises:
            ForeignQuorum: other controllers have a vote.
            InvalidQuorumState: the last epoch cannot be read.
            KafkaStorageError: it cannot be written.
        """
        directory = self._log.dir
        last = QuorumState.read(directory, self._files) or QuorumState()
        voters = self._voters(last)
        if voters != (self._node_id,) and not take_over:
            raise ForeignQuorum(
                f"The metadata log belongs to the controllers {list(voters)}; node {self._node_id}"
                " can only open it when it is the one controller"
            )
        latest = self.snapshots.latest
        in_log = max(
            self._log.leader_epochs.latest_epoch or 0, 0 if latest is None else latest.epoch
        )
        self.epoch = max(last.leader_epoch, in_log) + 1
        self._write_state(voters)
        self._log.assign_epoch_start_offset(self.epoch, self.end_offset)
        self._announce()

    def _write_state(self, voters: tuple[int, ...]) -> None:
        state = QuorumState(
            leader_id=self._node_id,
            leader_epoch=self.epoch,
            voters=voters,
            data_version=1 if self._keeps_voters else 0,
        )
        state.write(self._log.dir, self._files)

    def keep_voter(self, directory_id: UUID, listener: str, host: str, port: int) -> None:
        """
        Record this node as the one voter, with the address of its controller, as an upgrade of
        ``kraft.version`` to 1 does (KIP-853, Kafka ``KRaftVersionUpgrade``). Other controllers can
        join the quorum from then on.

        Args:
            directory_id: of the directory with this log.

        Raises:
            KafkaStorageError: it cannot be written.
        """
        voter = VotersRecord.Voter(
            voter_id=self._node_id,
            voter_directory_id=directory_id,
            endpoints=[VotersRecord.Endpoint(name=listener, host=host, port=port)],
            kraft_version_feature=VotersRecord.KRaftVersionFeature(
                min_supported_version=0, max_supported_version=1
            ),
        )
        if self._kept_voters() != [voter]:
            version = KRaftVersionRecord(version=0, kraft_version=1)
            self._append_control(
                {
                    ControlRecordType.KRAFT_VERSION: encode(version, 0),
                    ControlRecordType.KRAFT_VOTERS: encode(
                        VotersRecord(version=0, voters=[voter]), 0
                    ),
                }
            )
        self._write_state((self._node_id,))

    def _append_control(self, control: Mapping[ControlRecordType, bytes]) -> None:
        batch = quorum_batch(
            control,
            base_offset=self.end_offset,
            epoch=self.epoch,
            timestamp=self._clock.now_ms(),
        )
        with self._failing():
            self._append(batch)
        self.flush()
        self._log.update_high_watermark(self.end_offset)
        for each in batches(batch):
            self._replay.batch(each)
        self.snapshots.count(len(batch))

    def _announce(self) -> None:
        me = [LeaderChangeMessage.Voter(voter_id=self._node_id)]
        message = LeaderChangeMessage(
            version=0, leader_id=self._node_id, voters=me, granting_voters=me
        )
        self._append_control({ControlRecordType.LEADER_CHANGE: encode(message, 0)})

    @property
    def _keeps_voters(self) -> bool:
        """
        Whether the quorum keeps its voters in the log (KIP-853).
        """
        return ControlRecordType.KRAFT_VERSION in self._replay.quorum

    def _voters(self, last: QuorumState) -> tuple[int, ...]:
        kept = self._kept_voters()
        if kept is not None:
            return tuple(voter.voter_id for voter in kept)
        return last.voters or (self._node_id,)

    def _kept_voters(self) -> list[VotersRecord.Voter] | None:
        kept = self._replay.quorum.get(ControlRecordType.KRAFT_VOTERS)
        return None if kept is None else decode(VotersRecord, 0, kept).voters

    # Writing

    def append(
        self,
        records: Sequence[Versioned],
        values: Sequence[bytes] | None = None,
        *,
        atomic: bool = True,
    ) -> Appended:
        """
        Append *records*, which have an effect once they are flushed and committed.

        Args:
            values: what ``encode_record`` makes of them, if it was asked.
            atomic: whether they have to be in one batch.

        Raises:
            RecordListTooLarge: they do not fit into one batch, or one of them into none.
            KafkaStorageError: the log cannot be written.
        """
        now = self._clock.now_ms()
        divide = atomic_batch if atomic else divided_batches
        size = 0
        with self._failing():
            if values is None:
                values = [encode_record(*each) for each in records]
            check_sizes(values)
            for batch in divide(
                values, base_offset=self.end_offset, epoch=self.epoch, timestamp=now
            ):
                self._append(batch)
                size += len(batch)
        return Appended(records, size, now)

    def _append(self, batch: bytearray) -> None:
        self._log.append_as_leader(memoryview(batch), self.epoch, origin=AppendOrigin.RAFT_LEADER)

    def flush(self) -> None:
        """
        Return once all appended records survive a crash. May block.

        Raises:
            KafkaStorageError: the sync failed, and the log cannot be written any more.
        """
        with self._failing():
            self._log.flush(force_flush_active_segment=True)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        try:
            yield
        except KafkaStorageError as error:
            # The file may have records that the image has not, and that the next start applies.
            self._failure = error
            raise
        except BaseException:
            self._take_back()
            raise

    def _take_back(self) -> None:
        """
        Truncate uncommitted records: their change fails, and later ones may succeed.
        """
        if self._log.log_end_offset == self._log.high_watermark:
            return
        try:
            self._log.truncate_to(self._log.high_watermark)
        except KafkaError as error:
            self._failure = error

    def commit(self, appended: Appended) -> None:
        """
        Apply records that were appended and flushed.
        """
        self._log.update_high_watermark(self.end_offset)
        for record, _ in appended.records:
            self._replay.record(record)
        self._replay.last_timestamp = appended.timestamp
        self.snapshots.count(appended.size)

    def prepare_snapshot(self) -> Callable[[], None]:
        """
        Return a function that writes a snapshot of all committed records, and may block for long.
        """
        return self.snapshots.prepare(self._replay, self.epoch)

    def close(self) -> None:
        """
        Close the log; nothing can be written any more.

        Raises:
            KafkaStorageError: the disk failed. All files are closed even so.
        """
        try:
            self._log.close()
        except BaseException:
            self._log.close_handlers()
            raise


def log_config(config: BrokerConfig) -> LogConfig:
    """
    The configuration of the metadata log, without retention: snapshots allow its deletion.
    """
    return LogConfig(
        max_message_bytes=MAX_BATCH_BYTES,
        segment_bytes=config.metadata_log_segment_bytes,
        internal_segment_bytes=config.internal_metadata_log_segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
    )
