from __future__ import annotations

from uuid import UUID

from barnabas.coordination.groups.assignors.members import member_order
from barnabas.coordination.groups.assignors.spec import TopicIds, is_same
from tests.support.assignments import A, B, C


class TestMemberOrder:
    """
    "Aa", "BB" and "C#" have the same hash code.
    """

    def test_member_order_is_that_of_a_hash_map_of_a_timeline_map(self) -> None:
        assert ["C#", "BB", "Aa", "b"] == member_order(["Aa", "b", "BB", "C#"])

    def test_new_member_comes_last_in_its_bin(self) -> None:
        assert ["BB", "Aa", "C#"] == member_order(["Aa", "BB"], updated="C#")

    def test_known_member_keeps_its_place(self) -> None:
        assert ["BB", "Aa"] == member_order(["Aa", "BB"], updated="BB")

    def test_replaced_member_is_left_out(self) -> None:
        assert ["BB", "C#"] == member_order(["Aa", "BB"], updated="C#", replaced="Aa")

    def test_order_of_two_member_changes_decides_whether_the_table_grows(self) -> None:
        # A new member counts before a member that leaves, and the 13th doubles a table of 16.
        # In a map of the two changes "0" and "p" are in bin 0, and "1" is in bin 1.
        before_it_goes = member_order(["1", "A", *"bcdefghijk"], updated="0", replaced="1")
        after_it_went = member_order(["p", "A", *"bcdefghijk"], updated="1", replaced="p")

        assert ["A", *"bcdefghijk", "0"] == before_it_goes
        assert ["A", "1", *"bcdefghijk"] == after_it_went

    def test_member_table_never_shrinks(self) -> None:
        ids = [f"{number}" for number in range(0, 10_000, 7)]
        pairs = [ids[at : at + 40] for at in range(0, len(ids), 40)]

        assert any(member_order(pair) != member_order(pair, largest=5000) for pair in pairs)


class TestTopicIds:
    def test_subscribed_topics_are_in_hash_set_order(self) -> None:
        # "Aa" and "BB" share bin 0; "a" is in bin 1.
        known = {"Aa": A, "BB": B, "a": C}

        assert [B, A, C] == list(TopicIds.of_names(["a", "BB", "Aa"], known))
        assert [A, B, C] == list(TopicIds.of_names(["Aa", "BB", "a"], known))

    def test_subscribed_names_without_a_topic_count(self) -> None:
        topic_ids = TopicIds.of_names(["a", "missing"], {"a": A})

        assert [A] == list(topic_ids)
        assert 1 == len(topic_ids)
        assert 2 == topic_ids.name_count
        assert A in topic_ids
        assert B not in topic_ids


class TestIsSame:
    def test_assignments_are_equal_in_any_order(self) -> None:
        assert is_same({A: (1, 2), B: (3,)}, {B: (3,), A: (2, 1)})
        assert is_same({A: (1, 2)}, {A: (2, 1)})

    def test_assignments_with_other_partitions_or_topics_differ(self) -> None:
        others: list[dict[UUID, tuple[int, ...]]] = [
            {A: (1, 3)},
            {A: (1,)},
            {A: (1, 2), B: ()},
            {B: (1, 2)},
            {},
        ]
        assert not any(is_same({A: (1, 2)}, other) for other in others)
