"""
Requests of share groups that are unusual, beside Apache Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from tests.interop.test_share_coordinator import SETTINGS as OF_STATES
from tests.interop.test_share_coordinator import until_ready
from tests.interop.test_share_fetch import plain
from tests.support.both_brokers import BothBrokers
from tests.support.config_requests import GROUP, SET, change
from tests.support.share_client import Member, ShareClient

pytestmark = [pytest.mark.interop, pytest.mark.prove]

SETTINGS = OF_STATES
WAIT_MS = 3000
SHORT_WAIT_MS = 500
UNKNOWN = UUID(int=99)
Case = Callable[[ShareClient], Awaitable[Any]]


async def uninitialized(client: ShareClient) -> Any:
    return await client.share_fetch(Member("nobody"), max_wait_ms=WAIT_MS)


async def unknown_topic(client: ShareClient) -> Any:
    """
    Of which something is acknowledged. A fetch from one fails in Kafka as a whole.
    """
    await client.initialize("unknown", 0)
    member = Member("unknown")
    await client.share_fetch(member, max_wait_ms=WAIT_MS)
    other = ShareClient(client.client, "?", UNKNOWN)
    return [
        await other.share_acknowledge(member, [(0, 0, [1])]),
        await other.share_acknowledge(member, [(0, 0, [])]),
        await client.share_acknowledge(member, [(0, 0, [1])], partition=9),
        await client.share_acknowledge(member, [], partition=1),
        await client.share_acknowledge(member, [(0, 0, [1])], partition=1),
    ]


async def epochs(client: ShareClient) -> Any:
    await client.initialize("epochs", 0)
    member = Member("epochs")
    answers = [await client.share_fetch(member, epoch=epoch) for epoch in (1, -1, -2, 5)]
    answers.append(await client.share_fetch(member, [(0, 0, [1])], epoch=0))
    first = await client.share_fetch(member, epoch=0, max_wait_ms=WAIT_MS)
    answers += [first, await client.share_fetch(member, epoch=0)]
    answers += [await client.share_fetch(member, epoch=epoch) for epoch in (2, 1, 1, 2)]
    answers += [
        await client.share_acknowledge(member, [(0, 0, [2])], epoch=epoch)
        for epoch in (0, 4, 3, -1)
    ]
    return answers


async def amounts(client: ShareClient) -> Any:
    """
    Nothing, and less than that.
    """
    await client.initialize("amounts", 0)
    member = Member("amounts")
    await client.share_fetch(member, max_wait_ms=WAIT_MS, max_records=0)
    answers = []
    cases: tuple[dict[str, Any], ...] = (
        {"max_records": 0},
        {"max_records": -1},
        {"max_bytes": 0},
        {"max_bytes": 1, "max_records": 1},
        {"min_bytes": 0, "max_records": 1},
        {"share_acquire_mode": 2},
        {"share_acquire_mode": 1, "max_records": 2, "batch_size": 0},
        {"max_wait_ms": -1, "max_records": 1},
    )
    for asked in cases:
        # Kafka may still hold the partition for the request before.
        values = {"max_wait_ms": SHORT_WAIT_MS, **asked}
        answers.append(await client.share_fetch(member, partitions=[], **values))
    return answers


async def renewals(client: ShareClient) -> Any:
    await client.initialize("renewals", 0)
    member = Member("renewals")
    await client.share_fetch(member, max_wait_ms=WAIT_MS, max_records=1)
    names = ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
    nothing: dict[str, Any] = dict.fromkeys(names, 0)
    return [
        *[
            await client.share_fetch(
                member, [(0, 0, [4])], is_renew_ack=True, **{**nothing, name: 1}, epoch=1
            )
            for name in names
        ],
        await client.share_fetch(member, [(0, 0, [4])], is_renew_ack=True, epoch=1, **nothing),
        await client.share_fetch(member, [(0, 0, [4])], **nothing),
        await client.share_fetch(member, [(0, 0, [1])], epoch=99, is_renew_ack=True),
        await client.share_acknowledge(member, [(0, 0, [4])]),
        await client.share_acknowledge(member, [(0, 0, [3])], version=1),
        await client.share_acknowledge(member, [(1, 1, [1]), (0, 0, [1])]),
        await client.share_acknowledge(member, [(0, 0, [4])], version=1),
    ]


async def members(client: ShareClient) -> Any:
    answers = []
    for member in (Member("g", ""), Member("g", "m" * 37), Member("g", None), Member(None)):
        answers.append(await client.share_fetch(member))
        answers.append(await client.share_acknowledge(member, [(0, 0, [1])]))
    return answers


async def by_duration(client: ShareClient, group: str, duration: str) -> Any:
    reset = ("share.auto.offset.reset", SET, f"by_duration:{duration}")
    await client.client.ask(change(GROUP, group, reset), 1)
    await client.initialize(group)
    # Kafka takes a moment until a config counts.
    await asyncio.sleep(1)
    member = Member(group)
    first = await client.share_fetch(member, max_wait_ms=WAIT_MS, max_records=1)
    return [first, await client.share_fetch(member, partitions=[], max_wait_ms=WAIT_MS)]


async def described(client: ShareClient) -> Any:
    """
    Also a group that nobody has, a partition without a state, and a topic that is not there.
    """
    await client.initialize("described", 2)
    await client.initialize("described", -1, partition=1)
    await client.write("described", [(2, 3, 2, 1)], start_offset=2, delivery_complete_count=2)
    topics = [
        DescribeShareGroupOffsetsRequestTopic(topic_name=client.topic, partitions=[0, 1, 2]),
        DescribeShareGroupOffsetsRequestTopic(topic_name="missing", partitions=[0]),
    ]
    groups = [
        DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=each)
        for group in ("described", "nobody", "")
        for each in (topics, [])
    ]
    answers = []
    for version in (0, 1):
        request = DescribeShareGroupOffsetsRequest(groups=groups)
        answers.append(await client.client.ask(request, version))
    return answers


CASES: dict[str, Case] = {
    "uninitialized": uninitialized,
    "unknown topic": unknown_topic,
    "epochs": epochs,
    "amounts": amounts,
    "renewals": renewals,
    "members": members,
    "all records are old": lambda client: by_duration(client, "old", "PT1S"),
    "some records are young": lambda client: by_duration(client, "young", "P9999D"),
    "described": described,
}


@pytest.mark.parametrize("name", CASES)
async def test_unusual_share_request_is_answered_as_in_kafka(both: BothBrokers, name: str) -> None:
    answers = []
    for broker in both:
        topic = name.replace(" ", "-")
        client = await ShareClient.of(broker.port, topic, 3)
        await until_ready(client)
        await client.produce(*[[b"v"]] * 5)
        found = await CASES[name](client)
        answers.append([plain(each) for each in (found if isinstance(found, list) else [found])])
        await client.close()
    kafkas, ours = answers

    assert kafkas == ours
