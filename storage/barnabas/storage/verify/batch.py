"""
One batch: its header, its checksum, its records.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.compression import CorruptCompressedData
from barnabas.protocol.errors import CorruptMessage, InvalidRecord
from barnabas.protocol.records.batch import MAGIC, NO_SEQUENCE, LegacyBatch, RecordBatch
from barnabas.protocol.records.batch.layout import LOG_APPEND_TIME_FLAG
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.scan import RecordScan
from barnabas.storage.verify import invariants
from barnabas.storage.verify.report import Add

_CODECS: Final = 5
_LEGACY_CODECS: Final = 4
_MOST_CONTROL_BYTES: Final = 1 << 20
"""No control batch is larger. One whose header says so is not read into memory."""


def check_batch(batch: RecordBatch, add: Add) -> bool:
    """
    Check a batch whose length is right, and return whether its header can be trusted.
    """
    if batch.magic > MAGIC:
        # Kafka reads any later format as this one; the checksum does not cover the number.
        add(invariants.BATCH_MAGIC, f"format {batch.magic}", f"format 0 to {MAGIC}")
    if not batch.is_valid():
        add(invariants.BATCH_CRC, f"checksum {batch.crc}", str(batch.computed_crc()))
        return False
    if isinstance(batch, LegacyBatch):
        return _check_legacy(batch, add)
    return _check_records(batch, add)


def _check_records(batch: RecordBatch, add: Add) -> bool:
    if batch.codec >= _CODECS:
        add(invariants.BATCH_CODEC, f"codec {batch.codec}", "0 to 4")
        return False
    try:
        scan = batch.scan()
    except CorruptCompressedData as error:
        add(invariants.BATCH_COMPRESSION, str(error), "a whole stream")
        return False
    if scan.malformed:
        add(invariants.RECORD_FORMAT, _flaw(batch) or scan.malformed, _records(batch))
        return False
    _check_offsets(batch, scan, add)
    if not batch.attributes & LOG_APPEND_TIME_FLAG and batch.record_count:
        _check_timestamp(batch, scan, add)
    if batch.is_control:
        return _check_control(batch, add)
    if batch.has_producer_id and batch.base_sequence < 0:
        found = f"sequence {batch.base_sequence} of producer {batch.producer_id}"
        add(invariants.BATCH_PRODUCER, found, "0 or more")
    return True


def _check_legacy(batch: LegacyBatch, add: Add) -> bool:
    """
    Check a message of an old format, or all messages in a wrapper.
    """
    if batch.codec >= _LEGACY_CODECS:
        add(invariants.BATCH_CODEC, f"codec {batch.codec}", f"0 to {_LEGACY_CODECS - 1}")
        return False
    first = last = -1
    is_ascending = True
    try:
        for record in batch.records():
            if first < 0:
                first = record.offset
            is_ascending = is_ascending and record.offset > last
            last = record.offset
    except CorruptCompressedData as error:
        add(invariants.BATCH_COMPRESSION, str(error), "a whole stream")
        return False
    except (CorruptMessage, InvalidRecord) as error:
        add(invariants.RECORD_FORMAT, str(error), _records(batch))
        return False
    if not is_ascending or last != batch.last_offset:
        found = f"offsets {first} to {last}"
        add(invariants.RECORD_OFFSETS, found, f"ascending up to {batch.last_offset}")
    return True


def _check_offsets(batch: RecordBatch, scan: RecordScan, add: Add) -> None:
    last = batch.last_offset_delta
    if not scan.ascending:
        found, expected = "offset deltas that do not grow", f"0 to {last}, ascending"
    elif scan.last_offset_delta > last:
        found, expected = f"a record with offset delta {scan.last_offset_delta}", f"up to {last}"
    else:
        return
    add(invariants.RECORD_OFFSETS, found, expected)


def _check_timestamp(batch: RecordBatch, scan: RecordScan, add: Add) -> None:
    if scan.max_timestamp != batch.max_timestamp:
        found = f"max timestamp {batch.max_timestamp}"
        add(invariants.BATCH_TIMESTAMP, found, str(scan.max_timestamp))


def _check_control(batch: RecordBatch, add: Add) -> bool:
    """
    Check a control batch. Compaction may have removed its records and left the header.
    """
    if batch.has_producer_id and batch.base_sequence != NO_SEQUENCE:
        found = f"sequence {batch.base_sequence} in a control batch"
        add(invariants.BATCH_PRODUCER, found, str(NO_SEQUENCE))
    if batch.size > _MOST_CONTROL_BYTES:
        found = f"a control batch of {batch.size} bytes"
        add(invariants.CONTROL_RECORD, found, "a small one")
        return False
    if batch.has_producer_id and batch.record_count > 1:
        found = f"{batch.record_count} records"
        add(invariants.CONTROL_RECORD, found, "one marker")
        return False
    try:
        for record in batch.records():
            if batch.has_producer_id:
                EndTransactionMarker.deserialize(record)
            elif ControlRecordType.of(record.key) is ControlRecordType.UNKNOWN:
                add(invariants.CONTROL_RECORD, repr(record.key), "a type")
    except InvalidRecord as error:
        add(invariants.CONTROL_RECORD, str(error), "a control record")
        return False
    return True


def _flaw(batch: RecordBatch) -> str | None:
    """
    Kafka's error for the records of a malformed batch, as ``dump-log`` prints it.
    """
    try:
        for _ in batch.records():
            pass
    except (CorruptCompressedData, InvalidRecord) as error:
        return str(error)
    return None


def _records(batch: RecordBatch) -> str:
    return f"{batch.record_count} records in {batch.size} bytes"
