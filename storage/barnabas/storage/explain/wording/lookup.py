"""
The steps of a lookup, in words.
"""

from __future__ import annotations

from barnabas.storage.explain.lookup import IndexStep, OffsetPath, TimePath
from barnabas.storage.explain.records import RecordAt
from barnabas.storage.explain.units import moment
from barnabas.storage.units import counted


def offset_sentences(path: OffsetPath, found: RecordAt) -> list[str]:
    """
    The steps of a fetch to the batch.
    """
    base = path.segment.base_offset
    sentences = [f"Segment {base:,} has it: no later segment begins at this offset or below."]
    if path.passed:
        passed = counted(len(path.passed), "segment")
        sentences = [
            f"Compaction has removed it and the rest of its segment ({passed} skipped), so the"
            f" fetch continues in segment {base:,}."
        ]
    sentences.append(_index(path.index))
    sentences.append(_scan(path, found))
    if found.record is None and found.batch.base_offset <= path.offset <= found.batch.last_offset:
        sentences.append("Compaction has removed the record of this offset from the batch.")
    elif found.batch.base_offset > path.offset:
        sentences.append(
            f"Compaction has removed offset {path.offset:,}: a fetch from there returns this batch."
        )
    return sentences


def time_sentences(path: TimePath) -> list[str]:
    """
    The steps of a lookup by time to the record.
    """
    base = path.segment.base_offset
    at = moment(path.timestamp)
    sentences = [
        f"Segment {base:,} is the first one with a record of {at} or later: its latest record is"
        f" of {moment(path.segment.largest_timestamp())}."
    ]
    time = path.time
    entries = counted(time.entries, "entry")
    if time.slot is None:
        sentences.append(f"Its time index has {entries}, none of them up to {at}.")
    else:
        sentences.append(
            f"Its time index has {entries}; entry {time.slot}, the last one that is not later, is"
            f" of {moment(time.timestamp)} and gives offset {time.offset:,}."
        )
    sentences.append(_index(path.index))
    if path.found is None:
        sentences.append("No record from there on has this time or a later one.")
    else:
        sentences.append(
            f"Batch {path.scanned_batches:,} from there on has the first record that is not"
            f" earlier: offset {path.found.offset:,}, of {moment(path.found.timestamp)}."
        )
    return sentences


def _index(step: IndexStep) -> str:
    if step.entries == 0:
        return "Its offset index has no entries: the scan begins at byte 0."
    entries = counted(step.entries, "entry")
    if step.slot is None:
        return (
            f"Its offset index has {entries}, none of them up to offset {step.target_offset:,}:"
            " the scan begins at byte 0."
        )
    return (
        f"Its offset index has {entries}; entry {step.slot}, the last one up to offset"
        f" {step.target_offset:,}, is of offset {step.offset:,}: the scan begins at byte"
        f" {step.position:,}."
    )


def _scan(path: OffsetPath, found: RecordAt) -> str:
    first, last = found.batch.base_offset, found.batch.last_offset
    holds = f"offset {first:,}" if first == last else f"offsets {first:,} to {last:,}"
    has = f"at byte {path.position:,}, has {holds} in {counted(path.size, 'byte')}."
    if path.scanned_batches == 1:
        return f"The first batch there, {has}"
    return f"The scan reads {counted(path.scanned_batches, 'batch')}; the last one, {has}"
