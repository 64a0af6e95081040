from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records.record import Record, encode_records, iter_records
from barnabas.storage.cleaner import record_filter
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY, OffsetMap
from barnabas.storage.cleaner.record_filter import (
    ALL,
    BY_KEY,
    NONE,
    KeyIndexer,
    RecordFilter,
    TimestampShift,
)
from tests.support.compiled import compiled, plain

KEYS = st.sampled_from([None, b"", b"a", b"b", b"c"])
RECORDS = st.lists(
    st.tuples(st.integers(-1000, 1000), KEYS, st.none() | st.just(b"v")), max_size=20
).map(lambda rows: [Record(offset, *row) for offset, row in enumerate(rows)])
OFFSETS = st.dictionaries(st.sampled_from([b"", b"a", b"b", b"c"]), st.integers(0, 30))
STEPS = st.integers(1, 5)


def payload_of(records: list[Record], base_timestamp: int = 0) -> bytes:
    return bytes(encode_records(records, 0, base_timestamp))


def run(walk: Any, records_per_step: int = 3) -> Any:
    while not walk.step(records_per_step):
        pass
    return walk


def filter_of(records: list[Record], module: ModuleType = record_filter, **options: Any) -> Any:
    payload = payload_of(records)
    given: dict[str, Any] = {
        "base_offset": 0,
        "offset_map": OffsetMap(100 * BYTES_PER_ENTRY),
        "which": BY_KEY,
        "keep_tombstones": True,
    }
    return module.RecordFilter(
        b"x" + payload + b"y", 1, 1 + len(payload), len(records), **{**given, **options}
    )


def indexed(
    records: list[Record], *, step: int = 3, **options: int
) -> tuple[KeyIndexer, OffsetMap]:
    offset_map = OffsetMap(100 * BYTES_PER_ENTRY)
    payload = payload_of(records)
    given: dict[str, Any] = {"base_offset": 0, "start_offset": 0, "most_keys": 75, **options}
    where = payload, 0, len(payload), len(records)
    indexer = run(KeyIndexer(*where, offset_map=offset_map, **given), step)
    return indexer, offset_map


@given(RECORDS, st.integers(0, 20), STEPS)
def test_indexer_puts_keys_from_the_given_offset_on(
    records: list[Record], start_offset: int, step: int
) -> None:
    indexer, offset_map = indexed(records, step=step, base_offset=5, start_offset=start_offset)

    expected = {
        record.key: record.offset + 5
        for record in records
        if record.key is not None and record.offset + 5 >= start_offset
    }
    assert expected == {key: offset_map.get(key) for key in expected}
    assert len(expected) == offset_map.size
    assert (len(records), False) == (indexer.messages_read, indexer.is_full)


def test_indexer_stops_at_the_first_key_that_does_not_fit() -> None:
    """
    As in Kafka, even if the map has that key already: it is not looked up any more.
    """
    records = [Record(at, 0, key, b"v") for at, key in enumerate((b"a", b"b", None, b"a", b"c"))]

    indexer, offset_map = indexed(records, most_keys=2)

    assert (3, True) == (indexer.messages_read, indexer.is_full)
    assert (0, 1) == (offset_map.get(b"a"), offset_map.get(b"b"))


