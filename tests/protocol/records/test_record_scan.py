from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from barnabas.protocol.compression import (
    CompressionType,
    CorruptCompressedData,
    compress,
    decompress_chunks,
)
from barnabas.protocol.records.record import Header, Record, encode_records
from tests.support.bombs import memory_below
from tests.support.compiled import compiled, plain
from tests.support.record_bytes import slow_walk, some_payload, wrapped

VARINTS = "barnabas.protocol.records.varints"
RULES = "barnabas.protocol.records.rules"
SCAN = "barnabas.protocol.records.scan"

NOW = 1700000000000
HOUR = 3_600_000
MAX = 2**63 - 1

PLAIN = plain(VARINTS, RULES, SCAN)


@pytest.fixture(scope="module", params=["plain", "compiled"])
def scanning(request: pytest.FixtureRequest) -> ModuleType:
    return PLAIN if request.param == "plain" else compiled(SCAN)


def payload_of(*records: Record) -> bytes:
    return bytes(encode_records(records, 0, NOW))


def record(offset: int = 0, timestamp: int = NOW, key: bytes | None = b"k") -> Record:
    return Record(offset, timestamp, key, b"v")


def rules(scanning: ModuleType, **changes: Any) -> Any:
    facts: dict[str, Any] = {
        "keys_required": False,
        "create_time": True,
        "now_ms": NOW,
        "before_max_ms": MAX,
        "after_max_ms": HOUR,
    }
    return scanning.RecordRules(**{**facts, **changes})


def walked(scanning: ModuleType, payload: bytes, count: int, **options: Any) -> Any:
    scan = scanning.RecordScan(count, NOW, **options)
    scan.walk(memoryview(payload))
    return scan


def facts(scan: Any) -> SimpleNamespace:
    return SimpleNamespace(
        malformed=scan.malformed,
        count=scan.count,
        max_timestamp=scan.max_timestamp,
        max_timestamp_index=scan.max_timestamp_index,
        consecutive=scan.consecutive,
        null_keys=scan.null_keys,
        size=scan.size,
        errors=[tuple(error) for error in scan.errors],
    )


# What is found in good records.


def test_scan_summarises_a_valid_batch(scanning: ModuleType) -> None:
    payload = payload_of(
        record(0, NOW),
        record(1, NOW + 5, key=None),
        Record(2, NOW + 5, b"k" * 200, None, (Header("h", b"x"), Header("n", None))),
        record(3, NOW - 1),
    )

    scan = walked(scanning, payload, 4, rules=rules(scanning))

    assert SimpleNamespace(
        malformed="",
        count=4,
        max_timestamp=NOW + 5,
        max_timestamp_index=1,
        consecutive=True,
        null_keys=1,
        size=len(payload),
        errors=[],
    ) == facts(scan)
    assert scan.done


def check_order(scan: Any, offset_deltas: list[int]) -> None:
    ascending = all(one < other for one, other in pairwise([-1, *offset_deltas]))
    assert ascending is scan.ascending, offset_deltas
    if ascending:
        assert [-1, *offset_deltas][-1] == scan.last_offset_delta, offset_deltas


def test_batch_without_records_is_not_examined(scanning: ModuleType) -> None:
    """
    Whatever its payload is, as in Kafka.
    """
    for payload in (b"", b"\xff\xff"):
        scan = walked(scanning, payload, 0)

        assert (0, "", -1) == (scan.count, scan.malformed, scan.max_timestamp)


def test_negative_record_count_is_an_error(scanning: ModuleType) -> None:
    assert "a batch cannot have -1 records" == walked(scanning, b"", -1).malformed


@pytest.mark.parametrize("timestamps", [(-1,), (-7,), (-1, -7, -2)])
def test_records_without_timestamps_have_no_max_timestamp(
    scanning: ModuleType, timestamps: tuple[int, ...]
) -> None:
    payload = payload_of(*(record(i, timestamp) for i, timestamp in enumerate(timestamps)))

    scan = walked(scanning, payload, len(timestamps))

    assert (-1, -1) == (scan.max_timestamp, scan.max_timestamp_index)


def test_many_records_are_scanned_across_windows(scanning: ModuleType) -> None:
    records = [
        Record(i, NOW + 3 * i, b"%d" % i, b"v" * (i % 300), (Header("h", b""),) * (i % 3))
        for i in range(20_000)
    ]
    records[100] = records[100]._replace(value=b"v" * 200_000)
    payload = payload_of(*records)

    scan = walked(scanning, payload, len(records), rules=rules(scanning))

    assert (len(records), len(payload), "") == (scan.count, scan.size, scan.malformed)
    assert (NOW + 3 * 19_999, 19_999) == (scan.max_timestamp, scan.max_timestamp_index)
    assert scan.consecutive


# Rules of the topic.


