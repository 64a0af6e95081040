"""
The replay of batches of the metadata log, from the log, from a snapshot, or after an append.

Records after BEGIN_TRANSACTION are applied at END_TRANSACTION, and dropped at ABORT_TRANSACTION
(KIP-868). Control batches have the leader of the log and, in a quorum that keeps its voters in the
log (KIP-853), the voters.
"""

from __future__ import annotations

from barnabas.coordination.cluster.errors import InconsistentMetadata, UnknownMetadataRecord
from barnabas.coordination.cluster.image import MetadataImage
from barnabas.coordination.cluster.record_frames import decode_record
from barnabas.protocol.codec.codec import decode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import CorruptMessage, DecodeError, InvalidRecord
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.control import ControlRecordType, SnapshotHeaderRecord
from barnabas.protocol.records.record import Record


class Replay:
    """
    The sum of the batches so far.

    Invariants:

    1. The image has the records of all complete transactions, and none of an open one.
    2. ``last_timestamp`` is that of the last batch.
    """

    __slots__ = (
        "_open",
        "image",
        "is_complete",
        "last_timestamp",
        "quorum",
        "snapshot_timestamp",
    )

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.quorum: dict[ControlRecordType, bytes] = {}  # what a snapshot has to carry on
        self.is_complete = False  # whether the last record was the footer of a snapshot
        self.last_timestamp = self.snapshot_timestamp = -1
        self._open: list[Message] | None = None

    @property
    def in_transaction(self) -> bool:
        """
        Whether a transaction has begun and not ended.
        """
        return self._open is not None

    def batch(self, batch: RecordBatch) -> None:
        """
        Apply a stored batch.

        Raises:
            CorruptMessage: it is damaged.
            InconsistentMetadata: its records contradict earlier ones.
            UnknownMetadataRecord, UnsupportedFeatureLevel: a later release wrote it.
        """
        batch.ensure_valid()
        self.last_timestamp = batch.max_timestamp
        for record in batch.records():
            try:
                if batch.is_control:
                    self._control(record)
                else:
                    self.record(decode_record(record.value or b"")[0])
            except (DecodeError, InvalidRecord) as error:
                raise CorruptMessage(f"metadata record {record.offset}: {error}") from error
            except (InconsistentMetadata, UnknownMetadataRecord) as error:
                raise type(error)(f"offset {record.offset} of the metadata log: {error}") from error

    def record(self, record: Message) -> None:
        """
        Apply one record.

        Raises:
            InconsistentMetadata: it contradicts earlier ones.
            UnsupportedFeatureLevel: it finalizes a feature that this release does not know.
        """
        if isinstance(record, records.BeginTransactionRecord):
            self._expect_transaction(False)
            self._open = []
        elif isinstance(record, records.EndTransactionRecord):
            for member in self._expect_transaction(True):
                self.image.apply(member)
            self._open = None
        elif isinstance(record, records.AbortTransactionRecord):
            self._expect_transaction(True)
            self._open = None
        elif self._open is not None:
            self._open.append(record)
        else:
            self.image.apply(record)

    def _expect_transaction(self, expected: bool) -> list[Message]:
        if expected != self.in_transaction:
            state = "no transaction is" if expected else "a transaction is already"
            raise InconsistentMetadata(f"{state} open")
        return self._open or []

    def _control(self, record: Record) -> None:
        control_type = ControlRecordType.of(record.key)
        value = record.value or b""
        self.is_complete = control_type is ControlRecordType.SNAPSHOT_FOOTER
        if control_type is ControlRecordType.SNAPSHOT_HEADER:
            header = decode(SnapshotHeaderRecord, 0, value)
            self.snapshot_timestamp = header.last_contained_log_timestamp
        elif control_type in (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS):
            self.quorum[control_type] = bytes(value)
