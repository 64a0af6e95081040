"""
How a record is found, and what it is, in words.
"""

from __future__ import annotations

from barnabas.protocol.compression import CompressionType
from barnabas.storage.explain.finding import IndexStep, OffsetPath, TimePath
from barnabas.storage.explain.records import LaterValues, RecordAt
from barnabas.storage.explain.units import counted, duration, moment

_LONGEST_TEXT = 60


def offset_sentences(path: OffsetPath, found: RecordAt) -> list[str]:
    """
    How a fetch comes to the batch.
    """
    base = path.segment.base_offset
    sentences = [f"In segment {base:,}, the last one that does not begin above it."]
    if path.passed:
        passed = counted(len(path.passed), "segment")
        sentences = [
            f"The segment that should have it has nothing from there on ({passed}, emptied by"
            f" compaction), so the fetch goes on to segment {base:,}."
        ]
    sentences.append(_index(path.index))
    sentences.append(_scan(path, found))
    if found.record is None and found.batch.base_offset <= path.offset <= found.batch.last_offset:
        sentences.append("The batch has no record of this offset any more: compaction took it out.")
    elif found.batch.base_offset > path.offset:
        sentences.append(
            f"Nothing is left of offset {path.offset:,} itself: a fetch that begins there is"
            " answered with this batch."
        )
    return sentences


def time_sentences(path: TimePath) -> list[str]:
    """
    How a lookup by time comes to the record.
    """
    base = path.segment.base_offset
    at = moment(path.timestamp)
    sentences = [
        f"In segment {base:,}, the first one with a record of {at} or later: its latest is of"
        f" {moment(path.segment.largest_timestamp())}."
    ]
    time = path.time
    entries = counted(time.entries, "entry")
    if time.slot is None:
        sentences.append(f"Its time index ({entries}) has none up to {at}.")
    else:
        sentences.append(
            f"Its time index ({entries}) leads to offset {time.offset:,}: entry {time.slot}, of"
            f" {moment(time.timestamp)}, is the last one that is not later."
        )
    sentences.append(_index(path.index))
    if path.found is None:
        sentences.append("From there on no record is that late.")
    else:
        sentences.append(
            "From there on the first record that is not earlier is in batch"
            f" {path.scanned_batches:,}: offset {path.found.offset:,}, of"
            f" {moment(path.found.timestamp)}."
        )
    return sentences


def _index(step: IndexStep) -> str:
    if step.entries == 0:
        return "Its offset index has no entries: the scan begins at the first byte."
    entries = counted(step.entries, "entry")
    if step.slot is None:
        return (
            f"Its offset index ({entries}) has none up to offset {step.target_offset:,}: the scan"
            " begins at the first byte."
        )
    return (
        f"Its offset index ({entries}) leads to byte {step.position:,}: entry {step.slot}, of"
        f" offset {step.offset:,}, is the last one that is not above {step.target_offset:,}."
    )


def _scan(path: OffsetPath, found: RecordAt) -> str:
    first, last = found.batch.base_offset, found.batch.last_offset
    holds = f"offset {first:,}" if first == last else f"offsets {first:,} to {last:,}"
    has = f"at byte {path.position:,}, has {holds} in {counted(path.size, 'byte')}."
    if path.scanned_batches == 1:
        return f"The first batch from there on, {has}"
    scanned = counted(path.scanned_batches, "batch")
    return f"From there on {scanned} are looked at; the last of them, {has}"


def record_sentences(found: RecordAt, log_start_offset: int, now_ms: int) -> list[str]:
    """
    What there is at the offset.
    """
    batch, record = found.batch, found.record
    sentences = []
    if record is not None:
        at = "no timestamp" if record.timestamp < 0 else moment(record.timestamp)
        if batch.is_control:
            sentences.append(f"A control record, {found.control_type}, of {at}.")
        else:
            value = "no value" if record.value is None else counted(len(record.value), "byte")
            sentences.append(f"A record of {at}: key {_text(record.key)}, value {value}.")
    sentences.append(_batch(found))
    if record is not None and record.offset < log_start_offset:
        sentences.append(
            f"Nobody can read it: the log start offset is {log_start_offset:,}. It is on the disk"
            " until its segment goes."
        )
    if batch.delete_horizon_ms is not None:
        horizon = batch.delete_horizon_ms
        passed = "has passed" if horizon <= now_ms else f"is {duration(horizon - now_ms)} from now"
        sentences.append(
            f"Its tombstones and markers may be read until {moment(horizon)}, which {passed}; a"
            " cleaning after that takes them out."
        )
    elif found.is_tombstone:
        sentences.append(
            "It is a tombstone. The first cleaning that comes across it gives it a horizon,"
            " delete.retention.ms later; a cleaning after that takes it out."
        )
    if found.is_aborted:
        sentences.append("Its transaction was aborted: who reads committed records only, skips it.")
    elif found.is_undecided:
        sentences.append(
            "It is not below the last stable offset: who reads committed records only, does not"
            " get there yet."
        )
    if found.later is not None:
        sentences.append(_later(found.later))
    return sentences


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
    return f"{sentence}, in leader epoch {batch.partition_leader_epoch}."


def _later(later: LaterValues) -> str:
    if later.last_offset is None:
        return "It is the last of its key: compaction keeps it."
    kind = "a tombstone" if later.last_is_tombstone else "a value"
    if later.count == 1:
        newer = f"Its key has {kind} behind it, at offset {later.last_offset:,}"
    else:
        newer = (
            f"Its key has {later.count:,} records behind it, the last one {kind} at offset"
            f" {later.last_offset:,}"
        )
    if later.is_cleanable:
        return f"{newer}: the next cleaning takes this one out."
    return f"{newer}: a cleaning takes this one out, but none comes that far yet."


def _text(data: bytes | None) -> str:
    if data is None:
        return "none"
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text:
        return f'"{text[:_LONGEST_TEXT]}{"..." if len(text) > _LONGEST_TEXT else ""}"'
    if not data:
        return "empty"
    shown = bytes(data[: _LONGEST_TEXT // 2]).hex()
    return f"0x{shown}{'...' if len(data) > _LONGEST_TEXT // 2 else ''}"
