"""
A snapshot of the cluster's metadata: batches in a file of their own.

::

    00000000000000000047-0000000001.checkpoint
    end offset           epoch

    a control batch with a header, batches of records, a control batch with a footer
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.control import ControlRecordType
from barnabas.storage.errors import CorruptRecord, KafkaStorageError
from barnabas.storage.fs.interface import Files
from barnabas.storage.segment.records import FileRecords
from barnabas.storage.verify import invariants
from barnabas.storage.verify.batch import check_batch
from barnabas.storage.verify.report import FileReport

_FRAME: Final = (ControlRecordType.SNAPSHOT_HEADER, ControlRecordType.SNAPSHOT_FOOTER)


def check_metadata_snapshot(files: Files, report: FileReport, epoch: int) -> None:
    """
    Check the snapshot in the file of *report*, which has *epoch* in its name.
    """
    try:
        records = FileRecords.open(files, report.path, mutable=False)
    except FileNotFoundError:
        return
    except KafkaStorageError as error:
        report.add(invariants.UNREADABLE, str(error), "a file that can be read")
        return
    position = offset = 0
    frame: list[ControlRecordType] = []
    try:
        for batch in records.batches():
            add = report.at(position, batch)
            if not check_batch(batch, add):
                return
            if batch.base_offset != offset or batch.partition_leader_epoch != epoch:
                found = f"offset {batch.base_offset} in epoch {batch.partition_leader_epoch}"
                add(invariants.METADATA_SNAPSHOT, found, f"offset {offset} in epoch {epoch}")
                return
            if batch.is_control:
                frame += [each for each in _types(batch) if each in _FRAME]
            position += batch.size
            offset = batch.next_offset
    except CorruptRecord as error:
        report.add(invariants.BATCH_SIZE, str(error), "a batch", position=error.position)
        return
    finally:
        records.close_handlers()
    if position != records.size or frame != list(_FRAME):
        report.add(
            invariants.METADATA_SNAPSHOT,
            f"{position} of {records.size} bytes, with {[each.name for each in frame]}",
            "all bytes, with a header and a footer",
            position=position,
        )


def _types(batch: RecordBatch) -> list[ControlRecordType]:
    try:
        return [ControlRecordType.of(record.key) for record in batch.records(most_headers=0)]
    except InvalidRecord:
        return []
