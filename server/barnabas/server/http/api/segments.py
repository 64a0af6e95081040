"""
The files of one segment: its index entries and its batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict, TypeVar

from barnabas.protocol.compression import CompressionType, decompress_chunks
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records.batch import RecordBatch, TimestampType
from barnabas.server.http.api.context import ApiContext, number_in
from barnabas.server.http.api.explaining import MOST_READ_BYTES, PARTITION, WhatIf, report
from barnabas.server.http.fields import Range
from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import Answer, Operation
from barnabas.server.http.pages import Page
from barnabas.storage.explain.as_json import segment_facts
from barnabas.storage.explain.report import PartitionReport, report_on_segment
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.index_file import IndexFile
from barnabas.storage.readonly.segment import ReadOnlySegment, StoredBatch
from barnabas.storage.state_files.file_names import LOG_SUFFIX
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import LONG_MAX

T = TypeVar("T")

SEGMENT: Final = f"{PARTITION}/segments/{{segment}}"


class FileView(TypedDict):
    """
    A file of the segment.
    """

    name: str
    size: int


class IndexView(TypedDict):
    """
    An index of the segment; the numbers are null if its file is missing.
    """

    entries: int
    bytes: int | None
    is_preallocated: bool


class IndexesView(TypedDict):
    """
    The indexes of a segment.
    """

    offset: IndexView
    time: IndexView
    txn: IndexView


class SegmentView(TypedDict):
    """
    A segment, in the words of ``barnabas explain``, and its files.
    """

    segment: dict[str, Any]
    size: int
    files: list[FileView]
    indexes: IndexesView


class EntriesView(TypedDict):
    """
    Entries of an index: offset and position, timestamp and offset, or an aborted transaction.
    """

    entries: list[dict[str, int]]
    next: int | None
    total: int


class BatchView(TypedDict):
    """
    A batch.
    """

    base_offset: int
    last_offset: int
    position: Annotated[int, "where it begins in the file"]
    size: int
    records: int
    codec: str
    uncompressed_size: Annotated[int | None, "of the records; null if they cannot be unpacked"]
    ratio: Annotated[float | None, "uncompressed to compressed"]
    base_timestamp: int
    max_timestamp: int
    timestamp_type: Literal["create_time", "log_append_time"]
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    magic: int
    is_valid: Annotated[bool, "whether the checksum fits"]


class BatchesView(TypedDict):
    """
    Batches of a segment.
    """

    batches: list[BatchView]
    next_position: int | None
    segment_size: int


@dataclass(frozen=True, slots=True)
class BatchPage:
    """
    Which batches.
    """

    position: Annotated[int, Range(0, LONG_MAX), "where the first one begins in the file"] = 0
    limit: Annotated[int, Range(1, 1000), "the most batches"] = 100


async def _in_segment(
    api: ApiContext,
    names: tuple[str, str, str],
    work: Callable[[ReadOnlySegment], T],
) -> T:
    """
    What *work* makes of a segment, in a thread.

    Args:
        names: topic, partition and base offset, as in the path.
    """
    topic, partition, text = names
    directory = api.partition(topic, partition).log.dir
    base_offset = number_in(text)
    files = api.broker.files

    def read() -> T:
        try:
            if base_offset is None:
                raise FileNotFoundError
            segment = ReadOnlySegment(files, _log_file(directory, base_offset))
        except FileNotFoundError:
            raise Refused(
                404, f"{topic}-{partition} has no segment with the base offset {text}"
            ) from None
        try:
            return work(segment)
        finally:
            segment.give_back()

    return await api.in_thread(read)


def _log_file(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020d}{LOG_SUFFIX}"


async def show(
    api: ApiContext, given: WhatIf, *, topic: str, partition: str, segment: str
) -> Answer:
    files = await _in_segment(api, (topic, partition, segment), partial(_files, api.broker.files))
    where = TopicPartition(topic, api.partition_index(topic, partition))

    def answer(found: PartitionReport) -> Answer:
        chosen = report_on_segment(found, number_in(segment) or 0)
        assert chosen.chosen is not None
        return Answer({"segment": segment_facts(chosen, chosen.chosen), **files})

    return await report(api, where, given, answer)


def _files(files: Files, segment: ReadOnlySegment) -> dict[str, Any]:
    found = []
    begin = segment.path.name.removesuffix(LOG_SUFFIX)
    for name in files.names(segment.path.parent):
        if name.startswith(begin):
            with suppress(FileNotFoundError):
                found.append({"name": name, "size": files.size(segment.path.parent / name)})
    return {
        "size": segment.size,
        "files": found,
        "indexes": {
            "offset": _index(segment.offset_index),
            "time": _index(segment.time_index),
            "txn": _index(segment.txn_index),
        },
    }


def _index(index: IndexFile) -> IndexView:
    return {
        "entries": index.count,
        "bytes": index.size,
        "is_preallocated": index.is_preallocated,
    }


async def index(
    api: ApiContext, given: Page, *, topic: str, partition: str, segment: str, kind: str
) -> Answer:
    read = _INDEXES.get(kind)
    if read is None:
        raise Refused(404, f"there is no index {kind}, but {', '.join(_INDEXES)}")

    def entries(found: ReadOnlySegment) -> Answer:
        total, all_entries = read(found)
        end = given.start + given.limit
        view: EntriesView = {
            "entries": [entry._asdict() for entry in islice(all_entries, given.start, end)],
            "next": end if end < total else None,
            "total": total,
        }
        return Answer(view)

    return await _in_segment(api, (topic, partition, segment), entries)


_INDEXES: Final[dict[str, Callable[[ReadOnlySegment], tuple[int, Iterator[Any]]]]] = {
    "offset": lambda segment: (segment.offset_index.count, segment.offset_entries()),
    "time": lambda segment: (segment.time_index.count, segment.time_entries()),
    "txn": lambda segment: (segment.txn_index.count, segment.txn_entries()),
}


async def batches(
    api: ApiContext, given: BatchPage, *, topic: str, partition: str, segment: str
) -> Answer:
    return await _in_segment(
        api, (topic, partition, segment), lambda found: Answer(_batches(found, given))
    )


def _batches(segment: ReadOnlySegment, given: BatchPage) -> BatchesView:
    if not _begins_batch(segment, given.position):
        raise Refused(400, f"no batch begins at the position {given.position}")
    found: list[BatchView] = []
    end = given.position
    for stored in segment.batches(given.position):
        if len(found) == given.limit or end - given.position > MOST_READ_BYTES:
            return {"batches": found, "next_position": end, "segment_size": segment.size}
        found.append(_batch(stored))
        end = stored.position + stored.batch.size
    return {"batches": found, "next_position": None, "segment_size": segment.size}


def _begins_batch(segment: ReadOnlySegment, position: int) -> bool:
    """
    Whether *position* is that of a batch, or the end: elsewhere, bytes of records would be taken
    for a header.
    """
    start = 0
    for entry in segment.offset_entries():
        if entry.position > position:
            break
        start = entry.position
    for stored in segment.batches(start):
        if stored.position >= position:
            return stored.position == position
        start = stored.position + stored.batch.size
    return start == position


def uncompressed_size(batch: RecordBatch) -> int | None:
    """
    The bytes of the records of *batch* without compression; None if they cannot be unpacked, or are
    more than ``MOST_READ_BYTES``.
    """
    try:
        codec = batch.compression
        if not codec:
            return len(batch.payload)
        return sum(map(len, decompress_chunks(codec, batch.payload, most_bytes=MOST_READ_BYTES)))
    except KafkaError:
        return None


def _batch(stored: StoredBatch) -> BatchView:
    batch = stored.batch
    size = uncompressed_size(batch) if batch.magic > 1 else None
    packed = len(batch.payload) if batch.magic > 1 else 0
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "position": stored.position,
        "size": batch.size,
        "records": batch.record_count,
        "codec": codec_name(batch),
        "uncompressed_size": size,
        "ratio": round(size / packed, 3) if size is not None and packed else None,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "timestamp_type": _timestamp_type(batch),
        "leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "magic": batch.magic,
        "is_valid": batch.is_valid(),
    }


def _timestamp_type(batch: RecordBatch) -> Literal["create_time", "log_append_time"]:
    is_of_the_log = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return "log_append_time" if is_of_the_log else "create_time"


def codec_name(batch: RecordBatch) -> str:
    """
    The name of the codec of a batch, or its number.
    """
    try:
        return CompressionType.of(batch.codec).name.lower()
    except KafkaError:
        return str(batch.codec)


OPERATIONS: Final[Sequence[Operation]] = (
    Operation("GET", SEGMENT, "a segment and its files", show, WhatIf, SegmentView),
    Operation(
        "GET",
        f"{SEGMENT}/index/{{kind}}",
        "the entries of an index: offset, time or txn",
        index,
        Page,
        EntriesView,
    ),
    Operation(
        "GET", f"{SEGMENT}/batches", "the batches of a segment", batches, BatchPage, BatchesView
    ),
)