@pytest.mark.scenario(10)
def test_missing_keys_are_errors_where_keys_are_required(scanning: ModuleType) -> None:
    payload = payload_of(record(0, key=None), record(1), record(2, key=None), record(3, key=b""))

    scan = walked(scanning, payload, 4, rules=rules(scanning, keys_required=True))

    assert [(0, 0, NOW, -1, 1, True, False), (2, 2, NOW, -1, 1, True, False)] == facts(scan).errors
    assert 2 == scan.null_keys
    assert [] == walked(scanning, payload, 4, rules=rules(scanning)).errors


@pytest.mark.scenario(11)
@pytest.mark.parametrize(
    ("timestamp", "good"),
    [
        (NOW + HOUR, True),
        (NOW + HOUR + 1, False),
        (NOW - 1000, True),
        (NOW - 1001, False),
        (-1, True),
        (-2, False),
        (0, False),
        (MAX, False),
        (-MAX - 1, False),
    ],
)
def test_timestamp_must_be_within_the_bounds_around_the_clock(
    scanning: ModuleType, timestamp: int, good: bool
) -> None:
    payload = bytes(encode_records([record(0, timestamp)], 0, timestamp))
    scan = scanning.RecordScan(1, timestamp, rules=rules(scanning, before_max_ms=1000))

    scan.walk(memoryview(payload))

    assert ([] if good else [(0, 0, timestamp, 1, 1, False, False)]) == facts(scan).errors


def test_log_append_time_topic_accepts_any_timestamp(scanning: ModuleType) -> None:
    scan = walked(scanning, payload_of(record(0, 5)), 1, rules=rules(scanning, create_time=False))

    assert [] == scan.errors


@pytest.mark.parametrize(
    ("create_time", "claimed", "errors"),
    [
        (True, NOW, []),
        (True, NOW + HOUR + 1, [(0, 0, NOW + HOUR + 1, 1, 1, False, False)]),
        (True, -1, [(0, 0, -1, 1, 1, False, True)]),
        (False, NOW, [(0, 0, NOW, 1, 1, False, True)]),
        (False, -1, [(0, 0, -1, 1, 1, False, True)]),
    ],
)
def test_client_batch_with_log_append_time_is_checked_by_its_time(
    scanning: ModuleType, create_time: bool, claimed: int, errors: list[Any]
) -> None:
    payload = payload_of(record(0, NOW + 99), record(1, NOW + 100))

    topic = rules(scanning, create_time=create_time)
    scan = walked(scanning, payload, 2, log_append_time=claimed, rules=topic)

    expected = errors + [(1, 1, *error[2:]) for error in errors]
    assert expected == facts(scan).errors
    assert claimed == scan.max_timestamp


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_record_error_has_the_sizes_of_key_and_value(scanning: ModuleType, chunk: int) -> None:
    sizes = [(-1, 0), (0, -1), (5, 200), (200, 70_000)]
    parts = [tuple(None if size < 0 else bytes(size) for size in pair) for pair in sizes]
    payload = payload_of(
        *(Record(at, NOW + 2 * HOUR, key, value) for at, (key, value) in enumerate(parts))
    )
    scan = scanning.RecordScan(len(sizes), NOW, rules=rules(scanning))

    scan.walk_chunks(payload[at : at + chunk] for at in range(0, len(payload), chunk))

    assert sizes == [(error.key_size, error.value_size) for error in scan.errors]


def test_missing_key_is_reported_before_a_wrong_timestamp(scanning: ModuleType) -> None:
    payload = payload_of(record(0, NOW + 2 * HOUR, key=None), record(1, NOW + 2 * HOUR))

    scan = walked(scanning, payload, 2, rules=rules(scanning, keys_required=True))

    assert [True, False] == [error.lacks_key for error in scan.errors]


def test_list_of_record_errors_is_limited(scanning: ModuleType) -> None:
    count = (1 << 16) + 10
    payload = payload_of(record(key=None)) * count

    scan = walked(scanning, payload, count, rules=rules(scanning, keys_required=True))

    assert (count, count, 1 << 16) == (scan.count, scan.null_keys, len(scan.errors))


@pytest.mark.parametrize("base", [MAX - 2, -MAX - 1, -(2**62), 2**62])
@pytest.mark.parametrize("deltas", [(5, 0), (-5, 0), (1, 2), (MAX, -MAX - 1)])
def test_timestamp_sums_wrap_like_java_longs(
    scanning: ModuleType, base: int, deltas: tuple[int, ...]
) -> None:
    payload = bytes(encode_records([record(i, delta) for i, delta in enumerate(deltas)], 0, 0))
    scan = scanning.RecordScan(len(deltas), base, rules=rules(scanning))

    scan.walk(memoryview(payload))

    timestamps = [wrapped(base + delta) for delta in deltas]
    assert max(-1, *timestamps) == scan.max_timestamp

    def is_good(timestamp: int) -> bool:
        age = wrapped(NOW - timestamp)
        return timestamp == -1 or wrapped(-age) <= HOUR

    assert [t for t in timestamps if not is_good(t)] == [error.timestamp for error in scan.errors]


# Malformed records.


