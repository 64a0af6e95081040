"""
A hash table with Kafka's places for its entries.
"""

from __future__ import annotations

import hashlib
import sys
from struct import pack, unpack_from
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage import offset_map
from barnabas.storage.offset_map import BYTES_PER_ENTRY, NOT_FOUND, OffsetMap
from tests.support.compiled import compiled, plain

KEYS = st.lists(st.binary(max_size=3), max_size=40)


class Reference:
    """
    Kafka's SkimpyOffsetMap, slot by slot.
    """

    def __init__(self, slots: int) -> None:
        self.table: list[tuple[bytes, int] | None] = [None] * slots

    def put(self, key: bytes, offset: int) -> None:
        digest = hashlib.md5(key, usedforsecurity=False).digest()
        attempt = 0
        while (entry := self.table[self._slot(digest, attempt)]) and entry[0] != digest:
            attempt += 1
        self.table[self._slot(digest, attempt)] = digest, offset

    def _slot(self, digest: bytes, attempt: int) -> int:
        (number,) = unpack_from(">i", digest, min(attempt, 12))
        probe = number + max(0, attempt - 12)
        probe = (probe + 2**31) % 2**32 - 2**31
        return 0 if probe == -(2**31) else abs(probe) % len(self.table)

    def memory(self) -> bytes:
        return b"".join(
            pack(">16sq", *entry) if entry else bytes(BYTES_PER_ENTRY) for entry in self.table
        )


@pytest.fixture(params=["as it is", "plain"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return offset_map if request.param == "as it is" else plain("barnabas.storage.offset_map")


def memory_of(table: Any) -> bytes:
    return bytes(table._table[: table.slots * BYTES_PER_ENTRY])


def new(slots: int) -> OffsetMap:
    return OffsetMap(slots * BYTES_PER_ENTRY)


@given(KEYS)
def test_what_was_put_last_is_found(keys: list[bytes]) -> None:
    table = new(50)
    expected: dict[bytes, int] = {}

    for offset, key in enumerate(keys):
        table.put(key, offset)
        expected[key] = offset

    assert expected == {key: table.get(key) for key in expected}
    assert NOT_FOUND == table.get(b"never put")
    assert len(expected) == table.size
    assert len(keys) - 1 == table.latest_offset


def test_entries_have_the_places_that_kafka_gives_them(module: ModuleType) -> None:
    """
    Also when nearly all slots are taken, and one looks further than the hash has numbers.
    """
    slots = 1009
    table = module.OffsetMap(slots * BYTES_PER_ENTRY)
    reference = Reference(slots)

    for offset in range(slots - 1):
        key = b"key-%d" % offset
        table.put(key, offset)
        reference.put(key, offset)

    assert reference.memory() == memory_of(table)
    assert all(offset == table.get(b"key-%d" % offset) for offset in range(slots - 1))


def test_the_one_number_that_has_no_positive_counterpart_means_the_first_slot() -> None:
    digest = bytes.fromhex("80000000") + bytes(12)

    class Md5:
        def __init__(self, key: bytes) -> None: ...

        def digest(self) -> bytes:
            return digest

    module = plain("barnabas.storage.offset_map")
    module.__dict__["md5"] = Md5
    table = module.OffsetMap(1009 * BYTES_PER_ENTRY)

    table.put(b"any", 7)

    assert digest == memory_of(table)[:16]


def test_compiled_it_has_the_same_places() -> None:
    module = compiled("barnabas.storage.offset_map")
    table = module.OffsetMap(101 * BYTES_PER_ENTRY)
    reference = plain("barnabas.storage.offset_map").OffsetMap(101 * BYTES_PER_ENTRY)

    for offset in range(100):
        table.put(b"%d" % offset, offset)
        reference.put(b"%d" % offset, offset)

    assert memory_of(reference) == memory_of(table)


def test_a_full_map_takes_no_more_and_still_finds() -> None:
    table = new(3)
    for key in (b"a", b"b", b"c"):
        table.put(key, 7)

    with pytest.raises(ValueError, match="full offset map, entries: 3, slots: 3"):
        table.put(b"a", 8)

    assert 1.0 == table.utilization
    assert 7 == table.get(b"a")
    assert NOT_FOUND == table.get(b"d")


def test_without_room_for_a_key_there_is_no_map() -> None:
    with pytest.raises(ValueError, match="23 bytes has no room"):
        OffsetMap(BYTES_PER_ENTRY - 1)


def test_cleared_it_is_as_new() -> None:
    table = new(10)
    table.put(b"a", 5)
    table.update_latest_offset(9)

    table.clear()

    assert (0, -1, 0.0) == (table.size, table.latest_offset, table.utilization)
    assert NOT_FOUND == table.get(b"a")
    assert bytes(240) == memory_of(table)


def test_the_latest_offset_may_be_that_of_a_record_without_key() -> None:
    table = new(10)
    table.put(b"a", 5)

    table.update_latest_offset(8)

    assert 8 == table.latest_offset
    assert 5 == table.get(b"a")


def test_a_hash_function_that_python_lacks_is_openssls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_md5", None)
    table = plain("barnabas.storage.offset_map").OffsetMap(10 * BYTES_PER_ENTRY)

    table.put(b"a", 1)

    assert 1 == table.get(b"a")
    assert hashlib.md5(b"a", usedforsecurity=False).digest() in memory_of(table)
