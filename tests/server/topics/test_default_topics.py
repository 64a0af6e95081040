from __future__ import annotations

import pytest

from barnabas.server.config import BrokerConfig
from barnabas.server.topics.default_topics import default_topic


def test_created_topic_stores_no_broker_defaults() -> None:
    """
    The broker's defaults are resolved when the topic is made, not stored with it.
    """
    topic = default_topic("orders", BrokerConfig())
    assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, [])


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("__consumer_offsets", "compact"),
        ("__transaction_state", "compact"),
        ("__share_group_state", "delete"),
    ],
)
def test_internal_topics_have_their_own_settings(name: str, policy: str) -> None:
    """
    The coordinators' topics are made for them, however the broker treats others.
    """
    topic = default_topic(name, BrokerConfig())
    assert topic.num_partitions == 50
    assert {each.name: each.value for each in topic.configs}["cleanup.policy"] == policy


def test_offsets_topic_options_apply() -> None:
    config = BrokerConfig(offsets_topic_num_partitions=3, offsets_topic_segment_bytes=1 << 20)
    topic = default_topic("__consumer_offsets", config)
    assert topic.num_partitions == 3
    assert {each.name: each.value for each in topic.configs}["segment.bytes"] == "1048576"
