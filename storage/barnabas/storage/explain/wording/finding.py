"""
How a record is found, in words.
"""

from __future__ import annotations

from barnabas.storage.explain.finding import IndexStep, OffsetPath, TimePath
from barnabas.storage.explain.records import RecordAt
from barnabas.storage.explain.units import counted, moment


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
