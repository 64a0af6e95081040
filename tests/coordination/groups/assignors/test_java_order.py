"""
The expected orders are those of Java 17 and of Kafka's ``TimelineHashMap``.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordination.groups.assignors.java_order import hashing
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import (
    copied,
    signed,
    uuid_hash,
    uuid_rank,
)
from barnabas.coordination.groups.assignors.java_order.partition_set import (
    PartitionSet,
    added_order,
    copied_order,
)
from barnabas.coordination.groups.assignors.java_order.priority_queue import PriorityQueue
from barnabas.coordination.groups.assignors.java_order.timeline import timeline_order
from barnabas.coordination.java_strings import string_hash, string_rank


class TestHashCodes:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", 0),
            ("hello", 99162322),
            ("Aa", 2112),
            ("BB", 2112),
            ("\u00e9", 233),
            ("\U0001f600", 1772899),
            ("x" * 300, 2537196032),
        ],
    )
    def test_hash_codes_of_strings_use_utf_16_units(self, text: str, expected: int) -> None:
        assert expected == string_hash(text)

    def test_hash_codes_of_uuids_fold_four_words(self) -> None:
        value = UUID(int=0x00000001_00000020_00000300_00004000)

        assert 0x4321 == uuid_hash(value)

    @pytest.mark.parametrize(
        ("unsigned", "expected"),
        [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32 - 1, -1)],
    )
    def test_a_hash_code_is_a_signed_number_in_java(self, unsigned: int, expected: int) -> None:
        assert expected == signed(unsigned)

    def test_uuids_compare_as_signed_numbers(self) -> None:
        negative, positive = UUID(int=1 << 127), UUID(int=1)

        assert [negative, positive] == sorted([positive, negative], key=uuid_rank)

    def test_strings_compare_by_utf_16_units(self) -> None:
        # A high surrogate sorts before U+E000.
        assert ["\U0001f600", "\uffff"] == sorted(["\uffff", "\U0001f600"], key=string_rank)


class TestSizesOfTables:
    @pytest.mark.parametrize(("release", "expected"), [(17, 32), (18, 32), (19, 16), (25, 16)])
    def test_order_of_a_copy_of_twelve_depends_on_the_java_release(
        self, release: int, expected: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hashing, "java_release", release)

        assert expected == copied(12)
        assert 16 == copied(11)
        assert 32 == copied(13)


class TestHashOrder:
    def test_put_appends_to_a_bin(self) -> None:
        order = HashOrder(int, keys=[0, 16, 32, 1])

        assert [0, 16, 32, 1] == list(order)

    def test_compute_if_absent_prepends_to_a_bin(self) -> None:
        order = HashOrder(int)
        for key in (0, 16, 32, 1):
            order.compute_if_absent(key)

        assert [32, 16, 0, 1] == list(order)

    def test_compute_if_absent_grows_the_table_with_the_next_call(self) -> None:
        order = HashOrder(int, 1)
        for key in (5, 6, 10, 11):
            assert order.compute_if_absent(key)
        assert [5, 10, 6, 11] == list(order)

        assert not order.compute_if_absent(11)

        assert [10, 11, 5, 6] == list(order)

    def test_a_crowded_bin_grows_a_small_table(self) -> None:
        order = HashOrder(int, keys=range(0, 144, 16))

        assert [0, 32, 64, 96, 128, 16, 48, 80, 112] == list(order)

    def test_crowded_bin_becomes_a_tree(self) -> None:
        order = HashOrder(int, 64, range(0, 768, 64))

        assert [192, 0, 64, 128, 256, 320, 384, 448, 512, 576, 640, 704] == list(order)

    def test_eighth_key_prepended_to_a_bin_makes_a_tree(self) -> None:
        order = HashOrder(int, 64)
        for key in range(0, 512, 64):
            order.compute_if_absent(key)

        assert [256, 448, 384, 320, 192, 128, 64, 0] == list(order)

    def test_a_tree_has_a_new_root_when_its_root_is_removed(self) -> None:
        order = HashOrder(int, 64, range(0, 768, 64))

        for key in (192, 0, 256):
            order.remove(key)
        assert [448, 64, 128, 320, 384, 512, 576, 640, 704] == list(order)

        for key in (64, 448, 640, 128):
            order.remove(key)
        assert [512, 320, 384, 576, 704] == list(order)

    def test_keys_that_are_put_again_stay_in_their_places(self) -> None:
        order = HashOrder(int, keys=[0, 16])

        order.put(0)

        assert [0, 16] == list(order)
        assert 2 == len(order)


class TestPartitionSets:
    def test_adjacent_numbers_are_in_ascending_order_of_their_bins(self) -> None:
        assert [16, 17, 14, 15] == list(copied_order((14, 15, 16, 17)))
        assert [16, 17, 14, 15] == list(added_order((14, 15, 16, 17)))

    def test_a_copy_has_a_larger_table_than_a_set_that_has_grown(self) -> None:
        numbers = range(10, 22)

        assert [16, 17, 18, 19, 20, 21, *range(10, 16)] == list(added_order(numbers))
        assert list(numbers) == list(copied_order(numbers))

    def test_numbers_in_few_bins(self) -> None:
        numbers = range(5, 200, 17)

        expected = [192, 5, 39, 73, 107, 141, 175, 22, 56, 90, 124, 158]
        assert expected == list(copied_order(numbers))
        assert expected == PartitionSet(copied(12), numbers).ordered()

    def test_crowded_bins_of_a_set_equal_those_of_a_map(self) -> None:
        partitions = PartitionSet(64, range(0, 768, 64))

        assert [192, 0, 64, 128, 256, 320, 384, 448, 512, 576, 640, 704] == partitions.ordered()

        for number in (192, 0, 256):
            partitions.remove(number)
        assert [448, 64, 128, 320, 384, 512, 576, 640, 704] == partitions.ordered()

    def test_numbers_added_singly_are_ordered_like_those_added_at_once(self) -> None:
        one_by_one = PartitionSet()
        for number in range(3, 400, 7):
            one_by_one.add(number)

        assert PartitionSet(numbers=range(3, 400, 7)).ordered() == one_by_one.ordered()

    def test_adjacent_numbers_added_in_leaps_end_up_in_order(self) -> None:
        # In a small table, numbers with the same low bits share a bin.
        leaps = [number for start in range(128) for number in range(start, 1024, 128)]
        one_by_one = PartitionSet()
        for number in leaps:
            one_by_one.add(number)

        assert sorted(leaps) == one_by_one.ordered() == PartitionSet(numbers=leaps).ordered()

    def test_large_numbers_use_other_bins(self) -> None:
        assert [65_537, 65_536] == list(copied_order((65_536, 65_537)))
        assert [65_537, 65_536] == list(added_order((65_536, 65_537)))


class TestTimelineOrder:
    def test_timeline_slots_are_chosen_by_multiplication(self) -> None:
        assert ["4", "1", "3", "5", "2"] == timeline_order(["1", "2", "3", "4", "5"], 5)

    def test_newest_key_of_a_timeline_slot_comes_first(self) -> None:
        assert ["C#", "BB", "Aa"] == timeline_order(["Aa", "BB", "C#"], 3)


class TestPriorityQueue:
    def test_equal_elements_of_a_java_heap_come_in_javas_order(self) -> None:
        queue = PriorityQueue[str](lambda item: ord(item[0]), ["a0", "a1", "a2", "a3"])

        assert ["a0", "a3", "a2", "a1", None] == [queue.poll() for _ in range(5)]

    def test_lowest_element_of_a_java_heap_comes_first(self) -> None:
        queue = PriorityQueue[int](float, [5, 3, 8, 1, 4])

        assert [1, 3, 4, 5, 8] == [queue.poll() for _ in range(5)]
