"""
Batches as they lie in a segment become rows of Arrow.

::

    headers    one array of the headers of all batches of a chunk            batch_headers
    CRC        per batch, of the bytes where they lie
    arena      all records in one buffer, decompressed                       arena
    spans      where each field of each record is                             record_finder
    columns    the fields that are wanted, copied once                       arrow_columns

There is no Python object per record, and none but a few numbers per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from crc32c import crc32c

from barnabas.pipeline.decoding.arena import Arena, BadBatch, fill_arena
from barnabas.pipeline.decoding.arrow import (
    are_far,
    constant,
    header_lists,
    numbers,
    pieces,
    plain,
    timestamps,
)
from barnabas.pipeline.decoding.batch_headers import (
    Headers,
    any_has_flag,
    ends,
    has_flag,
    last_offsets,
)
from barnabas.pipeline.decoding.find import find_records
from barnabas.pipeline.decoding.record_arrays import header_spans
from barnabas.pipeline.decoding.spans import Fields
from barnabas.pipeline.decoding.varint_columns import Ints, MalformedRecords
from barnabas.pipeline.errors import FarTimestamp
from barnabas.pipeline.schemas import (
    CORRUPT_COLUMN,
    FAR_TIMESTAMP,
    OLD_CORRUPT_COLUMN,
    PERMISSIVE_RECORDS,
    RECORDS,
    project,
)
from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.batch import ATTRIBUTES_AT, LOG_APPEND_TIME_FLAG, TimestampType
from barnabas.protocol.records.record import iter_records
from barnabas.storage.units import LONG_MAX

_Number = TypeVar("_Number", np.int64, np.bool_)

_KINDS: Final = {field.name: field.type for field in PERMISSIVE_RECORDS}
_IN_RECORDS: Final = frozenset({"key", "value", "offset", "timestamp", "headers", FAR_TIMESTAMP})
MAX_BATCH_BYTES: Final = 256 << 20
ENOUGH_BYTES: Final = 4 << 20
"""Decompressed records that are decoded together."""


class RowPartition(NamedTuple):
    """
    What the rows of a partition have in common.
    """

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """
    A range of offsets, the end not being in it.
    """

    start: int = 0
    end: int = LONG_MAX

    @property
    def count(self) -> int:
        return max(0, self.end - self.start)

    def covers(self, headers: Headers) -> bool:
        """
        Whether no offset of these batches, of which there is at least one, is outside.
        """
        return bool(
            self.start <= headers["base_offset"][0] and last_offsets(headers[-1:])[0] < self.end
        )


ALL_OFFSETS: Final = OffsetRange()


@lru_cache(maxsize=16)
def _schema(columns: tuple[str, ...]) -> pa.Schema:
    return project(PERMISSIVE_RECORDS, columns)


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    What is to be made of the records.
    """

    columns: tuple[str, ...] = tuple(RECORDS.names)
    max_batch_bytes: int = MAX_BATCH_BYTES
    enough_bytes: int = ENOUGH_BYTES

    @property
    def schema(self) -> pa.Schema:
        return _schema(self.columns)

    @property
    def needs_records(self) -> bool:
        """
        Whether the headers of the batches do not tell it all.
        """
        return not _IN_RECORDS.isdisjoint(self.columns)


def bad_checksums(buffer: bytes, headers: Headers) -> list[int]:
    """
    The batches, by number, whose bytes do not give the CRC that the header has.
    """
    bad = []
    view = memoryview(buffer)
    starts = (headers["position"] + ATTRIBUTES_AT).tolist()
    for index, (start, end, crc) in enumerate(
        zip(starts, ends(headers).tolist(), headers["crc"].tolist(), strict=True)
    ):
        if crc32c(view[start:end]) != crc:
            bad.append(index)
    return bad


def decode(
    buffer: bytes,
    headers: Headers,
    place: RowPartition,
    wanted: Wanted,
    offsets: OffsetRange = ALL_OFFSETS,
) -> Iterator[pa.RecordBatch]:
    """
    The records of some batches that lie in *buffer*, those whose offsets are in *offsets*.

    What is given does not need *buffer* any longer. Checksums are not looked at, and control
    batches have records as any other.

    Raises:
        BadBatch: by its number in *headers*. The batches before it are good, but not all of them
            were given.
    """
    done = 0
    while done < len(headers):
        rest = headers[done:]
        try:
            arena = fill_arena(
                buffer,
                rest,
                enough_bytes=wanted.enough_bytes,
                max_batch_bytes=wanted.max_batch_bytes,
            )
            some = rest[: arena.batches]
            rows = _rows(arena, some, place, wanted, offsets)
        except BadBatch as bad:
            raise BadBatch(
                done + bad.index, bad.reason, too_large=bad.too_large, decoded=done
            ) from bad
        done += arena.batches
        if rows.num_rows:
            yield rows


