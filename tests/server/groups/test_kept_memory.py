"""
The memory that groups and their offsets take is bounded, over all groups of a broker.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.offsets.offsets import OffsetStore
from barnabas.coordination.groups.records import OffsetRecord, encode_record
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.records.batch import NO_PRODUCER_ID
from barnabas.server.config import BrokerConfig
from tests.support.build import api_request
from tests.support.consumer_groups import ConsumerCoordination
from tests.support.coordination import Coordination
from tests.support.group_requests import commit_request, coordinator_request
from tests.support.limits import stated
from tests.support.server import running
from tests.support.traced import memory_taken_by

NOT_NOW = ErrorCode.COORDINATOR_NOT_AVAILABLE


def offset(value: int | None, group_id: str, partition: int, metadata: str = "") -> OffsetRecord:
    if value is None:
        return OffsetRecord(group_id, "t", partition, None)
    committed = OffsetCommitValue(
        offset=value,
        leader_epoch=5,
        metadata=metadata,
        commit_timestamp=2**41,
        expire_timestamp=-1,
        topic_id=uuid4(),
    )
    return OffsetRecord(group_id, "t", partition, committed)


def committed(c: Coordination, group_id: str) -> dict[int, int]:
    partitions = c.state.offsets.committed.of_group(group_id).get("t", {})
    return {partition: known.offset for partition, known in partitions.items()}


def filled(c: Coordination) -> list[str]:
    """
    Commit for one group after the other, until there is no room; return those that have offsets.
    """
    c.memory.kept.limit_bytes = 100_000
    group_ids = [f"g{number}" for number in range(100)]
    for group_id in group_ids:
        c.commit_offsets({("t", 0): 1}, group_id=group_id)
    return [group_id for group_id in group_ids if committed(c, group_id)]


def test_memory_limit_of_groups_matches_the_documentation() -> None:
    assert stated("groups-and-offsets") == BrokerConfig().barnabas_max_coordinator_bytes
    assert stated("groups-and-offsets") == Coordination().memory.kept.limit_bytes


def test_offsets_beyond_the_memory_budget_are_refused() -> None:
    c = Coordination()

    taken = filled(c)

    assert 20 < len(taken) < 100
    assert 80_000 < c.memory.kept.used_bytes <= 100_000
    assert len(taken) == len(c.state.groups)


def test_known_offsets_can_be_updated_when_the_memory_is_exhausted() -> None:
    c = Coordination()
    taken = filled(c)

    for group_id in taken:
        c.commit_offsets({("t", 0): 2, ("t", 1): 2}, group_id=group_id)
        c.commit_offsets({("t", 0): 3}, group_id=group_id)

    # The first commit of each was refused as a whole: there was no room for partition 1.
    assert [{0: 3}] * len(taken) == [committed(c, group_id) for group_id in taken]


def test_group_with_all_offsets_refused_is_not_created_beyond_the_memory_budget() -> None:
    c = Coordination()
    filled(c)

    with pytest.raises(Exception, match="Groups and committed offsets have taken"):
        c.commit_offsets({("t", 0): 1}, group_id="other", metadata="m" * 5000)

    assert c.state.groups.get("other") is None


def test_member_of_a_new_group_cannot_join_beyond_the_memory_budget() -> None:
    c = Coordination()
    taken = filled(c)
    c.memory.kept.limit_bytes = c.memory.kept.used_bytes

    assert NOT_NOW == c.join(group_id="other", version=3).now.error_code
    assert c.state.groups.get("other") is None
    assert c.join(group_id=taken[0], version=3).is_parked


def test_new_protocol_group_is_not_created_beyond_the_memory_budget() -> None:
    c = ConsumerCoordination({"t": 1})
    taken = filled(c)
    c.memory.kept.limit_bytes = c.memory.kept.used_bytes

    c.enter("m", ["t"], group_id="other")
    c.enter("m", ["t"], group_id=taken[0])

    assert c.state.groups.get("other") is None
    assert ["m"] == [*c.state.groups.find(taken[0], ConsumerGroup).members]


def test_memory_of_expired_offsets_is_available_again() -> None:
    c = Coordination()
    taken = filled(c)

    c.advance(8 * 24 * 3600 * 1000)
    c.write_all(c.state.deleting.expire(c.now_ms))

    assert (0, 0) == (len(c.state.groups), c.memory.kept.used_bytes)
    assert taken == filled(c)


def test_loaded_offsets_count_but_are_never_refused() -> None:
    c = Coordination()
    taken = filled(c)
    used_bytes = c.memory.kept.used_bytes
    c.memory.kept.limit_bytes = 1

    c.restart()
    gc.collect()

    assert [{0: 1}] * len(taken) == [committed(c, group_id) for group_id in taken]
    assert used_bytes == c.memory.kept.used_bytes


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "delete", "commit", "abort"]),
        st.sampled_from([NO_PRODUCER_ID, 7, 8]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 2),
        st.sampled_from(["", "some text"]),
    ),
    max_size=40,
)


@given(EVENTS)
def test_memory_of_deleted_offsets_is_released_completely(
    events: list[tuple[str, int, str, int, str]],
) -> None:
    # ``growth`` also predicts what a record that finds nothing takes.
    memory = MemoryBudget("Offsets", 2**30)
    store = OffsetStore(memory)
    for at, (what, producer_id, group_id, partition, metadata) in enumerate(events):
        if what in {"commit", "abort"}:
            store.end_transaction(producer_id, committed=what == "commit")
            continue
        if what == "delete":
            store.apply(offset(None, group_id, partition), at, NO_PRODUCER_ID)
            continue
        made = offset(at, group_id, partition, metadata)
        is_new = not store.is_known(group_id, "t", partition)
        before, growth = memory.used_bytes, store.growth([made], producer_id)
        store.apply(made, at, producer_id)
        if is_new:
            assert memory.used_bytes - before <= growth
    for producer_id in (7, 8):
        store.end_transaction(producer_id, committed=True)
    for group_id in ("a", "b"):
        for partition in range(3):
            store.apply(offset(None, group_id, partition), 10**6, NO_PRODUCER_ID)

    assert not store.committed
    assert 0 == memory.used_bytes


@pytest.mark.parametrize(
    ("name", "where", "producer_of"),
    [
        ("one group", lambda n: ("g", n), lambda n: NO_PRODUCER_ID),
        ("own groups", lambda n: (f"group{n}", 0), lambda n: NO_PRODUCER_ID),
        ("one transaction", lambda n: ("g", n), lambda n: 7),
        ("transactions", lambda n: ("g", n), lambda n: n),
    ],
)
def test_counted_memory_is_within_a_fifth_of_the_actual(
    name: str, where: Callable[[int], tuple[str, int]], producer_of: Callable[[int], int]
) -> None:
    count = 3000
    c = Coordination()
    encoded = [encode_record(offset(2**33 + n, *where(n), metadata="m" * 50)) for n in range(count)]

    def replay() -> None:
        for number, (key, value) in enumerate(encoded):
            c.state.replay_record(key, value, 1000 + number, producer_of(number))

    taken = memory_taken_by(replay)

    assert taken * 0.8 < c.memory.kept.used_bytes < taken * 1.2, taken / count


async def test_clients_beyond_the_memory_budget_are_told_to_retry() -> None:
    # Altering the offsets of a share group creates the group.
    async with (
        running(
            offsets_topic_num_partitions="1", barnabas_max_coordinator_bytes="100000"
        ) as broker,
        await broker.client() as client,
    ):
        await broker.create("t")
        await client.ask(coordinator_request("g"), 4)

        async def commit(group_id: str) -> ErrorCode:
            answer = await client.ask(commit_request(group_id, "t", {0: 1}), 9)
            return ErrorCode(answer.topics[0].partitions[0].error_code)

        codes = [await commit(f"g{number}") for number in range(100)]
        topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}]
        asked = api_request("alter_share_group_offsets", group_id="share", topics=topics)
        altered = await client.ask(asked, 0)

        assert {ErrorCode.NONE, NOT_NOW} == {*codes}
        assert NOT_NOW == altered.error_code
        assert ErrorCode.NONE == await commit("g0")
