"""
Topics as groups see them: hashes, and who is told of changes.

The hashes are those of Apache Kafka 4.3.1 (``tests/interop/test_topic_hashes.py`` asks it).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from barnabas.coordination.groups.modern.topics import MOST_FOLLOWED, SubscribedTopics, topic_hash
from tests.support.topic_table import TopicTable

ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
OTHER_ID = UUID("ffeeddcc-bbaa-9988-7766-554433221100")
FACE = "\U0001f600"


class Group:
    """
    A group that counts how often it is told.
    """

    def __init__(self, group_id: str, *topics: str) -> None:
        self.group_id = group_id
        self.subscribed_topics = set(topics)
        self.told = 0

    def request_metadata_refresh(self) -> None:
        self.told += 1


@pytest.mark.parametrize(
    ("topic_id", "name", "racks", "expected"),
    [
        (ID, "t", [()], 7159487611581674277),
        (ID, "t", [(), ()], -6668928433459152377),
        (OTHER_ID, FACE, [("r2", "r1"), ()], -9068094942252320286),
    ],
)
def test_topic_hash_equals_kafkas(
    topic_id: UUID, name: str, racks: list[Sequence[str]], expected: int
) -> None:
    assert expected == topic_hash(topic_id, name, racks)


def test_hash_of_topics_uses_the_order_of_utf_16_units() -> None:
    table = TopicTable()
    table.put("z\uffff", 1, ID)
    table.put(f"z{FACE}", 2, OTHER_ID)

    assert -8351304274719227939 == SubscribedTopics(table).hash(["z\uffff", f"z{FACE}"])


def test_hash_of_no_topics_is_0() -> None:
    topics = SubscribedTopics(TopicTable())

    assert [0, 0] == [topics.hash([]), topics.hash(["missing"])]


def test_missing_topic_has_no_hash_and_no_id() -> None:
    table = TopicTable()
    topic_id = table.put("t", 1)
    topics = SubscribedTopics(table)

    assert topics.hash(["t"]) == topics.hash(["missing", "t"])
    assert {topic_id} == topics.ids(["t", "missing"])


def test_topic_hash_is_cached_until_the_topic_changes() -> None:
    table = TopicTable()
    table.put("t", 1)
    topics = SubscribedTopics(table)
    before = topics.hash(["t"])
    table.put("t", 2)

    assert before == topics.hash(["t"])
    topics.changed("t")

    assert before != topics.hash(["t"])
    assert SubscribedTopics(table).hash(["t"]) == topics.hash(["t"])


def test_racks_are_part_of_the_topic_hash() -> None:
    table = TopicTable()
    table.put("t", 1)
    without = SubscribedTopics(table).hash(["t"])

    table.rack_names = ("r",)

    assert without != SubscribedTopics(table).hash(["t"])


def test_subscriber_is_notified_of_changes_to_its_topics() -> None:
    topics = SubscribedTopics(TopicTable())
    one, other = Group("one", "t", "u"), Group("other", "u")
    topics.follow(one)
    topics.follow(other)

    topics.changed("t")
    topics.created("u")
    topics.changed("v")

    assert (2, 1) == (one.told, other.told)


def test_subscriber_is_notified_of_its_new_topics_only() -> None:
    topics = SubscribedTopics(TopicTable())
    group = Group("g", "t", "u")
    topics.follow(group)
    group.subscribed_topics = {"u", "v"}
    topics.follow(group)

    topics.changed("t")
    assert 0 == group.told
    topics.changed("u")
    topics.changed("v")

    assert 2 == group.told


def test_subscriber_may_be_replaced_by_another_object_of_the_group() -> None:
    topics = SubscribedTopics(TopicTable())
    before, after = Group("g", "t"), Group("g", "t")
    topics.follow(before)
    topics.follow(after)

    topics.changed("t")

    assert (0, 1) == (before.told, after.told)


def test_unsubscribed_group_is_not_notified() -> None:
    topics = SubscribedTopics(TopicTable())
    group = Group("g", "t")
    topics.follow(group)

    topics.unfollow("g")
    topics.unfollow("stranger")
    topics.changed("t")

    assert 0 == group.told
    assert {} == topics._subscribers
    assert {} == topics._followed


def test_new_topic_has_a_version() -> None:
    table = TopicTable()
    topics = SubscribedTopics(table)
    table.put("t", 1)
    topics.created("t")
    first = topics.version_with_new_topics
    table.put("t", 2)
    topics.changed("t")

    assert first == topics.version_with_new_topics < table.version


def test_group_with_very_many_names_learns_of_a_change_until_it_no_longer_names_the_topic() -> None:
    table = TopicTable()
    topics = SubscribedTopics(table)
    names = [f"t{number}" for number in range(MOST_FOLLOWED + 1)]
    group = Group("g", *names)
    topics.follow(group)

    topics.changed(names[-1])
    topics.changed("other")
    assert 1 == group.told

    group.subscribed_topics = {"t0"}
    topics.follow(group)
    topics.changed(names[-1])
    assert 1 == group.told
    topics.changed("t0")
    assert 2 == group.told

    group.subscribed_topics = set(names)
    topics.follow(group)
    topics.unfollow("g")
    topics.changed("t0")
    assert 2 == group.told
