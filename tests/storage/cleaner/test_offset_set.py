from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.cleaner import offset_set
from barnabas.storage.cleaner.offset_set import OffsetSet
from tests.support.compiled import plain

OFFSETS = st.lists(st.integers(0, 60))


@given(OFFSETS, st.integers(0, 20), st.integers(1, 30))
def test_offset_set_contains_what_was_added_within_its_range(
    offsets: list[int], first: int, count: int
) -> None:
    some = OffsetSet(first, count)

    for offset in offsets:
        some.add(offset)

    expected = set(offsets) & set(range(first, first + count))
    assert expected == {offset for offset in range(61) if some.has(offset)}


@pytest.mark.parametrize("module", [offset_set, plain("barnabas.storage.cleaner.offset_set")])
def test_offset_set_takes_offsets_up_to_the_maximum(module: ModuleType) -> None:
    largest = 2**63 - 1
    some = module.OffsetSet(largest - 9, 100)

    some.add(largest)
    some.add(largest - 10)

    assert [largest] == [offset for offset in range(largest - 20, largest + 1) if some.has(offset)]
