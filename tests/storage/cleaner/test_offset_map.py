from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.cleaner import offset_map
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY, NOT_FOUND, OffsetMap
from tests.support.compiled import compiled, plain

KEYS = st.lists(st.binary(max_size=3), max_size=40)
PUTS = st.lists(
    st.tuples(st.sampled_from([b"", b"a", b"b", b"c"]), st.integers(0, 30)), max_size=30
)


@pytest.fixture(params=["as it is", "plain"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return offset_map if request.param == "as it is" else plain(offset_map.__name__)


def new(slots: int) -> OffsetMap:
    return OffsetMap(slots * BYTES_PER_ENTRY)


@given(KEYS)
def test_map_returns_the_offset_put_last_for_a_key(keys: list[bytes]) -> None:
    table = new(50)
    expected: dict[bytes, int] = {}

    for offset, key in enumerate(keys):
        table.put(key, offset)
        expected[key] = offset

    assert expected == {key: table.get(key) for key in expected}
    assert NOT_FOUND == table.get(b"never put")
    assert len(expected) == table.size
    assert len(keys) - 1 == table.latest_offset


def test_nearly_full_map_still_finds_all_keys(module: ModuleType) -> None:
    slots = 1009
    table = module.OffsetMap(slots * BYTES_PER_ENTRY)

    for offset in range(slots - 1):
        table.put(b"key-%d" % offset, offset)

    assert slots - 1 == table.size
    assert all(offset == table.get(b"key-%d" % offset) for offset in range(slots - 1))
    assert NOT_FOUND == table.get(b"another")


@pytest.mark.parametrize("length", [1, 2])
def test_map_distinguishes_keys_by_both_hashes(length: int) -> None:
    """
    The first hash is one byte of the key here, the second two bytes.
    """

    def weak(data: bytes) -> int:
        return 7 if len(data) == length else hash(data)

    module = plain("barnabas.storage.cleaner.offset_map")
    module.__dict__["hash"] = weak
    table = module.OffsetMap(1009 * BYTES_PER_ENTRY)

    table.put(b"a", 1)
    table.put(b"b", 2)

    assert [1, 2, NOT_FOUND] == [table.get(key) for key in (b"a", b"b", b"c")]


def test_compiled_map_uses_the_same_slots() -> None:
    module = compiled("barnabas.storage.cleaner.offset_map")
    table = module.OffsetMap(101 * BYTES_PER_ENTRY)
    reference = plain("barnabas.storage.cleaner.offset_map").OffsetMap(101 * BYTES_PER_ENTRY)

    for offset in range(100):
        table.put(b"%d" % offset, offset)
        reference.put(b"%d" % offset, offset)

    assert bytes(reference._table) == bytes(table._table)


def test_full_map_refuses_new_keys_and_still_finds_the_others() -> None:
    table = new(3)
    for key in (b"a", b"b", b"c"):
        table.put(key, 7)

    with pytest.raises(ValueError, match="full offset map, entries: 3, slots: 3"):
        table.put(b"a", 8)

    assert 1.0 == table.utilization
    assert 7 == table.get(b"a")
    assert NOT_FOUND == table.get(b"d")


def test_map_without_room_for_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="23 bytes has no room"):
        OffsetMap(BYTES_PER_ENTRY - 1)


def test_cleared_map_is_empty() -> None:
    table = new(10)
    table.put(b"a", 5)
    table.update_latest_offset(9)

    table.clear()

    assert (0, -1, 0.0) == (table.size, table.latest_offset, table.utilization)
    assert NOT_FOUND == table.get(b"a")
    assert bytes(240) == bytes(table._table)
    table.put(b"a", 1)
    table.put(b"a", 2)
    assert [1] == [offset for offset in range(10) if table.is_superseded(offset)]


def test_latest_offset_may_be_that_of_a_record_without_key() -> None:
    table = new(10)
    table.put(b"a", 5)

    table.update_latest_offset(8)

    assert 8 == table.latest_offset
    assert 5 == table.get(b"a")


@given(PUTS)
def test_superseded_record_always_has_a_later_offset_of_its_key(
    puts: list[tuple[bytes, int]],
) -> None:
    table = new(50)
    for key, offset in puts:
        table.put(key, offset)

    assert all(offset < table.get(key) for key, offset in puts if table.is_superseded(offset))


def test_all_superseded_records_of_a_sound_log_are_known(module: ModuleType) -> None:
    table = module.OffsetMap(50 * BYTES_PER_ENTRY)
    keys = [b"a", b"b", b"a", b"c", b"a", b"b"]

    for offset, key in enumerate(keys, 100):
        table.put(key, offset)

    assert [100, 101, 102] == [offset for offset in range(200) if table.is_superseded(offset)]
    table.put(b"d", 105)
    assert [] == [offset for offset in range(200) if table.is_superseded(offset)]


def test_offset_set_knows_no_superseded_records_far_behind_the_first_offset() -> None:
    """
    A lookup in the map decides there: the set takes at most an eighth of the map's memory.
    """
    table = new(10)

    for offset in (1000, 1001, 1000 + 240, 2000):
        table.put(b"a", offset)

    assert [1000, 1001] == [offset for offset in range(3000) if table.is_superseded(offset)]
