"""
Lives of a group, each with something of everything that its protocol has.

They do the same whenever they are run, so that what they do can be numbered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from tests.support.build import api_request
from tests.support.config_requests import grow
from tests.support.coordination import GROUP
from tests.support.crash.group_checks import SESSION_S, acquired_in
from tests.support.crash.group_clients import (
    LEAVING_FOR_A_WHILE,
    ClassicClient,
    ConsumerClient,
    GroupClient,
    ShareGroupClient,
    StreamsClient,
    code_of_commit,
)
from tests.support.crash.groups import GroupLife
from tests.support.group_requests import commit_request, offset_delete_request
from tests.support.share_client import Acknowledged, Member, ShareClient

ACCEPT, RELEASE, REJECT = 1, 2, 3
OTHER_GROUP: Final = "other"
LONG: Final = "m" * 3000
"""
A text after which the log has another segment.
"""
UPKEEP_S: Final = 16.0
"""
In which the logs are cleaned or pruned, and no session ends.
"""


async def consumers(life: GroupLife) -> None:
    """
    A consumer group with names, a pattern and a static member, its offsets, and its end.
    """
    wire = life.wire
    a, b = ConsumerClient("a", "t"), ConsumerClient("b", "t", "u")
    await life.join(a)
    assert ErrorCode.NONE is await life.see(a.commit(wire, "t", {0: 5, 1: 6}))
    await life.join(b)
    await life.settle()
    assert ErrorCode.NONE is await life.see(b.commit(wire, "u", {0: 7}))

    c = ConsumerClient("c", prefix="u")
    await life.join(c)
    await life.settle()
    static = ConsumerClient("static", "t", instance_id="i")
    await life.join(static)
    await life.settle()
    await life.pass_time(UPKEEP_S)

    await life.end(static, static.leave(wire, LEAVING_FOR_A_WHILE))
    await life.settle()
    await life.join(ConsumerClient("static again", "t", instance_id="i"))
    await life.settle()

    await grow_topic(life, "u", 3)
    await life.settle()
    await life.end(c)
    await life.settle()
    await lose(life, a)
    assert ErrorCode.NONE is await life.see(b.commit(wire, "u", {0: 8, 2: 9}))

    await leave_all(life)
    await delete_offsets(life, "t", 1)
    await life.pass_time(UPKEEP_S)
    await delete_group(life)
    await life.join(ConsumerClient("d", "u"))
    await life.settle()
    await leave_all(life)
    await leave_nothing(life, rounds=2)


async def migrations(life: GroupLife) -> None:
    """
    A classic group that becomes a consumer group, and a classic one again, twice.
    """
    wire = life.wire
    old = ClassicClient("t")
    await life.join(old)
    assert ErrorCode.NONE is await life.see(old.commit(wire, "t", {0: 5}))

    new = ConsumerClient("new", "t")
    await life.join(new)
    await life.settle()
    assert ErrorCode.NONE is await life.see(new.commit(wire, "t", {1: 6}))
    await life.end(new)
    await life.settle()
    await life.pass_time(2.0)

    again = ConsumerClient("again", "t")
    await life.join(again)
    await life.settle()
    await life.end(old)
    await life.settle()
    assert ErrorCode.NONE is await life.see(again.commit(wire, "t", {0: 7, 1: 8}))
    await life.end(again)
    await delete_group(life)

    # An empty classic group, which is replaced.
    old = ClassicClient("t")
    await life.join(old)
    await life.end(old)
    await life.join(ConsumerClient("last", "t"))
    await life.settle()
    await life.pass_time(UPKEEP_S)


async def shares(life: GroupLife) -> None:
    """
    A share group and what becomes of its records: accepted, released, rejected, and not answered
    for; its states are altered, deleted and begun again.
    """
    wire = life.wire
    a, b = ShareGroupClient("a", "t"), ShareGroupClient("b", "t", "u")
    await life.join(a)
    await life.settle()
    records = ShareClient(wire, "t", await life.broker.topic_id("t"))
    first, second = Member(GROUP, "a"), Member(GROUP, "b")
    await fetch(life, records, first)  # which begins at the ends of the partitions
    await produce(life, records, 6)
    await fetch(life, records, first)
    await acknowledge(life, records, first, [(0, 0, [ACCEPT])])
    await life.join(b)
    await life.settle()
    await acknowledge(life, records, first, [(1, 1, [RELEASE]), (2, 2, [REJECT])])
    await fetch(life, records, second)
    await acknowledge(life, records, second, [(1, 1, [ACCEPT])])
    await acknowledge(life, records, first, [(4, 4, [RELEASE])])
    await acknowledge(life, records, first, [(3, 3, [ACCEPT])], partition=1)
    await acknowledge(life, records, first, [(5, 5, [REJECT])], partition=1)
    await life.pass_time(UPKEEP_S)
    await life.settle()
    await life.pass_time(UPKEEP_S)  # the locks end
    await life.settle()
    await produce(life, records, 3)
    await fetch(life, records, second)
    await acknowledge(life, records, second, [(3, 5, [ACCEPT, RELEASE, ACCEPT])])
    await life.pass_time(UPKEEP_S)

    await grow_topic(life, "u", 2)
    await life.settle()
    await life.end(a)
    await life.settle()
    await leave_all(life)
    life.deliveries.clear()
    await alter_offsets(life, "t", {0: 2})
    await delete_topic(life, "u")
    await delete_share_offsets(life, "t")
    await life.join(ShareGroupClient("c", "t"))
    await life.settle()
    await life.pass_time(UPKEEP_S)
    await fetch(life, records, Member(GROUP, "c"))
    await leave_all(life)
    await delete_group(life, appends=4)
    await life.join(ShareGroupClient("d", "t"))
    await life.settle()
    await life.pass_time(UPKEEP_S)


async def streams(life: GroupLife) -> None:
    """
    A streams group with tasks and standby tasks, its offsets, and its end.
    """
    wire = life.wire
    a, b, c = StreamsClient("a"), StreamsClient("b"), StreamsClient("c")
    await life.join(a)
    await life.settle()
    await life.join(b)
    await life.settle()
    assert ErrorCode.NONE is await life.see(b.commit(wire, "t", {0: 5}))
    await life.join(c)
    await life.settle()
    await life.pass_time(UPKEEP_S)
    await life.end(b)
    await life.settle()
    await lose(life, a)
    assert ErrorCode.NONE is await life.see(c.commit(wire, "t", {1: 6}))
    await leave_all(life)
    await delete_group(life)
    await life.join(StreamsClient("d"))
    await life.settle()
    await leave_all(life)
    await leave_nothing(life, rounds=3)


# What several lives do


async def lose(life: GroupLife, client: GroupClient) -> None:
    """
    Let the session of a member end, while the others go on.
    """
    life.clients.remove(client)
    for _ in range(3):
        await life.pass_time(SESSION_S / 3)
        await life.settle()
    await life.pass_time(2.0)
    await life.settle()


async def leave_all(life: GroupLife) -> None:
    for client in tuple(life.clients):
        await life.end(client)


async def delete_group(life: GroupLife, *, appends: int = 1) -> None:
    async def delete() -> None:
        answer = await life.wire.ask(api_request("delete_groups", groups_names=[GROUP]), 2)
        assert 0 == answer.results[0].error_code, answer

    await life.see(delete(), appends=appends)


async def leave_nothing(life: GroupLife, *, rounds: int) -> None:
    """
    Delete the group, and let the cleaner remove all that was ever written of it: the records first,
    then the tombstones.
    """
    await delete_group(life)
    for number in range(rounds):
        request = commit_request(OTHER_GROUP, "t", {0: number}, metadata=LONG)
        assert ErrorCode.NONE is code_of_commit(await life.see(life.wire.ask(request, 8)))
        await life.pass_time(UPKEEP_S)


async def delete_offsets(life: GroupLife, topic: str, partition: int) -> None:
    async def delete() -> None:
        answer = await life.wire.ask(offset_delete_request(GROUP, {topic: [partition]}), 0)
        assert 0 == answer.topics[0].partitions[0].error_code, answer

    await life.see(delete())


async def grow_topic(life: GroupLife, topic: str, count: int) -> None:
    async def ask() -> None:
        answer = await life.wire.ask(grow(topic, count), 3)
        assert 0 == answer.results[0].error_code, answer

    await life.see(ask())


# Records of share groups


async def produce(life: GroupLife, records: ShareClient, count: int) -> None:
    """
    Append so many records to each partition, one in a batch.
    """
    for partition in range(2):
        await life.see(records.produce(*[[b"value"]] * count, partition=partition))


async def fetch(life: GroupLife, records: ShareClient, member: Member) -> None:
    """
    Acquire what can be acquired. Each partition may have a new leader.
    """
    answer = await life.see(records.share_fetch(member, partitions=[0, 1]), appends=2)
    assert 0 == answer.error_code, answer
    for index in range(2):
        life.deliveries.counts |= acquired_in(answer, index)


async def acknowledge(
    life: GroupLife,
    records: ShareClient,
    member: Member,
    acknowledged: Sequence[Acknowledged],
    *,
    partition: int = 0,
) -> None:
    for first, last, _ in acknowledged:
        for offset in range(first, last + 1):
            life.deliveries.ask((partition, offset))
    request = records.share_acknowledge(member, acknowledged, partition=partition)
    answer = await life.see(request)
    assert 0 == answer.error_code, answer
    assert 0 == answer.responses[0].partitions[0].error_code, answer
    for first, last, types in acknowledged:
        for offset, kind in zip(range(first, last + 1), types, strict=True):
            life.deliveries.note((partition, offset), is_done=kind != RELEASE)


async def alter_offsets(life: GroupLife, topic: str, offsets: Mapping[int, int]) -> None:
    partitions = [
        {"partition_index": index, "start_offset": offset} for index, offset in offsets.items()
    ]
    topics = [{"topic_name": topic, "partitions": partitions}]
    request = api_request("alter_share_group_offsets", group_id=GROUP, topics=topics)
    answer = await life.see(life.wire.ask(request, 0), appends=2 + len(offsets))
    assert [0] == [part.error_code for each in answer.responses for part in each.partitions]


async def delete_share_offsets(life: GroupLife, topic: str) -> None:
    topics = [{"topic_name": topic}]
    request = api_request("delete_share_group_offsets", group_id=GROUP, topics=topics)
    answer = await life.see(life.wire.ask(request, 0), appends=2 + 2)
    assert [0] == [each.error_code for each in answer.responses], answer


async def delete_topic(life: GroupLife, topic: str) -> None:
    await life.see(life.broker.delete(topic), appends=2)
