"""
The leader epochs of the batches, compared with ``leader-epoch-checkpoint``.

The file may begin later than the log: DeleteRecords cuts it, and after a crash the log start offset
may be lower. The epochs of batches in front of its first entry are not checked.
"""

from __future__ import annotations

from barnabas.protocol.records.batch import MAGIC, RecordBatch
from barnabas.storage.errors import CorruptCheckpoint
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.checkpoints import LEADER_EPOCH_CHECKPOINT, EpochEntry
from barnabas.storage.verify import invariants
from barnabas.storage.verify.report import Add, FileReport


class EpochCheck:
    """
    Compares the entries of the file.
    """

    def __init__(self, partition: PartitionDirectory, report: FileReport) -> None:
        self._report = report.beside(partition.path / LEADER_EPOCH_CHECKPOINT)
        self._entries = self._read(partition)
        self._at = -1
        self._unnamed: int | None = None

    def _read(self, partition: PartitionDirectory) -> tuple[EpochEntry, ...] | None:
        """
        The entries; None if they are damaged.
        """
        try:
            entries = partition.leader_epochs
        except CorruptCheckpoint as error:
            self._report.add(
                invariants.EPOCHS_FORMAT, str(error), "lines of an epoch and an offset"
            )
            return None
        last = EpochEntry(-1, -1)
        for number, entry in enumerate(entries):
            if entry.epoch <= last.epoch or entry.start_offset <= last.start_offset:
                self._report.add(
                    invariants.EPOCHS_ORDER,
                    f"epoch {entry.epoch} from {entry.start_offset}",
                    f"more than {last.epoch} from {last.start_offset}",
                    entry=number,
                )
                return None
            last = entry
        return entries

    def batch(self, batch: RecordBatch, add: Add) -> None:
        """
        Compare with the next batch of the log.
        """
        entries, epoch = self._entries, batch.partition_leader_epoch
        if entries is None or batch.magic < MAGIC:
            return
        at, offset = self._at, batch.base_offset
        while at + 1 < len(entries) and entries[at + 1].start_offset <= offset:
            at += 1
        self._at = at
        if not entries:
            if epoch >= 0 and self._unnamed is None:
                self._unnamed = epoch
        elif at >= 0 and entries[at].epoch != epoch:
            expected = f"{entries[at].epoch}, which begins at offset {entries[at].start_offset}"
            add(invariants.EPOCHS_BATCH, f"leader epoch {epoch}", expected)

    def end(self, end_offset: int) -> None:
        """
        Check the last entry. The log ends before *end_offset*, and is not damaged there.
        """
        if self._unnamed is not None:
            self._report.add(
                invariants.EPOCHS_MISSING, "no epoch", f"{self._unnamed}, as the batches have"
            )
        last = self._entries[-1] if self._entries else None
        if last is not None and last.start_offset > end_offset:
            self._report.add(
                invariants.EPOCHS_END,
                f"epoch {last.epoch} from {last.start_offset}",
                f"a start up to {end_offset}",
                offset=last.start_offset,
            )
