"""
The partitions at each user endpoint, which members are told for interactive queries.
"""

from __future__ import annotations

from barnabas.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    StreamsGroupHeartbeatResponse,
)
from tests.support.streams_groups import StreamsCoordination
from tests.support.streams_programs import part, topology

PROGRAM = topology(part("0", ["t", "u"]))


def endpoints(answer: StreamsGroupHeartbeatResponse) -> list[tuple[int, dict[str, list[int]]]]:
    assert answer.partitions_by_user_endpoint is not None
    return [
        (
            each.user_endpoint.port,
            {topic.topic: topic.partitions for topic in each.active_partitions},
        )
        for each in answer.partitions_by_user_endpoint
    ]


def at(port: int) -> Endpoint:
    return Endpoint(host="h", port=port)


def test_members_are_told_the_endpoints_of_partitions() -> None:
    # A topic with fewer partitions than tasks has only its own partitions.
    c = StreamsCoordination({"t": 3, "u": 1})

    first = c.enter("a", PROGRAM, user_endpoint=at(1))
    # The epoch of a new group is not kept.
    assert 0 == first.endpoint_information_epoch
    assert [(1, {"t": [0, 1, 2], "u": [0]})] == endpoints(first)

    second = c.enter("b", PROGRAM, user_endpoint=at(2))
    assert 1 == second.endpoint_information_epoch
    assert [(1, {"t": [0, 1, 2], "u": [0]}), (2, {})] == endpoints(second)


def test_unchanged_endpoints_are_not_repeated() -> None:
    c = StreamsCoordination({"t": 2, "u": 2})
    c.enter("a", PROGRAM, user_endpoint=at(1))
    c.enter("b", PROGRAM)
    assert 0 == c.streams.endpoint_information_epoch

    told = c.beat("a", 2, endpoint_information_epoch=0)
    assert 1 == told.endpoint_information_epoch
    assert [(1, {"t": [0], "u": [0]})] == endpoints(told)
    again = c.beat("b", 3, endpoint_information_epoch=1)

    assert again.partitions_by_user_endpoint is None


def test_endpoint_without_tasks_has_no_partitions() -> None:
    # Kafka refuses the heartbeat.
    c = StreamsCoordination()

    assert [(1, {})] == endpoints(c.enter("a", PROGRAM, user_endpoint=at(1)))