@given(RECORDS, OFFSETS, st.integers(-1, 20), st.booleans(), STEPS)
def test_record_is_retained_if_no_later_record_of_its_key_is_known(
    records: list[Record],
    offsets: dict[bytes, int],
    latest_offset: int,
    keep_tombstones: bool,
    step: int,
) -> None:
    offset_map = OffsetMap(100 * BYTES_PER_ENTRY)
    for key, offset in offsets.items():
        offset_map.put(key, offset)
    offset_map.update_latest_offset(latest_offset)
    found = run(filter_of(records, offset_map=offset_map, keep_tombstones=keep_tombstones), step)

    def stays(record: Record) -> bool:
        if record.offset > latest_offset:
            return True
        if record.key is None or record.offset < offsets.get(record.key, -1):
            return False
        return record.value is not None or keep_tombstones

    kept = [record for record in records if stays(record)]
    assert kept == list(iter_records(found.kept_records(), len(kept)))
    assert (len(kept), len(records)) == (found.kept, found.record_count)
    assert any(record.value is None for record in kept) == found.has_tombstones
    assert found.in_order
    assert found.all_regular
    invalid = [record for record in records if record.offset <= latest_offset and not record.key]
    assert sum(record.key is None for record in invalid) == found.invalid
    if kept:
        times = [record.timestamp for record in kept]
        assert (times[0], min(times), max(times), kept[-1].offset) == (
            found.first_timestamp_delta,
            found.least_timestamp_delta,
            found.largest_timestamp_delta,
            found.largest_offset_delta,
        )


@pytest.mark.parametrize(("which", "kept"), [(ALL, 3), (NONE, 0)])
def test_filter_may_retain_all_or_no_records_without_looking_at_keys(which: int, kept: int) -> None:
    records = [Record(0, 0, None, b"v"), Record(1, 0, b"a", None), Record(2, 0, b"b", b"v")]
    offset_map = OffsetMap(100 * BYTES_PER_ENTRY)
    offset_map.update_latest_offset(50)

    found = run(filter_of(records, which=which, offset_map=offset_map, keep_tombstones=False))

    assert (kept, 3, 0) == (found.kept, found.walked, found.invalid)
    assert (which == ALL) == found.has_tombstones


def test_offsets_that_do_not_increase_are_detected() -> None:
    assert not run(filter_of([Record(1, 0, b"a", b""), Record(1, 0, b"b", b"")])).in_order
    assert not run(filter_of([Record(1, 0, b"a", b""), Record(0, 0, b"b", b"")])).in_order
    assert run(filter_of([Record(1, 0, b"a", b""), Record(7, 0, b"b", b"")])).in_order


@given(RECORDS, st.integers(-(2**40), 2**40), STEPS)
def test_timestamps_stay_when_the_base_timestamp_moves(
    records: list[Record], base_timestamp: int, step: int
) -> None:
    shift = TimestampShift(payload_of(records, 10), len(records), 10 - base_timestamp, False)

    run(shift, step)

    assert payload_of(records, base_timestamp) == shift.records()


@given(RECORDS, st.integers(-(2**62), 2**62))
def test_filter_may_give_all_records_one_timestamp(records: list[Record], delta: int) -> None:
    shift = TimestampShift(payload_of(records), len(records), delta, True)

    run(shift)

    same = [record._replace(timestamp=delta) for record in records]
    assert payload_of(same) == shift.records()


@pytest.mark.parametrize("how", ["plain", "compiled"])
def test_plain_and_compiled_filter_retain_the_same_records(how: str) -> None:
    names = [
        "barnabas.protocol.records.walk",
        "barnabas.storage.cleaner.offset_map",
        "barnabas.storage.cleaner.record_filter",
    ]
    module = plain(*names) if how == "plain" else compiled(names[-1])
    table = module.OffsetMap(100 * BYTES_PER_ENTRY)
    records = [Record(at, at * 70, b"k%d" % (at % 7), b"v" * at) for at in range(200)]
    payload = payload_of(records)
    options = {"base_offset": 0, "offset_map": table}
    where = payload, 0, len(payload), len(records)

    run(module.KeyIndexer(*where, **options, start_offset=0, most_keys=75))
    found = run(module.RecordFilter(*where, **options, which=BY_KEY, keep_tombstones=True))
    shift = run(module.TimestampShift(found.kept_records(), found.kept, -300, False))

    assert payload_of(records[-7:], 300) == shift.records()


def test_filter_step_looks_at_a_limited_number_of_records() -> None:
    found = filter_of([Record(at, 0, b"k", b"v") for at in range(5)])

    assert [False, False, True] == [found.step(2) for _ in range(3)]
    assert isinstance(found, RecordFilter)
    assert 5 == found.kept
