"""
The record at an offset, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import MAGIC, RecordBatch
from barnabas.protocol.records.record import Record
from barnabas.storage.explain.records import LaterValues, RecordAt
from barnabas.storage.explain.report import PartitionReport
from barnabas.storage.explain.units import duration, moment
from barnabas.storage.log.retention import expires_ms
from barnabas.storage.units import counted

_LONGEST_TEXT: Final = 60


def record_words(report: PartitionReport, *, with_keys: bool = True) -> list[str]:
    """
    The record that the user asks for, and its batch.

    Args:
        with_keys: whether the sentences have its key, or else its size.
    """
    found = report.record
    if found is None:
        return []
    sentences = []
    if found.record is not None:
        sentences += [_record(found, found.record, report.now_ms, with_keys), _batch(found)]
        sentences += _age(report, found.record)
        sentences += _visibility(found, found.record, report.opened.log.log_start_offset)
    else:
        sentences.append(_batch(found))
    if found.flaw is not None:
        sentences.append(f"Its batch cannot be read: {found.flaw}. See `barnabas verify`.")
    sentences += _horizon(found, found.batch, report.now_ms)
    if found.later is not None:
        sentences.append(_later(found.later))
    return sentences


def _record(found: RecordAt, record: Record, now_ms: int, with_keys: bool) -> str:
    at = "no timestamp"
    if record.timestamp >= 0:
        age = now_ms - record.timestamp
        passed = f"{duration(age)} old" if age >= 0 else f"{duration(-age)} from now"
        at = f"{moment(record.timestamp)}, {passed}"
    if found.batch.is_control:
        return f"A control record, {found.control_type}, of {at}."
    if record.key is None:
        key = "no key"
    elif with_keys:
        key = f"the key {_text(record.key)}"
    else:
        key = f"a key of {counted(len(record.key), 'byte')}"
    size = 0 if record.value is None else len(record.value)
    value = "no value" if record.value is None else f"a value of {counted(size, 'byte')}"
    return f"A record of {at}. It has {key} and {value}."


def _age(report: PartitionReport, record: Record) -> Iterator[str]:
    """
    Why a record may exist longer than retention.ms.
    """
    chosen = report.chosen
    if chosen is None or chosen.lifetime.goes_by is not None or record.timestamp < 0:
        return
    own = expires_ms(report.config, record.timestamp)
    if own is not None and own <= report.now_ms:
        yield (
            "It is older than retention.ms, but a segment is deleted as a whole, after its latest"
            " record."
        )


def _visibility(found: RecordAt, record: Record, log_start_offset: int) -> Iterator[str]:
    if record.offset < log_start_offset:
        yield (
            f"It cannot be read: the log start offset is {log_start_offset:,}. It is on the disk"
            " until its segment is deleted."
        )
    if found.is_aborted:
        yield "Its transaction was aborted: read_committed consumers skip it."
    elif found.is_undecided:
        yield (
            "It is not below the last stable offset: read_committed consumers do not get it yet."
        )


def _horizon(found: RecordAt, batch: RecordBatch, now_ms: int) -> Iterator[str]:
    horizon = batch.delete_horizon_ms
    if horizon is not None:
        passed = "has passed" if horizon <= now_ms else f"is {duration(horizon - now_ms)} from now"
        yield (
            f"Its tombstones and markers stay until {moment(horizon)}, which {passed}; a cleaning"
            " after that removes them."
        )
    elif found.is_tombstone and batch.magic < MAGIC:
        yield (
            "It is a tombstone of an old format. The first cleaning that reads it removes it if its"
            " segment was modified delete.retention.ms before the last clean one; otherwise it sets"
            " a delete horizon."
        )
    elif found.is_tombstone:
        yield (
            "It is a tombstone. The first cleaning that reads it sets a delete horizon,"
            " delete.retention.ms later; a cleaning after that removes it."
        )


def _batch(found: RecordAt) -> str:
    batch = found.batch
    codec = CompressionType.of(batch.codec).name.lower()
    packed = "not compressed" if codec == "none" else f"compressed with {codec}"
    sentence = f"Its batch has {counted(batch.record_count, 'record')}, {packed}"
    if batch.has_producer_id:
        kind = "a transaction of producer" if batch.is_transactional else "producer"
        sentence += f", of {kind} {batch.producer_id} (epoch {batch.producer_epoch})"
        if batch.base_sequence >= 0:
            sentence += f" from sequence {batch.base_sequence} on"
    if batch.magic < MAGIC:
        return f"{sentence}, in message format {batch.magic}, which has no leader epoch."
    return f"{sentence}, in leader epoch {batch.partition_leader_epoch}."


def _later(later: LaterValues) -> str:
    if not later.unreadable_batches:
        return _values(later)
    batches = counted(later.unreadable_batches, "batch")
    return f"{batches} behind it cannot be read. According to the others: {_values(later)}"


def _values(later: LaterValues) -> str:
    if later.last_offset is None:
        return "It is the latest record of its key: compaction keeps it."
    kind = "a tombstone" if later.last_is_tombstone else "a value"
    if later.count == 1:
        newer = f"Its key has a later record, {kind} at offset {later.last_offset:,}"
    else:
        newer = (
            f"Its key has {later.count:,} later records, the last one {kind} at offset"
            f" {later.last_offset:,}"
        )
    if later.is_cleanable:
        return f"{newer}: the next cleaning removes this one."
    return f"{newer}: a cleaning removes this one, but the next one does not read that far."


def _text(data: bytes) -> str:
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text:
        return f'"{text[:_LONGEST_TEXT]}{"..." if len(text) > _LONGEST_TEXT else ""}"'
    if not data:
        return "of no bytes"
    shown = bytes(data[: _LONGEST_TEXT // 2]).hex()
    return f"0x{shown}{'...' if len(data) > _LONGEST_TEXT // 2 else ''}"
