"""
Topics that are created, enlarged and deleted while groups subscribe to them.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_topics.group_records import consumer
from tests.support.consumer_groups import ConsumerCoordination, told
from tests.support.coordination import GROUP


@pytest.mark.parametrize("before", [0, 1])
def test_new_partitions_are_assigned_with_the_next_heartbeat(before: int) -> None:
    c = ConsumerCoordination()
    if before:
        c.create("t", before)
    epoch = c.enter("a", ["t"]).member_epoch
    topic_id = c.create("t", 3)
    assert epoch == c.consumers.group_epoch

    answer = c.beat("a", epoch)

    assert (epoch + 1, {topic_id: [0, 1, 2]}) == (answer.member_epoch, told(answer))
    assert ["3", "7 a", "6", "8 a"] == c.last
    assert c.subscribed.hash({"t"}) == c.last_value(3).metadata_hash


def test_deleted_topic_is_revoked() -> None:
    c = ConsumerCoordination.of("a")
    epoch = c.epoch("a")
    c.delete("t")

    answer = c.beat("a", epoch)

    assert (epoch, {}) == (answer.member_epoch, told(answer))
    answer = c.beat("a", epoch, owned={})
    assert epoch + 1 == answer.member_epoch
    assert 0 == c.consumers.metadata_hash


def test_recreated_topic_counts_as_another_topic() -> None:
    c = ConsumerCoordination.of("a", partitions=1)
    epoch = c.epoch("a")
    c.delete("t")
    topic_id = c.create("t", 1)

    c.beat("a", epoch)
    answer = c.beat("a", epoch, owned={})

    assert {topic_id: [0]} == told(answer)


@pytest.mark.parametrize("is_subscribed", [False, True])
def test_change_without_effect_on_the_topics_writes_nothing(is_subscribed: bool) -> None:
    c = ConsumerCoordination.of("a")
    c.create("u", 1)
    before = list(c.batches)
    if is_subscribed:
        c.subscribed.changed("t")
    else:
        c.grow("u", 5)
        c.create("v", 1)
        c.delete("u")
    assert is_subscribed == c.consumers.is_metadata_stale

    c.beat("a", c.epoch("a"))

    assert before == c.batches
    assert not c.consumers.is_metadata_stale


def test_topic_without_subscribers_is_no_longer_followed() -> None:
    c = ConsumerCoordination({"t": 1, "u": 1})
    epoch = c.enter("a", ["t", "u"]).member_epoch
    epoch = c.beat("a", epoch, topics=["u"], owned={}).member_epoch
    c.settle("a")
    epoch = c.member("a").member_epoch

    c.grow("t", 2)

    assert not c.consumers.is_metadata_stale


def test_any_member_detects_a_topic_change() -> None:
    c = ConsumerCoordination({"t": 1})
    c.enter("a", ["t"])
    c.enter("b", ["u"])
    c.settle("a", "b")
    epoch = c.consumers.group_epoch
    c.grow("t", 2)

    c.beat("b", c.member("b").member_epoch)

    assert epoch + 1 == c.consumers.group_epoch


def test_topic_change_during_downtime_is_detected_after_the_restart() -> None:
    c = ConsumerCoordination.of("a", partitions=1)
    epoch = c.epoch("a")
    c.topics.put("t", 2)

    c.restart()

    assert epoch + 1 == c.beat("a", epoch).member_epoch


def test_subscribed_topics_are_followed_after_a_restart() -> None:
    c = ConsumerCoordination.of("a", partitions=1)
    epoch = c.epoch("a")
    c.restart()
    c.beat("a", epoch)
    assert not c.consumers.is_metadata_stale

    c.grow("t", 2)

    assert c.consumers.is_metadata_stale


def test_topic_change_is_detected_again_after_a_failed_write() -> None:
    c = ConsumerCoordination.of("a", partitions=1)
    epoch = c.epoch("a")
    c.grow("t", 2)
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    c.beat("a", epoch)
    c.append_error = None

    assert c.consumers.is_metadata_stale
    assert epoch + 1 == c.beat("a", epoch).member_epoch


def test_topic_metadata_record_of_older_brokers_is_deleted() -> None:
    # Until Kafka 4.1 a record had the partitions of all topics.
    c = ConsumerCoordination.of("a", partitions=1)
    epoch = c.epoch("a")
    key = consumer.ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    c.write_records([ModernRecord(key, consumer.ConsumerGroupPartitionMetadataValue(topics=[]))])
    c.grow("t", 2)

    c.beat("a", epoch)
    assert ["3", "-4", "7 a", "6", "8 a"] == c.last

    c.grow("t", 3)
    c.beat("a", epoch + 1)
    assert "-4" not in c.last
