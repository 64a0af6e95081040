"""
The records of a partition, and the tail of a topic.

Keys, values and headers are shown if ``barnabas.http.records`` allows it; offsets, times and sizes
are in any case. An answer is bounded in records, in bytes of the log, and in bytes of contents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypedDict

from barnabas.protocol.errors import InvalidRecord, KafkaError, OffsetOutOfRange
from barnabas.protocol.records.batch import (
    HEADER_SIZE,
    MAGIC,
    MAGIC_AT,
    RecordBatch,
    batches,
    read_batch,
)
from barnabas.protocol.records.control import ControlRecordType
from barnabas.protocol.records.outline import RecordOutline
from barnabas.protocol.records.record import Record
from barnabas.server.http.api.contents import ContentView, content_view
from barnabas.server.http.api.context import ApiContext, number_in
from barnabas.server.http.api.explaining import MOST_READ_BYTES, PARTITION
from barnabas.server.http.api.segments import uncompressed_size
from barnabas.server.http.fields import Range
from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import Answer, Operation, waiting
from barnabas.server.partitions.watch import Watch
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.units import LONG_MAX

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.storage.segment.fetch_data import AbortedTransaction, FileSlice

MOST_CONTENT_BYTES: Final = 2 << 20
"""So many bytes of contents are in an answer: as JSON they may become six times as many."""
MOST_HEADERS: Final = 100
"""So many headers of a record are shown."""
MOST_OF_A_NAME: Final = 255
"""So many characters of the name of a header are shown."""
RECORD_BYTES: Final = 200
"""About the bytes of a record in JSON without its contents."""
HEADER_BYTES: Final = 100
"""The same for a header."""
MOST_PARTITIONS: Final = 1000
"""The tail of a topic follows so many partitions."""
NOT_ALLOWED: Final = (
    "the contents of records are not shown unless the broker has barnabas.http.records=true:"
    " content=false leaves them out"
)
ISOLATIONS: Final = {
    "read_uncommitted": FetchIsolation.HIGH_WATERMARK,
    "read_committed": FetchIsolation.TXN_COMMITTED,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """
    How records are read and shown.
    """

    limit: Annotated[int, Range(1, 1000), "the most records"] = 100
    max_bytes: Annotated[int, Range(1, 1 << 20), "about the most bytes of the log to read"] = (
        1 << 16
    )
    content_bytes: Annotated[int, Range(0, 1 << 20), "keys and values are cut after so many"] = 1024
    content: Annotated[bool, "whether keys, values and headers are shown"] = True
    contains: Annotated[str, "a part of the key or of the value, as text"] = ""
    isolation: Annotated[
        Literal["read_uncommitted", "read_committed"], "whether open transactions are read"
    ] = "read_uncommitted"
    wait_ms: Annotated[int, Range(0, 30_000), "how long to wait if there are no records yet"] = 0


@dataclass(frozen=True, slots=True)
class FromOffset(Reading):
    """
    Where to begin; at the start of the log if nothing says so.
    """

    offset: Annotated[int | None, Range(0, LONG_MAX), "the first record"] = None
    timestamp: Annotated[
        int | None, Range(0, LONG_MAX), "the first record that is not older, in ms since 1970"
    ] = None
    last: Annotated[int | None, Range(0, LONG_MAX), "the last so many offsets"] = None


@dataclass(frozen=True, slots=True)
class FromPositions(Reading):
    """
    Where to begin in each partition; at the ends if nothing says so.
    """

    positions: Annotated[str, "those of the last answer: partition:offset,partition:offset"] = ""


class HeaderView(TypedDict):
    """
    A header of a record.
    """

    name: str
    size: int | None
    value: ContentView | None


class RecordView(TypedDict):
    """
    A record; key, value and headers are null if they are not shown.
    """

    partition: int
    offset: int
    timestamp: int
    batch_base_offset: int
    producer_id: int
    is_transactional: bool
    control_type: Annotated[str | None, "of a record that no producer has sent"]
    key_size: int | None
    value_size: int | None
    header_count: int
    key: ContentView | None
    value: ContentView | None
    headers: list[HeaderView] | None


class RecordsView(TypedDict):
    """
    Records of a partition.
    """

    records: list[RecordView]
    next_offset: Annotated[int, "where to go on"]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    flaw: Annotated[str | None, "why a batch was passed over"]


class TailView(TypedDict):
    """
    Records of a topic, and the positions for the next request.
    """

    records: list[RecordView]
    positions: str


class RecordsPart(NamedTuple):
    """
    Records of a partition, as far as they were read.
    """

    records: list[RecordView]
    next_offset: int
    flaw: str | None


def _check_allowed(api: ApiContext, given: Reading) -> None:
    """
    Raises:
        Refused: contents are not to be seen.
    """
    if (given.content or given.contains) and not api.are_records_allowed:
        raise Refused(403, NOT_ALLOWED)


async def records(api: ApiContext, given: FromOffset, *, topic: str, partition: str) -> Answer:
    _check_allowed(api, given)
    found = api.partition(topic, partition)
    offset = await _first_offset(api, found, given)
    part = await _read(api, found, offset, given, _Room(given))
    if not part.records and given.wait_ms and part.next_offset >= _end(found, given):
        await _more(api, {found: part.next_offset}, given)
        part = await _read(api, found, part.next_offset, given, _Room(given))
    log = found.log
    view: RecordsView = {
        "records": part.records,
        "next_offset": part.next_offset,
        "log_start_offset": log.log_start_offset,
        "high_watermark": log.high_watermark,
        "last_stable_offset": log.last_stable_offset,
        "flaw": part.flaw,
    }
    return Answer(view)


async def _first_offset(api: ApiContext, partition: Partition, given: FromOffset) -> int:
    log = partition.log
    asked = [each for each in (given.offset, given.timestamp, given.last) if each is not None]
    if len(asked) > 1:
        raise Refused(400, "give one of offset, timestamp and last")
    if given.offset is not None:
        end = log.log_end_offset
        if not log.log_start_offset <= given.offset <= end:
            raise Refused(
                404,
                f"{partition.topic}-{partition.index} has the offsets {log.log_start_offset} to"
                f" {end}, not {given.offset}",
            )
        return given.offset
    if given.last is not None:
        return max(log.log_start_offset, _end(partition, given) - given.last)
    if given.timestamp is not None:
        timestamp = given.timestamp
        found = await api.in_thread(lambda: log.fetch_offset_by_timestamp(timestamp))
        return _end(partition, given) if found is None else found.offset
    return log.log_start_offset


def _end(partition: Partition, given: Reading) -> int:
    """
    The offset below which records can be read.
    """
    log = partition.log
    is_committed = given.isolation == "read_committed"
    return log.last_stable_offset if is_committed else log.high_watermark


async def tail(api: ApiContext, given: FromPositions, *, topic: str) -> Answer:
    _check_allowed(api, given)
    found = {index: api.partition(topic, str(index)) for index in api.topic(topic).partitions}
    if len(found) > MOST_PARTITIONS:
        raise Refused(
            400, f"{topic} has more than {MOST_PARTITIONS} partitions: read them one by one"
        )
    offsets = _positions(given.positions, found, given)
    parts = await _read_all(api, found, offsets, given)
    if not any(part.records for part in parts.values()) and given.wait_ms:
        offsets |= {index: part.next_offset for index, part in parts.items()}
        await _more(api, {found[index]: offset for index, offset in offsets.items()}, given)
        parts = await _read_all(api, found, offsets, given)
    offsets |= {index: part.next_offset for index, part in parts.items()}
    view: TailView = {
        "records": [record for part in parts.values() for record in part.records],
        "positions": ",".join(f"{index}:{offset}" for index, offset in sorted(offsets.items())),
    }
    return Answer(view)


def _positions(text: str, found: dict[int, Partition], given: Reading) -> dict[int, int]:
    """
    The offset to begin with in each partition. One that is new begins at its start, one whose
    records are deleted at the first that is left.
    """
    if not text:
        return {index: _end(partition, given) for index, partition in found.items()}
    known: dict[int, int] = {}
    for each in text.split(","):
        index, _, offset = each.partition(":")
        numbers = number_in(index), number_in(offset)
        if numbers[0] is None or numbers[1] is None:
            raise Refused(400, f"positions are partition:offset,partition:offset, not {each!r}")
        known[numbers[0]] = numbers[1]
    return {
        index: min(max(known.get(index, 0), partition.log.log_start_offset), _end(partition, given))
        for index, partition in found.items()
    }


async def _read_all(
    api: ApiContext, found: dict[int, Partition], offsets: dict[int, int], given: Reading
) -> dict[int, RecordsPart]:
    """
    The records of the partitions that have some, as many as are asked for in all.
    """
    parts: dict[int, RecordsPart] = {}
    room = _Room(given)
    for index, offset in sorted(offsets.items()):
        if room.records > 0 and room.left > 0 and offset < _end(found[index], given):
            parts[index] = await _read(api, found[index], offset, given, room)
    return parts


class _Room:
    """
    How many records the answer may still have, and how many bytes of contents.
    """

    def __init__(self, given: Reading) -> None:
        self.records = given.limit
        self.left = MOST_CONTENT_BYTES


class _Waiter:
    """
    Hears of records that can be read.
    """

    def __init__(self) -> None:
        self.happened = asyncio.Event()

    def arrived(self, _: int) -> None:
        self.happened.set()

    def wake(self) -> None:
        self.happened.set()


async def _more(api: ApiContext, offsets: dict[Partition, int], given: Reading) -> None:
    """
    Return once a record can be read at or behind one of the offsets, or the time is over.
    """
    waiter = _Waiter()
    watches = [
        Watch(
            waiter,
            partition,
            available=0,
            limit=1,
            segment=-1,
            read_committed=given.isolation == "read_committed",
        )
        for partition in offsets
    ]
    for watch in watches:
        watch.partition.add_watch(watch)
    try:
        if all(offset >= _end(partition, given) for partition, offset in offsets.items()):
            timer = api.broker.clock.call_later(given.wait_ms / 1000, waiter.wake)
            api.wakers.add(waiter.wake)
            try:
                async with waiting():
                    await waiter.happened.wait()
            finally:
                api.wakers.discard(waiter.wake)
                timer.cancel()
    finally:
        for watch in watches:
            watch.partition.remove_watch(watch)


async def _read(
    api: ApiContext,
    partition: Partition,
    offset: int,
    given: Reading,
    room: _Room,
) -> RecordsPart:
    """
    The records from *offset* on, as many as *room* allows.

    Raises:
        Refused: they were deleted meanwhile.
    """

    def read() -> RecordsPart:
        try:
            found = partition.read(
                offset, given.max_bytes, ISOLATIONS[given.isolation], min_one_message=True
            ).data
        except OffsetOutOfRange:
            raise Refused(
                404, f"{partition.topic}-{partition.index} has no offset {offset} any more"
            ) from None
        if found is None or found.records is None:
            return RecordsPart([], offset, None)
        reader = _Reader(partition.index, offset, given, room, api.are_records_allowed)
        if found.records.size > MOST_READ_BYTES:  # The first batch is given whole.
            reader.pass_over(found.records)
        else:
            reader.read(found.records.read(), found.aborted_transactions or ())
        return RecordsPart(reader.found, reader.next_offset, reader.flaw)

    return await api.in_thread(read)


class _Reader:
    """
    Takes records out of batches until there are enough.
    """

    def __init__(
        self,
        partition: int,
        offset: int,
        given: Reading,
        room: _Room,
        is_allowed: bool,
    ) -> None:
        self._partition = partition
        self._given = given
        self._with_contents = given.content and is_allowed
        self._contains = given.contains.encode(errors="surrogatepass")
        self._room = room
        self.found: list[RecordView] = []
        self.next_offset = offset
        self.flaw: str | None = None

    def pass_over(self, records: FileSlice) -> None:
        """
        Go on behind a batch that is too large to be read.
        """
        data = memoryview(records._replace(size=HEADER_SIZE).read())
        if data[MAGIC_AT] == MAGIC:
            batch = read_batch(data)
            base_offset, self.next_offset = batch.base_offset, batch.next_offset
        else:  # an old message
            base_offset = int.from_bytes(data[:8])
            self.next_offset = base_offset + 1
        self.flaw = (
            f"the batch at offset {base_offset} cannot be read: it has {records.size} bytes, and"
            f" {MOST_READ_BYTES} are the most"
        )

    def read(self, data: bytes | bytearray, aborted: Sequence[AbortedTransaction]) -> None:
        """
        Take the records of the batches in *data*, without those of *aborted* transactions.
        """
        waiting = sorted(aborted, key=lambda each: each.first_offset)
        aborting: set[int] = set()
        for batch in batches(data):
            while waiting and waiting[0].first_offset <= batch.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            is_aborted = batch.is_transactional and batch.producer_id in aborting
            if batch.is_control:
                aborting.discard(batch.producer_id)
            elif is_aborted:
                self.next_offset = max(self.next_offset, batch.next_offset)
                continue
            if not self._take(batch):
                return
            self.next_offset = max(self.next_offset, batch.next_offset)

    def _take(self, batch: RecordBatch) -> bool:
        """
        Take the records of *batch*; false if there is no room for all of them.
        """
        try:
            for outline, record in self._records(batch):
                if outline.offset < self.next_offset:
                    continue
                if self._room.records <= 0 or self._room.left <= 0:
                    return False
                if self._is_wanted(record):
                    self._add(batch, outline, record)
                self.next_offset = outline.offset + 1
        except KafkaError as error:
            self.flaw = f"the batch at offset {batch.base_offset} cannot be read: {error}"
        return True

    def _records(self, batch: RecordBatch) -> Iterator[tuple[RecordOutline, Record | None]]:
        """
        Yield the records of *batch*, with their contents only if these are looked at.

        Raises:
            KafkaError: the batch cannot be read.
        """
        if batch.magic > 1 and uncompressed_size(batch) is None:
            raise InvalidRecord("its records cannot be unpacked, or are too large")
        if self._with_contents or self._contains or batch.is_control:
            return zip(batch.outlines(), batch.records(), strict=True)
        return zip(batch.outlines(), repeat(None), strict=False)

    def _is_wanted(self, record: Record | None) -> bool:
        text = self._contains
        return (
            record is None
            or not text
            or any(text in bytes(each or b"") for each in (record.key, record.value))
        )

    def _add(self, batch: RecordBatch, outline: RecordOutline, record: Record | None) -> None:
        self._room.records -= 1
        self._room.left -= RECORD_BYTES
        self.found.append(
            {
                "partition": self._partition,
                "offset": outline.offset,
                "timestamp": outline.timestamp,
                "batch_base_offset": batch.base_offset,
                "producer_id": batch.producer_id,
                "is_transactional": batch.is_transactional,
                "control_type": _control_type(record) if record and batch.is_control else None,
                "key_size": None if outline.key_size < 0 else outline.key_size,
                "value_size": None if outline.value_size < 0 else outline.value_size,
                "header_count": outline.header_count,
                "key": self._shown(record.key) if record else None,
                "value": self._shown(record.value) if record else None,
                "headers": self._headers(record) if record and self._with_contents else None,
            }
        )

    def _headers(self, record: Record) -> list[HeaderView]:
        found: list[HeaderView] = []
        for header in islice(record.headers, MOST_HEADERS):
            name = header.key[:MOST_OF_A_NAME]
            self._room.left -= len(name) + HEADER_BYTES
            found.append(
                {"name": name, "size": _size(header.value), "value": self._shown(header.value)}
            )
        return found

    def _shown(self, data: bytes | None) -> ContentView | None:
        if data is None or not self._with_contents:
            return None
        view = content_view(data, max(0, min(self._given.content_bytes, self._room.left)))
        self._room.left -= min(len(data), self._given.content_bytes)
        return view


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)


def _control_type(record: Record) -> str:
    try:
        return ControlRecordType.of(record.key).name.lower()
    except KafkaError:
        return ControlRecordType.UNKNOWN.name.lower()


OPERATIONS: Final = (
    Operation(
        "GET",
        f"{PARTITION}/records",
        "the records of a partition, from an offset or a time on",
        records,
        FromOffset,
        RecordsView,
        waits=True,
    ),
    Operation(
        "GET",
        "/topics/{topic}/tail",
        "the records that are appended to a topic",
        tail,
        FromPositions,
        TailView,
        waits=True,
    ),
)
