"""
What has to be true of groups whose broker starts again after a crash.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from barnabas.coordination.groups.shard_state import ShardState
from barnabas.protocol.errors import ErrorCode
from barnabas.server.groups.shard import GroupShard
from barnabas.server.share.coordinator import ShareShard
from barnabas.testing.manual_clock import ManualClock
from tests.support.consumer_groups import consumer_facts
from tests.support.coordination import GROUP, durable
from tests.support.crash.group_clients import UNKNOWN, GroupClient, known_topics
from tests.support.server import TestBroker, until
from tests.support.share_client import Member, ShareClient
from tests.support.share_groups import share_facts
from tests.support.streams_groups import streams_facts
from tests.support.wire_client import WireClient

Record: TypeAlias = tuple[int, int]
"""
A partition and an offset.
"""

TOPIC: Final = "t"
SESSION_S: Final = 46.0
"""
A little longer than the sessions of members.
"""
ROUNDS: Final = 40
"""
How often clients send a heartbeat before it is said that they never come to an end.
"""
AVAILABLE: Final = 0
UNKNOWN_START: Final = -1


class Deliveries:
    """
    What members of a share group were told of the records of one topic.
    """

    def __init__(self) -> None:
        self.counts: dict[Record, int] = {}
        """How often each was delivered, by the last fetch that has acquired it."""
        self._done: frozenset[Record] = frozenset()
        self._released: dict[Record, int] = {}

    def ask(self, record: Record) -> None:
        """
        The acknowledgement of a record is sent: it may be done with, or not yet.
        """
        self._released.pop(record, None)

    def note(self, record: Record, *, is_done: bool) -> None:
        """
        The acknowledgement of a record was answered.
        """
        if is_done:
            self._done |= {record}
        else:
            self._released[record] = self.counts[record]

    def clear(self) -> None:
        """
        Nothing is known any more: the offsets of the group are altered.
        """
        self.counts, self._done, self._released = {}, frozenset(), {}

    def copied(self) -> Deliveries:
        found = Deliveries()
        found._done, found._released = self._done, dict(self._released)
        return found

    def check(self, given: Mapping[Record, int]) -> None:
        """
        See that no record is given again that is done with, and that released ones are.
        """
        assert not self._done & set(given), "given again"
        for record, count in self._released.items():
            assert given.get(record, 0) > count, f"{record} was delivered {count} times: {given}"


# The states


async def loaded(broker: TestBroker) -> None:
    """
    Return once the coordinators have read their logs.
    """
    await until(lambda: all(shard.log.is_open for shard in shards_of(broker)))


def states_of(broker: TestBroker, classic: ShardState | None = None) -> tuple[Any, Any]:
    """
    The states of both logs, as values that do not change any more.

    Args:
        classic: a replay of the log. A classic group in a rebalance is ahead of its records, and
            only these must survive.
    """
    groups, shares = shards_of(broker)
    # Not ``state``, which would do what is due.
    return (
        _group_states(groups._state, classic or groups._state),
        {key: known.value for key, known in shares._state.known.items()},
    )


def shards_of(broker: TestBroker) -> tuple[GroupShard, ShareShard]:
    """
    The only shards of both coordinators.
    """
    assert broker.parts is not None
    coordinators = broker.parts.coordinators
    groups, shares = coordinators.groups.shards.get(0), coordinators.shares.shards.get(0)
    assert groups is not None, "the groups could not be loaded"
    assert shares is not None, "the states of share groups could not be loaded"
    return groups, shares


def _group_states(state: ShardState, replayed: ShardState) -> dict[Any, Any]:
    classic = durable(replayed)["groups"]
    found = {
        # One without records of its own is there for its offsets.
        "classic": {name: group for name, group in classic.items() if not group.is_simple},
        "offsets": durable(state)["offsets"],
        "consumer": consumer_facts(state),
        "share": share_facts(state),
        "streams": streams_facts(state),
    }
    copied: dict[Any, Any] = _copied({name: value for name, value in found.items() if value})
    return copied


def _copied(value: Any) -> Any:
    """
    A value whose dictionaries, lists and sets nobody else has; what is in them never changes.
    """
    match value:
        case dict():
            return {key: _copied(each) for key, each in value.items()}
        case list():
            return [_copied(each) for each in value]
        case set():
            return frozenset(value)
        case tuple() if not hasattr(value, "_fields"):
            return tuple(map(_copied, value))
        case _:
            return value


# What has to be true


async def check_known(
    wire: WireClient, clients: Iterable[GroupClient], *, is_as_told: bool
) -> None:
    """
    The broker knows its members by the epochs that it has told them, also a member whose last
    answer is lost. In the classic protocol such a member joins again.
    """
    for client in clients:
        if is_as_told or client.survives_lost_answers:
            code = await client.beat(wire)
            assert code not in UNKNOWN, f"{client} is told {code.name}"


async def check_going_on(
    broker: TestBroker, wire: WireClient, clock: ManualClock, clients: Sequence[GroupClient]
) -> None:
    """
    The group has soon assigned everything to the clients, to each member what no other has. Members
    without a client are gone when their sessions have ended.
    """
    topics = await known_topics(wire)
    wanted = set().union(*(client.wants(topics) for client in clients))
    for _ in range(ROUNDS):
        before = [client.knowledge for client in clients]
        are_content = True
        for client in clients:
            are_content &= await _beat(wire, clock, client)
        if not are_content or before != [client.knowledge for client in clients]:
            continue
        found = [part for client in clients for part in client.has(topics)]
        if wanted == set(found):
            is_shared = not all(client.is_exclusive for client in clients)
            assert is_shared or len(found) == len(wanted), f"assigned twice: {clients}"
            return
        await clock.pass_time(SESSION_S / 3)
    raise AssertionError(f"{wanted} are not assigned: {clients}, {states_of(broker)}")


async def check_deliveries(
    broker: TestBroker, wire: WireClient, deliveries: Deliveries | None
) -> None:
    """
    A new member of a share group is given the records that are not done with, and no other, each
    for as many times as the state says.

    Args:
        deliveries: what members were told; None if a crash may have lost it.
    """
    topic_id = await broker.topic_id(TOPIC)
    client, member = ShareClient(wire, TOPIC, topic_id), Member(GROUP, "fetching")
    given: dict[Record, int] = {}
    for (_, of_topic, index), value in states_of(broker)[1].items():
        if of_topic != topic_id or value.start_offset == UNKNOWN_START:
            continue
        partition = broker.partitions.get(TOPIC, index)
        assert partition is not None
        counts = dict.fromkeys(range(value.start_offset, partition.log.log_end_offset), 0)
        for batch in value.state_batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                if batch.delivery_state == AVAILABLE:
                    counts[offset] = batch.delivery_count
                else:
                    counts.pop(offset, None)
        expected = {(index, offset): count + 1 for offset, count in counts.items()}
        found: dict[Record, int] = {}
        for attempt in range(ROUNDS):  # Its state is read first.
            answer = await client.share_fetch(member, partitions=[index])
            found |= acquired_in(answer, index)
            if found or not expected:
                break
            await asyncio.sleep(0.001 * attempt**2)  # In another thread, if the disk is a real one.
        assert expected == found, f"{TOPIC}-{index} with {value} gives {found}, not {expected}"
        given |= found
    if deliveries is not None:
        deliveries.check(given)


def acquired_in(answer: Any, index: int) -> dict[Record, int]:
    """
    The records that a fetch has acquired in a partition, each with its count of deliveries.
    """
    return {
        (index, offset): each.delivery_count
        for topic in answer.responses
        for partition in topic.partitions
        if partition.partition_index == index
        for each in partition.acquired_records
        for offset in range(each.first_offset, each.last_offset + 1)
    }


async def _beat(wire: WireClient, clock: ManualClock, client: GroupClient) -> bool:
    """
    Send a heartbeat; return whether the client is a member afterwards. Time passes if the answer
    does not come.
    """
    task = asyncio.ensure_future(client.beat(wire))
    for _ in range(ROUNDS):
        done, _ = await asyncio.wait([task], timeout=0.2)
        if done:
            break
        await clock.pass_time(SESSION_S / 3)
    code = await task
    if code in UNKNOWN:
        client.forget()
    elif code is ErrorCode.UNRELEASED_INSTANCE_ID:
        await clock.pass_time(SESSION_S)
    else:
        assert code in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}, code
    return code is ErrorCode.NONE
