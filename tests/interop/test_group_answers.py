"""
The same requests about groups and their offsets, sent to Barnabas and to an Apache Kafka beside it:
every field of the answers is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.streams_group_heartbeat import TaskIds, TaskOffset
from tests.support.both_brokers import BothBrokers, check_answers
from tests.support.build import api_request, named
from tests.support.group_requests import (
    commit_request,
    coordinator_request,
    heartbeat_request,
    join_request,
    offset_delete_request,
    sync_request,
)
from tests.support.streams_programs import READER, first_heartbeat, internal, part, topology
from tests.support.topic_requests import creatable

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "group.consumer.max.size": "1",
    "group.share.max.size": "1",
    "group.streams.max.size": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
}
OWN: Final = frozenset({"member_id", "topic_id"})
GROUP: Final = "g"
UNKNOWN_ID: Final = UUID(int=77)
TOPICS: Final = [creatable("t", 2)]
EMPTY: Final = ("", " ", "\t\n", "\x00\x1f ")


def consumer(member_epoch: int = 0, /, **facts: Any) -> Message:
    """
    A full first request, but for *facts*.
    """
    given: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": "m",
        "member_epoch": member_epoch,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return api_request("consumer_group_heartbeat", **given | facts)


def beat(member_epoch: int, /, **facts: Any) -> Message:
    """
    The request of a member that has nothing new to say, but for *facts*.
    """
    nothing: dict[str, Any] = {
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": None,
        "topic_partitions": None,
    }
    return consumer(member_epoch, **nothing | facts)


def streams(**facts: Any) -> Message:
    return first_heartbeat(GROUP + "-streams", READER, **facts)


def streams_beat(member_epoch: int, /, **facts: Any) -> Message:
    nothing: dict[str, Any] = {
        "rebalance_timeout_ms": -1,
        "topology": None,
        "active_tasks": None,
        "standby_tasks": None,
        "warmup_tasks": None,
    }
    return streams(member_epoch=member_epoch, **nothing | facts)


def share(member_epoch: int = 0, /, **facts: Any) -> Message:
    given: dict[str, Any] = {
        "group_id": GROUP + "-share",
        "member_id": "m",
        "member_epoch": member_epoch,
        "subscribed_topic_names": ["t"] if member_epoch == 0 else None,
    }
    return api_request("share_group_heartbeat", **given | facts)


MISTAKES: Final[Mapping[str, Any]] = {
    "member_id": "",
    "group_id": "",
    "instance_id": "",
    "rack_id": "",
    "rebalance_timeout_ms": -1,
    "topic_partitions": None,
    "subscribed_topic_names": None,
    "server_assignor": "none",
}
"""
In the order in which they are looked for.
"""
TASK: Final = [TaskIds(subtopology_id="0", partitions=[0])]
OFFSET: Final = [TaskOffset(subtopology_id="0", partition=0, offset=0)]
STREAMS_MISTAKES: Final[Sequence[Mapping[str, Any]]] = [
    {"instance_id": "", "member_id": ""},
    {"task_offsets": OFFSET},
    {"task_end_offsets": OFFSET},
    {"warmup_tasks": TASK, "member_id": ""},
    {"member_id": " ", "group_id": ""},
    {"group_id": "\n", "rack_id": ""},
    {"rack_id": "", "rebalance_timeout_ms": -1},
    {"rebalance_timeout_ms": -1, "active_tasks": TASK},
    {"active_tasks": TASK},
    {"standby_tasks": TASK},
    {"topology": None},
    {"member_epoch": -2},
    {"member_epoch": -3},
    {"warmup_tasks": None, "topology": None},
    {"active_tasks": None, "standby_tasks": None, "warmup_tasks": None},
    {"member_epoch": 1},
    {"topology": topology(part("0", ["t"], changelogs=[internal("c", 3)]))},
]


def offsets(group: str, version: int, *partitions: int) -> Message:
    """
    The offsets of partitions, or all of them, and those of a group that does not exist.
    """
    if version < 8:
        topics = [{"name": "t", "partition_indexes": partitions}] if partitions else None
        return api_request("offset_fetch", group_id=group, topics=topics)
    wanted = [{**named(UNKNOWN_ID if version >= 10 else "t"), "partition_indexes": partitions}]
    groups = [
        {"group_id": each, "topics": wanted if partitions else None} for each in (group, "nobody's")
    ]
    return api_request("offset_fetch", groups=groups)


def every(api: str, **facts: Any) -> Iterator[tuple[Message, int]]:
    """
    The same request in each of its versions.
    """
    request = api_request(api, **facts)
    for version in type(request).api.versions:
        yield request, version


def described(*groups: str, **facts: Any) -> Message:
    return api_request("describe_groups", groups=groups, **facts)


Asked = Sequence[tuple[Message, int]]
ANSWERS: Final[Mapping[str, Asked]] = {
    "offsets": [
        *((commit_request("simple", "t", {0: 5}, metadata="m"), v) for v in range(2, 10)),
        *((commit_request("simple", "t", {0: 6, 1: 5, 2: 5}), v) for v in (2, 9)),
        (commit_request("simple", "u", {0: 6}), 9),
        (commit_request("simple", "", {0: 6, 1: 7}, topic_id=UNKNOWN_ID), 10),
        *(
            (commit_request("simple", "t", {0: 5}, metadata=metadata), 9)
            for metadata in (*("m" * 4096, "m" * 4097, "ä" * 4096), "𝄞" * 2048, "𝄞" * 2048 + "m")
        ),
        (commit_request("", "t", {0: 5}), 9),
        (offsets("", 9), 9),
        (commit_request("unmade", "t", {9: 6}), 9),
        (described("unmade"), 6),
        *(
            (
                commit_request(
                    "unmade", "t", {0: 6}, generation_id_or_member_epoch=1, member_id="m"
                ),
                version,
            )
            for version in (8, 9)
        ),
        *((offsets("simple", version, 0, 1, 7), version) for version in range(1, 11)),
        *((offsets("simple", version), version) for version in range(2, 10)),
        *(
            (offset_delete_request(group, {"t": [0, 1, 2], "u": [0]}), 0)
            for group in ("simple", "nobody's")
        ),
        (offsets("simple", 9, 0, 1), 9),
    ],
    "groups of the classic protocol": [
        (commit_request("simple", "t", {0: 5}), 9),
        *every("describe_groups", groups=["simple", "nobody's", ""]),
        (described("simple", include_authorized_operations=True), 3),
        *((heartbeat_request(it, "m"), 4) for it in ("?", "")),
        *((api_request("leave_group", group_id="?", member_id="m"), version) for version in (0, 2)),
        (api_request("leave_group", group_id="?", members=[{"member_id": "m"}]), 3),
        *(
            (
                sync_request("simple", "m", protocol_type=kind, protocol_name=name, assignments=[]),
                5,
            )
            for kind in ("consumer", None)
            for name in ("range", None)
        ),
        *(
            (join_request("timed", "m", session_timeout_ms=timeout_ms), 3)
            for timeout_ms in (0, -1, 5999, 1_800_001)
        ),
        (join_request("", "m"), 3),
        (sync_request("", "m"), 3),
        (api_request("leave_group", group_id="", members=[]), 3),
        (offset_delete_request("", {}), 0),
        *((api_request("list_groups"), version) for version in range(5)),
        *(
            (api_request("list_groups", states_filter=states, types_filter=types), 5)
            for states in ([], ["STABLE", "empty"], [" Empty "], ["Dead"], ["nonsense"])
            for types in ([], ["classic"], ["CLASSIC", "share"], ["consumer"], ["nonsense"])
        ),
        *((beat(epoch, group_id="simple", instance_id="i"), 1) for epoch in (1, -1, -2)),
        (commit_request("", "t", {0: 5}), 9),
        *(
            (api_request("delete_groups", groups_names=names), 2)
            for names in (["simple"] * 2, ["?"], [""])
        ),
    ],
    "consumer groups": [
        *(
            (consumer(**{field: empty}), 1)
            for field in ("member_id", "group_id", "instance_id", "rack_id")
            for empty in EMPTY
        ),
        *((consumer(epoch, member_id="", instance_id="i"), 0) for epoch in (1, -1)),
        *((consumer(epoch, member_id="", instance_id="i"), 1) for epoch in (0, -2)),
        (consumer(rebalance_timeout_ms=-1), 1),
        (consumer(topic_partitions=None), 1),
        (
            consumer(topic_partitions=[{"topic_id": UNKNOWN_ID, "partitions": [0]}]),
            1,
        ),
        (consumer(subscribed_topic_names=None), 1),
        *((beat(epoch), 1) for epoch in (-3, -2)),
        *((consumer(**dict([*MISTAKES.items()][first:])), 1) for first in range(len(MISTAKES))),
        *(
            (consumer(epoch, server_assignor=assignor), 1)
            for epoch in (0, 1, -1)
            for assignor in ("", "Uniform", "cooperative-sticky")
        ),
        (consumer(subscribed_topic_names=None, subscribed_topic_regex="a[["), 1),
        *((beat(epoch, instance_id="i"), 1) for epoch in (1, -1, -2)),
        (consumer(group_id="static", member_id="a", instance_id="i"), 1),
        *(
            (beat(epoch, group_id="static", member_id=member, instance_id=instance), 1)
            for member, instance in (("a", "j"), ("b", "i"), ("b", None), ("a", "i"))
            for epoch in (9, -1, -2)
            if (member, instance) != ("a", "i") or epoch > 0
        ),
        *(
            (consumer(group_id="static", member_id=member, instance_id="i"), 1)
            for member in ("a", "b")
        ),
        (consumer(group_id="full", member_id="a"), 1),
        (consumer(group_id="full", member_id="b"), 1),
        (beat(5, group_id="full", member_id="b"), 1),
        (beat(9, group_id="full", member_id="a"), 1),
        (beat(-1, group_id="full", member_id="b"), 1),
    ],
    "streams groups": [
        *((streams(**facts), 0) for facts in STREAMS_MISTAKES),
        *((streams_beat(epoch), 0) for epoch in (1, -1)),
        *((streams_beat(epoch, active_tasks=[]), 0) for epoch in (1, -1)),
        (streams(member_id="a"), 0),
        (streams(member_id="b"), 0),
        (streams(member_id="a"), 0),
        (streams_beat(9, member_id="a"), 0),
        *((streams_beat(epoch, member_id="x"), 0) for epoch in (3, -1)),
        (commit_request("simple-2", "t", {0: 5}), 9),
        *((streams_beat(epoch, group_id="simple-2"), 0) for epoch in (1, -1)),
    ],
    "share groups": [
        (share(3), 1),
        (share(member_id="a"), 1),
        (share(member_id="b"), 1),
        *((share(epoch, member_id="x"), 1) for epoch in (3, -1)),
        *((share(epoch, member_id="a"), 1) for epoch in (9, -2, -3)),
        *((share(**{field: " "}), 1) for field in ("member_id", "group_id", "rack_id")),
        (share(group_id=""), 1),
        (share(member_id="c", subscribed_topic_names=None), 1),
        (share(3, group_id="no-such-group"), 1),
    ],
}


@pytest.mark.parametrize("subject", ANSWERS)
def test_answers_are_those_of_kafka(both: BothBrokers, subject: str) -> None:
    topics = api_request("create_topics", topics=TOPICS, timeout_ms=10_000)
    # Apache Kafka needs a moment until it coordinates groups.
    ready: Asked = [(described("none"), 5)]

    check_answers(
        both,
        [*ready, *ANSWERS[subject]],
        prepared_by=[(topics, 7), (coordinator_request("g"), 4)],
        own=OWN,
    )