def body(data: str) -> bytes:
    record = bytes.fromhex(data)
    return bytes([len(record) * 2]) + record


GOOD = "00 00 00 02 6b 02 76 00"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "the records end early"),
        (b"\x10", "the records end early"),
        (body(GOOD)[:-1], "the records end early"),
        (body(GOOD) + b"\0", "bytes are left behind the last record"),
        (b"\xff" * 5 + b"\0" * 40, "the length of a record is too long a number"),
        (body("00 ffffffffffffffffffff 00 02 6b 02 76 00"), "a number is too long"),
        (body("00 00 00 02 6b 02 76 01"), "a record cannot have -1 headers"),
        (body("00 00 00 02 6b 02 76 7e"), "a record cannot have 63 headers"),
        (body("00 00 00 02 6b 02 76 02 01 00"), "a header has no name"),
        (body("00 00 00 02 6b 02 76 00 00"), "a record is shorter than it says"),
        (b"\x0e" + bytes.fromhex(GOOD), "a record is longer than it says"),
        (b"\x0f" + bytes.fromhex(GOOD), "a record is longer than it says"),
        (body("00 00 00 04 6b 02 76 00"), "a record is longer than it says"),
    ],
)
@pytest.mark.parametrize("behind", [b"", bytes(100)])
def test_malformed_record_is_reported_with_the_reason(
    scanning: ModuleType, payload: bytes, reason: str, behind: bytes
) -> None:
    scan = walked(scanning, payload + behind, 1)

    assert scan.malformed
    if not behind:
        assert reason == scan.malformed
        assert (0 if "left" not in reason else 1) == scan.count


# Pieces.


def pieces(payload: bytes, chance: random.Random) -> Iterator[bytes]:
    position = 0
    while position < len(payload):
        size = chance.choice((1, 2, 3, 7, 30, 100, 65536))
        yield payload[position : position + size]
        position += size


def check_like_kafka(scanning: ModuleType, seed: int) -> None:
    chance = random.Random(seed)
    payload, count = some_payload(chance)
    base = chance.choice((NOW, NOW, 0, -1, MAX - 3, -MAX))
    exact = chance.random() < 0.6

    scan = scanning.RecordScan(count, base, exact=exact)
    if chance.random() < 0.5:
        scan.walk(memoryview(payload), chance.choice((26, 27, 40, 64, 300, 65536)))
    else:
        scan.walk_chunks(pieces(payload, chance))

    expected = slow_walk(payload, count, exact=exact) if count else []
    assert (expected is None) is (scan.malformed != ""), (seed, scan.malformed)
    if expected is None:
        return
    timestamps = [wrapped(base + record.delta) for record in expected]
    assert count == scan.count, seed
    assert max(-1, -1, *timestamps) == scan.max_timestamp, seed
    if scan.max_timestamp >= 0:
        assert timestamps.index(scan.max_timestamp) == scan.max_timestamp_index, seed
    assert sum(not record.has_key for record in expected) == scan.null_keys, seed
    offset_deltas = [record.offset_delta for record in expected]
    assert (offset_deltas == list(range(count))) is scan.consecutive, seed
    check_order(scan, offset_deltas)


@pytest.mark.parametrize("seed", range(0, 4000, 500))
def test_damaged_records_are_judged_as_in_kafka(scanning: ModuleType, seed: int) -> None:
    for each in range(seed, seed + 500):
        check_like_kafka(scanning, each)


def test_plain_and_compiled_scan_agree() -> None:
    other = compiled(SCAN)
    for seed in range(int(os.environ.get("BARNABAS_FUZZ", "5000"))):
        payload, count = some_payload(random.Random(seed))

        found = [
            facts(walked(each, payload, count, rules=rules(each, keys_required=True)))
            for each in (PLAIN, other)
        ]

        assert found[0] == found[1], seed


@pytest.mark.parametrize("count", [1, 3])
def test_malformed_records_are_found_before_the_end_of_their_stream(
    scanning: ModuleType, count: int
) -> None:
    """
    Later errors of the stream are not reached.
    """

    def stream() -> Iterator[bytes]:
        yield payload_of(Record(0, NOW, None, b"a"), Record(1, NOW, None, b"b")) + bytes(7)
        raise CorruptCompressedData("too late")

    scan = scanning.RecordScan(count, NOW)

    scan.walk_chunks(stream())

    assert "" != scan.malformed


@pytest.mark.parametrize("codec", [c for c in CompressionType if c])
def test_scan_of_a_decompression_bomb_takes_little_memory(
    scanning: ModuleType, codec: CompressionType
) -> None:
    size = 60 * 1024 * 1024
    payload = payload_of(Record(0, NOW, None, bytes(size)))
    bomb = bytes(compress(codec, payload))
    assert len(bomb) < size // 15
    scan = scanning.RecordScan(1, NOW)

    with memory_below(4 * 1024 * 1024):
        scan.walk_chunks(decompress_chunks(codec, bomb))

    assert ("", 1, len(payload)) == (scan.malformed, scan.count, scan.size)
