"""
The same requests about the cluster as a whole, sent to Barnabas and to an Apache Kafka beside it:
every field of the answers is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.support.both_brokers import BothBrokers, check_answers
from tests.support.cluster_requests import (
    acls,
    election,
    features,
    moves,
    moving,
    new_acl,
    new_credentials,
    new_quotas,
    no_acl,
    quorum,
    quotas,
    relocation,
    resources,
    sizes,
    topic_pages,
    users,
)
from tests.support.config_requests import SET, change
from tests.support.topic_requests import creatable

pytestmark = pytest.mark.prove

OWN: Final = frozenset(
    {
        "topic_id",
        "cluster_id",
        "port",
        "log_dir",
        "total_bytes",
        "usable_bytes",
        "high_watermark",
        "log_end_offset",
        "leader_epoch",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        # Kafka's controller has a listener of its own.
        "listeners",
    }
)
TOPICS: Final = [creatable("t", 3), creatable("u"), creatable("v", 2), creatable("col.lision")]

UNKNOWN_ID: Final = UUID(int=12345)
ASSIGNMENTS: Final[Sequence[list[tuple[int, list[int]]]]] = (
    [(0, [1]), (2, [1])],
    [(0, [1]), (0, [1])],
    [(0, [2])],
    [(0, [1, 1])],
    [(0, [])],
    [(0, [1]), (1, [1])],
)
CREATIONS: Final = (
    creatable("new", 2, configs={"retention.ms": "5"}),
    creatable("new", -1, -1),
    creatable("t"),
    creatable("col.lision"),
    creatable("col_lision"),
    creatable("b@d", 0, 0, configs={"bad": "1"}),
    creatable("new", 0, configs={"preallocate": "1"}),
    creatable("new", configs={"retention.ms": None, "flush.ms": "1", "segment.ms": None}),
    *(creatable("new", partitions) for partitions in (0, -2)),
    creatable("new", 0, 0),
    *(creatable("new", 1, factor) for factor in (-2, 3)),
    creatable("new", 1, 1, [(0, [1])]),
    creatable("new", 1, -1, [(0, [1])]),
    *(creatable("new", -1, -1, assignments) for assignments in ASSIGNMENTS),
)


def metadata(*asked: str | UUID | None) -> MetadataRequest:
    topics = [
        MetadataRequestTopic(topic_id=each, name=None)
        if isinstance(each, UUID)
        else MetadataRequestTopic(name=each)
        for each in asked
    ]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def creation(*topics: CreatableTopic) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=True)


def deletion(*states: tuple[str | None, UUID]) -> DeleteTopicsRequest:
    topics = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states]
    return DeleteTopicsRequest(topics=topics, timeout_ms=10_000)


ANSWERS: Final[Mapping[str, Sequence[tuple[Message, int]]]] = {
    "topics and their partitions": [
        (topic_pages(), 0),
        (topic_pages(limit=2), 0),
        (topic_pages(limit=0), 0),
        (topic_pages(limit=3), 0),
        (topic_pages(limit=4), 0),
        (topic_pages(after=("t", 1), limit=2), 0),
        (topic_pages(after=("t", 7)), 0),
        (topic_pages(after=("ta", 7)), 0),
        (topic_pages("u", "t", "t"), 0),
        (topic_pages("u", "nope", "b@d", "__consumer_offsets"), 0),
        (topic_pages("u", "t", after=("u", 0)), 0),
        (topic_pages("u", "t", after=("v", 0)), 0),
        (topic_pages("u", "t", after=("u", -1)), 0),
    ],
    "metadata": [
        (metadata("t", "nope", "b@d", ""), 12),
        *((metadata("t", None, "u"), version) for version in (12, 13)),
        *((metadata(None, UNKNOWN_ID, "t"), version) for version in (12, 13)),
        *((metadata(UNKNOWN_ID), version) for version in (10, 11)),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=UNKNOWN_ID, name="t")]), 11),
        *(
            (
                DescribeClusterRequest(
                    include_cluster_authorized_operations=False, endpoint_type=endpoint_type
                ),
                1,
            )
            for endpoint_type in (2, 3)
        ),
    ],
    "creations": [
        *((creation(topic), version) for topic in CREATIONS for version in (5, 7)),
        (creation(creatable("dup"), creatable("__cluster_metadata"), creatable("dup")), 7),
        (creation(creatable("new"), creatable("b@d"), creatable("x", 0)), 7),
        (creation(creatable("a", 10_001), creatable("b")), 7),
        (creation(creatable("a", 9_999), creatable("b", 2)), 7),
        (creation(creatable("a", 10_000)), 7),
    ],
    "deletions": [
        *((deletion(state), 6) for state in (("nope", ZERO_UUID), ("b@d", ZERO_UUID))),
        *((deletion(state), 6) for state in ((None, ZERO_UUID), (None, UNKNOWN_ID))),
        (deletion(("u", UNKNOWN_ID)), 6),
        *((deletion(state, state), 6) for state in (("t", ZERO_UUID), (None, UNKNOWN_ID))),
    ],
    "log directories": [
        (sizes(None), 5),
        (sizes([("t", [0, 1, 7]), ("nope", [0])]), 5),
        (sizes([]), 5),
        (sizes([]), 1),
        (sizes([("t", [])]), 4),
    ],
    "resources": [
        (resources(), 0),
        (resources(16), 1),
        (resources(4, 8), 1),
        (resources(2), 1),
        (resources(32), 1),
        (resources(4, 4, 2), 1),
        (resources(1), 1),
        (change(32, "g", ("consumer.session.timeout.ms", SET, "50000")), 1),
        (change(16, "m", ("interval.ms", SET, "5000")), 1),
        (resources(), 0),
        (resources(), 1),
    ],
    "elections": [
        (election(0, ("t", [0, 1])), 2),
        (election(1, ("t", [0])), 2),
        (election(0, ("t", [0, 7]), ("nope", [0])), 1),
        (election(0), 2),
        (election(0, everything=True), 2),
        (election(1, everything=True), 2),
        (election(2, ("t", [0])), 2),
        (election(0, ("t", [])), 0),
    ],
    "moves": [
        (moves(("t", 0, [1])), 1),
        (moves(("t", 0, [2])), 1),
        (moves(("t", 0, [])), 1),
        (moves(("t", 0, [1, 1])), 1),
        (moves(("t", 0, [1, 2]), factor=False), 1),
        (moves(("t", 0, None), ("t", 9, None), ("nope", 0, [1])), 0),
        (moves(("t", 1, [1]), ("t", 9, [1])), 0),
        (moves(), 1),
        (moving(), 0),
        (moving([("t", [0, 9]), ("nope", [0])]), 0),
    ],
    "quotas": [
        (
            new_quotas(
                ({"user": "u"}, [("producer_byte_rate", 1000.0), ("request_percentage", 1.5)])
            ),
            1,
        ),
        (new_quotas(({"user": "u", "client-id": None}, [("consumer_byte_rate", 9.0)])), 1),
        (new_quotas(({"client-id": "c"}, [("controller_mutation_rate", 0.5)])), 0),
        (new_quotas(({"ip": "127.0.0.1"}, [("connection_creation_rate", 5.0)])), 1),
        (new_quotas(({"ip": None}, [("connection_creation_rate", 6.0)])), 1),
        (quotas(), 1),
        (quotas(("user", 0, "u")), 1),
        (quotas(("user", 0, "u"), strict=True), 1),
        (quotas(("user", 0, "v")), 1),
        (quotas(strict=True), 1),
        (quotas(("user", 2, None)), 1),
        (quotas(("user", 1, None)), 1),
        (quotas(("user", 2, None), ("client-id", 1, None), strict=True), 1),
        (quotas(("ip", 2, None)), 0),
        (quotas(("ip", 1, None)), 1),
        (quotas(("ip", 2, None), ("user", 2, None)), 1),
        (quotas(("user", 2, None), ("user", 2, None)), 1),
        (quotas(("user", 0, None)), 1),
        (quotas(("user", 1, "u")), 1),
        (quotas(("user", 2, "u")), 1),
        (quotas(("user", 3, None)), 1),
        (quotas(("", 2, None)), 1),
        (quotas(("group", 2, None)), 1),
        (new_quotas(({"user": "u"}, [("producer_byte_rate", 0.0)])), 1),
        (new_quotas(({"user": "u"}, [("producer_byte_rate", 1.5)])), 1),
        (new_quotas(({"user": "u"}, [("producer_byte_rate", 1e30)])), 1),
        (new_quotas(({"ip": None}, [("connection_creation_rate", 1e10)])), 1),
        (new_quotas(({"user": "u"}, [("connection_creation_rate", 1.0)])), 1),
        (new_quotas(({"user": "u"}, [("foo", None)])), 1),
        (new_quotas(({"user": "", "ip": "x"}, [("foo", 1.0)])), 1),
        (new_quotas(({"user": "u", "ip": "127.0.0.1"}, [("foo", 1.0)])), 1),
        (new_quotas(({"group": "g"}, [("foo", 1.0)])), 1),
        (new_quotas(({}, [("foo", 1.0)])), 1),
        (new_quotas(*[({"user": "u"}, [("producer_byte_rate", 7.0)])] * 2), 1),
        (quotas(), 1),
        (new_quotas(({"user": "u"}, [("producer_byte_rate", 7.0)] * 2)), 1),
        (new_quotas(({"ip": None}, [("producer_byte_rate", 1.0)])), 1),
        (new_quotas(({"user": "v"}, [("producer_byte_rate", 7.0)]), validate=True), 1),
        (new_quotas(({"user": "u"}, [("producer_byte_rate", None)])), 1),
        (quotas(), 1),
    ],
    "credentials": [
        (users(), 0),
        (new_credentials(("a", 1, 4096), ("b", 2, 8192)), 0),
        (new_credentials(("a", 2, 4097)), 0),
        (users(), 0),
        (users("a", "a", "nobody", "b"), 0),
        (new_credentials(("a", 1, 4095), ("b", 1, 16385), ("", 1, 5000), ("c", 3, 5000)), 0),
        (new_credentials(("a", 1, 5000), without=[("a", 2)]), 0),
        (new_credentials(without=[("b", 1), ("c", 1), ("a", 2)]), 0),
        (new_credentials(without=[("a", 0)]), 0),
        (new_credentials(("a", 1, 5000), ("a", 2, 5000)), 0),
        (users(), 0),
    ],
    "access control": [(acls(), 3), (new_acl("t"), 3), (no_acl("t"), 1)],
    "brokers": [(UnregisterBrokerRequest(broker_id=7), 0)],
    "features": [
        (features(("metadata.version", 31, 1)), 1),
        (features(("metadata.version", 29, 1)), 2),
        (features(("metadata.version", 29, 2)), 2),
        (features(("metadata.version", 7, 3)), 2),
        (features(("metadata.version", 30, 2)), 2),
        (features(("metadata.version", 30, 1)), 1),
        (features(("metadata.version", -1, 2)), 2),
        (features(("metadata.version", 6, 2)), 2),
        (features(("foo", 1, 1)), 2),
        (features(("foo", 0, 2)), 2),
        (features(("group.version", 0, 0)), 2),
        (features(("group.version", 0, 1)), 2),
        (features(("group.version", 2, 1)), 2),
        (features(("group.version", 0, 2), ("share.version", 9, 1)), 2),
        (features(("group.version", 0, 2), validate=True), 2),
        (features(("group.version", 1, 2), validate=True), 1),
        (features(("eligible.leader.replicas.version", 0, 2)), 2),
        (features(("eligible.leader.replicas.version", 1, 3)), 2),
        (features(("eligible.leader.replicas.version", 1, 1)), 1),
        (features(), 2),
    ],
    "other log directories": [
        (relocation(("/nowhere", "t", 0)), 2),
        (relocation(("/nowhere", "nope", 0)), 2),
        (relocation(("/nowhere", "x" * 214, 0), ("/nowhere", "x" * 213, 0)), 1),
    ],
    "the quorum": [
        (quorum(("__cluster_metadata", [0])), 2),
        (quorum(("__cluster_metadata", [0])), 0),
        (quorum(("__cluster_metadata", [1])), 2),
        (quorum(("__cluster_metadata", [0, 1])), 2),
        (quorum(("__cluster_metadata", [0]), ("t", [0])), 2),
        (quorum(("t", [0])), 1),
        (quorum(), 2),
    ],
}


@pytest.mark.parametrize("subject", ANSWERS)
def test_cluster_responses_equal_kafkas(both: BothBrokers, subject: str) -> None:
    # Topics stay from one subject to the next; it is fine that they exist already.
    topics = CreateTopicsRequest(topics=TOPICS, timeout_ms=10_000)

    check_answers(both, ANSWERS[subject], prepared_by=[(topics, 7)], own=OWN)