def _rows(
    arena: Arena, headers: Headers, place: RowPartition, wanted: Wanted, offsets: OffsetRange
) -> pa.RecordBatch:
    filled: Ints | None = None
    if not headers["record_count"].all():
        filled = np.flatnonzero(headers["record_count"])
        arena = Arena(arena.raw, arena.starts[filled], arena.ends[filled])
        headers = headers[filled]
    try:
        rows = _Rows(arena, headers, wanted, offsets)
        columns = rows.columns(wanted.columns, place)
    except (MalformedRecords, IndexError) as error:
        raise _first_bad(arena, headers, filled) from error
    return pa.RecordBatch.from_arrays(columns, schema=wanted.schema)


class _Rows:
    """
    The records of some batches, to be made into columns.

    Raises:
        MalformedRecords, IndexError: some of the records are none.
    """

    def __init__(
        self, arena: Arena, headers: Headers, wanted: Wanted, offsets: OffsetRange
    ) -> None:
        self._data = arena.data
        self._headers = headers
        self._counts = headers["record_count"]
        self._some_by_broker = any_has_flag(headers, LOG_APPEND_TIME_FLAG)
        self._kept: Ints | None = None
        """The numbers of the records that are in the range; None if all are."""
        self.count = int(self._counts.sum())
        all_in_range = not len(headers) or offsets.covers(headers)
        if all_in_range and not wanted.needs_records:
            return
        fields = Fields(*(name in wanted.columns for name in ("key", "value", "headers")))
        self._spans = find_records(arena, headers, fields)
        if not all_in_range:
            found = self._spans.offsets
            self._keep(np.flatnonzero((offsets.start <= found) & (found < offsets.end)))

    def _keep(self, kept: Ints) -> None:
        self._kept = kept
        self.count = len(kept)
        self._spans = self._spans.take(kept)

    def _of_batch(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """
        What is so of each batch, for each of its records.
        """
        repeated = np.repeat(values, self._counts)
        return repeated if self._kept is None else repeated[self._kept]

    def columns(self, names: Sequence[str], place: RowPartition) -> list[pa.Array]:
        made: Mapping[str, Callable[[pa.DataType], pa.Array]] = {
            "key": lambda _: pieces(self._data, self._spans.keys),
            "value": lambda _: pieces(self._data, self._spans.values),
            "topic": lambda kind: constant(place.topic, self.count, kind),
            "partition": lambda kind: constant(place.partition, self.count, kind),
            "offset": lambda kind: plain(self._spans.offsets.copy(), kind),
            "timestamp": lambda _: self._timestamp_column(place, FAR_TIMESTAMP in names),
            FAR_TIMESTAMP: lambda kind: pa.array(
                (ms := self._timestamps()), kind, mask=~are_far(ms)
            ),
            "timestampType": self._timestamp_types,
            "headers": self._header_lists,
            CORRUPT_COLUMN: lambda kind: pa.nulls(self.count, kind),
            OLD_CORRUPT_COLUMN: lambda kind: pa.nulls(self.count, kind),
        }
        return [made[name](_KINDS[name]) for name in names]

    def _timestamp_types(self, kind: pa.DataType) -> pa.Array:
        if not self._some_by_broker:
            return constant(TimestampType.CREATE_TIME, self.count, kind)
        return numbers(self._by_broker(), kind)

    def _by_broker(self) -> npt.NDArray[np.bool_]:
        return self._of_batch(has_flag(self._headers, LOG_APPEND_TIME_FLAG))

    def _timestamp_column(self, place: RowPartition, far_are_null: bool) -> pa.Array:
        """
        Raises:
            FarTimestamp: a record has such a time, unless *far_are_null*.
        """
        ms = self._timestamps()
        far = are_far(ms)
        if not far.any():
            return timestamps(ms)
        if not far_are_null:
            at = int(far.argmax())
            raise FarTimestamp(*place, int(self._spans.offsets[at]), int(ms[at]))
        return timestamps(ms, far)

    def _timestamps(self) -> npt.NDArray[np.int64]:
        """
        In ms. Where the broker's time counts, it is that of the batch.
        """
        own = self._spans.timestamps
        if not self._some_by_broker:
            return own
        return np.where(self._by_broker(), self._of_batch(self._headers["max_timestamp"]), own)

    def _header_lists(self, kind: pa.DataType) -> pa.Array:
        counts, at = self._spans.header_counts, self._spans.headers_at
        if not counts.any():
            return pa.nulls(self.count, kind)
        return header_lists(self._data, header_spans(self._data, at, counts, self._spans.ends))


def _first_bad(arena: Arena, headers: Headers, numbers_given: Ints | None) -> BadBatch:
    """
    Which of the batches has no records, read one by one, and why.

    Args:
        numbers_given: what to call each; None if all were given.
    """
    spans = zip(arena.starts.tolist(), arena.ends.tolist(), strict=True)
    for index, (start, end) in enumerate(spans):
        try:
            for _ in iter_records(
                arena.data[start:end].tobytes(), int(headers["record_count"][index])
            ):
                pass
        except InvalidRecord as error:
            number = index if numbers_given is None else int(numbers_given[index])
            return BadBatch(number, str(error))
    raise AssertionError("the records are malformed, but each batch for itself is not")
