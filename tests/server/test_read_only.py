"""
A read-only broker serves the log directories of a broker without changing a byte.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas.coordination.security.acl.permissions import READ_TOPIC
from barnabas.coordination.transactions.ending import end
from barnabas.protocol import apis
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.records.batch import batches, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.requests.read_only import OF_MEMBERS, READS
from barnabas.server.requests.registry import HANDLERS
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.acls import AUTHORIZER, allow_only, create_topics
from tests.support.authorization_requests import DOOMED, MAKERS, OPEN, OTHER, Ids
from tests.support.group_requests import (
    commit_request,
    committed_request,
    coordinator_request,
    join_request,
)
from tests.support.refusals import codes
from tests.support.server import (
    DATA,
    START_MS,
    TestBroker,
    batch,
    broker_config,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
    until,
)
from tests.support.share_client import Member, ShareClient
from tests.support.transactional_client import GROUP, ID, SECOND, TOPIC, Client, prepare
from tests.support.wire_client import Disconnected

READ_ONLY: Final = {"barnabas_read_only": "true"}
SMALL: Final = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
YEAR_MS: Final = 365 * 86_400_000
REFUSED: Final = frozenset(
    api.key
    for api in (
        apis.PRODUCE,
        apis.INIT_PRODUCER_ID,
        apis.ADD_PARTITIONS_TO_TXN,
        apis.ADD_OFFSETS_TO_TXN,
        apis.TXN_OFFSET_COMMIT,
        apis.END_TXN,
        apis.WRITE_TXN_MARKERS,
        apis.CREATE_TOPICS,
        apis.CREATE_PARTITIONS,
        apis.DELETE_TOPICS,
        apis.DELETE_RECORDS,
        apis.DELETE_GROUPS,
        apis.OFFSET_DELETE,
        apis.STREAMS_GROUP_HEARTBEAT,
        apis.ALTER_SHARE_GROUP_OFFSETS,
        apis.DELETE_SHARE_GROUP_OFFSETS,
        apis.INITIALIZE_SHARE_GROUP_STATE,
        apis.READ_SHARE_GROUP_STATE,
        apis.READ_SHARE_GROUP_STATE_SUMMARY,
        apis.WRITE_SHARE_GROUP_STATE,
        apis.DELETE_SHARE_GROUP_STATE,
        apis.ALTER_CONFIGS,
        apis.INCREMENTAL_ALTER_CONFIGS,
        apis.ALTER_REPLICA_LOG_DIRS,
        apis.ALTER_PARTITION_REASSIGNMENTS,
        apis.ALTER_CLIENT_QUOTAS,
        apis.ALTER_USER_SCRAM_CREDENTIALS,
        apis.ELECT_LEADERS,
        apis.UPDATE_FEATURES,
        apis.UNREGISTER_BROKER,
        apis.CREATE_ACLS,
        apis.DELETE_ACLS,
        apis.CREATE_DELEGATION_TOKEN,
        apis.RENEW_DELEGATION_TOKEN,
        apis.EXPIRE_DELEGATION_TOKEN,
    )
)
WITHOUT_SENTENCE: Final = (
    DeleteTopicsRequest,
    InitializeShareGroupStateRequest,
    DeleteShareGroupStateRequest,
)
"""The requests in whose answers Kafka leaves the sentence empty."""
FINAL: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def everything(files: MemoryFiles) -> tuple[object, ...]:
    content = {
        path: (bytes(node.data), files.modified_ms(path)) for path, node in files.nodes.items()
    }
    return content, set(files.directories), set(files.locked)


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@asynccontextmanager
async def written(files: MemoryFiles, ends: str = "killed", **options: str) -> Any:
    async with running(files, ManualClock(START_MS), **SMALL, **options) as broker:
        yield broker
        restore = files.kill()
    if ends == "killed":
        restore()


@asynccontextmanager
async def shown(
    files: MemoryFiles, clock: ManualClock | None = None, /, **options: str
) -> AsyncIterator[TestBroker]:
    """
    Run a read-only broker, and check that no file changes.
    """
    before = everything(files)
    given = SMALL | READ_ONLY | options
    async with running(files, clock or ManualClock(START_MS + YEAR_MS), **given) as broker:
        yield broker
        assert before == everything(files)
    assert before == everything(files)


async def values(broker: TestBroker, topic: str, partition: int = 0, **options: Any) -> list[bytes]:
    async with await broker.client() as client:
        asked = fetch_request(fetch_topic(topic, {partition: 0}), **options)
        [found] = (await client.ask(asked, 12)).responses[0].partitions
    assert 0 == found.error_code
    return [
        record.value or b""
        for each in batches(found.records or b"")
        if not each.is_control
        for record in each.records()
    ]


async def write_something(broker: TestBroker) -> None:
    await broker.create(TOPIC, 2)
    async with await broker.client() as client:
        await client.ask(coordinator_request(GROUP), 4)
        for value in ("one", "two", "three"):
            answer = await client.ask(produce_request(TOPIC, batch(value)), 9)
            assert 0 == answer.responses[0].partition_responses[0].error_code
        await client.ask(commit_request(GROUP, TOPIC, {0: 2}), 8)


async def loaded(broker: TestBroker) -> None:
    coordinators = broker.inside.coordinators
    await until(lambda: coordinators.loading == 0)


async def committed(broker: TestBroker) -> int:
    await loaded(broker)
    async with await broker.client() as client:
        [group] = (await client.ask(committed_request(GROUP, TOPIC, 0), 8)).groups
    offset: int = group.topics[0].partitions[0].committed_offset
    return offset


# Requests.


def test_every_api_is_readonly_or_for_members_or_refused() -> None:
    assert set(HANDLERS) == READS | OF_MEMBERS | REFUSED
    assert not READS & REFUSED
    assert not OF_MEMBERS & (READS | REFUSED)
    assert REFUSED <= {request.api.key for request in MAKERS} | {
        apis.RENEW_DELEGATION_TOKEN.key,  # which nobody gets that has no token
        apis.EXPIRE_DELEGATION_TOKEN.key,
    }


async def furnished(files: MemoryFiles) -> Ids:
    async with written(files) as broker:
        for name in (OPEN, OTHER, DOOMED):
            await broker.create(name)
        async with await broker.client() as client:
            for group in (OPEN, OTHER):
                await client.ask(coordinator_request(group), 4)
                await client.ask(commit_request(group, OPEN, {0: 1}), 8)
                await client.ask(coordinator_request(group, key_type=1), 4)
                begin = InitProducerIdRequest(transactional_id=group, transaction_timeout_ms=60_000)
                assert 0 == (await client.ask(begin, 4)).error_code
        return {topic.name: topic.id for topic in broker.inside.topics}


def ends_of(broker: TestBroker) -> dict[str, int]:
    ends = {str(each.log.topic_partition): each.log.log_end_offset for each in broker.partitions}
    return {**ends, "metadata": broker.inside.controller.log.end_offset}


@pytest.mark.parametrize(
    "request_type",
    [
        pytest.param(request, id=request.__name__.removesuffix("Request"))
        for request in MAKERS
        if request.api.key in REFUSED
    ],
)
async def test_requests_that_would_change_a_readonly_cluster_are_refused(
    files: MemoryFiles, request_type: type[Message]
) -> None:
    """
    In every version, with codes that clients do not retry and with a reason where the response has
    a field for one. Nothing changes in memory either.
    """
    ids = await furnished(files)
    async with shown(files) as broker, await broker.client() as client:
        before = ends_of(broker)
        for version in request_type.api.versions:
            for asked in MAKERS[request_type](version, ids):
                answer = await client.ask(asked, version)

                found = set(codes(answer, version))
                assert found & FINAL, answer
                assert found <= {*FINAL, ErrorCode.NONE}
        if "error_message=" in repr(answer) and request_type not in WITHOUT_SENTENCE:
            assert "read-only" in repr(answer)
        assert before == ends_of(broker)


async def test_producer_with_acks_0_is_disconnected(files: MemoryFiles) -> None:
    async with written(files) as broker:
        await write_something(broker)
    async with shown(files) as broker, await broker.client() as client:
        client.send(produce_request(TOPIC, batch("no"), acks=0), version=9)

        with pytest.raises(Disconnected):
            await client.ask(MetadataRequest(topics=[]), 9)


async def test_unknown_topic_is_not_created_by_a_readonly_broker(files: MemoryFiles) -> None:
    async with written(files) as broker:
        await write_something(broker)
    automatic = {"auto_create_topics_enable": "true"}
    async with shown(files, **automatic) as broker, await broker.client() as client:
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True
        )
        [topic] = (await client.ask(asked, 9)).topics

    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == topic.error_code


# What is shown.


@pytest.mark.parametrize("ends", ["stopped", "killed"])
async def test_readonly_broker_serves_records_and_offsets_without_changing_a_byte(
    files: MemoryFiles, ends: str
) -> None:
    async with written(files, ends) as broker:
        await write_something(broker)
    async with shown(files) as broker:
        assert [b"one", b"two", b"three"] == await values(broker, TOPIC)
        assert [] == await values(broker, TOPIC, 1)
        assert 2 == await committed(broker)


async def test_readonly_broker_takes_node_and_cluster_id_from_the_directory(
    files: MemoryFiles,
) -> None:
    async with written(files, node_id="7", barnabas_cluster_id="AAAAAAAAAAAAAAAAAAAAAQ") as broker:
        await write_something(broker)
    other = {"barnabas_cluster_id": "BBBBBBBBBBBBBBBBBBBBBQ"}
    async with shown(files, **other) as broker, await broker.client() as client:
        answer = await client.ask(MetadataRequest(topics=None), 9)

    assert (7, "AAAAAAAAAAAAAAAAAAAAAQ") == (answer.controller_id, answer.cluster_id)
    assert [7] == [each.node_id for each in answer.brokers]


async def test_group_members_and_their_commits_stay_in_memory(files: MemoryFiles) -> None:
    async with written(files) as broker:
        await write_something(broker)
    async with shown(files) as broker:
        await loaded(broker)
        async with await broker.client() as client:
            joined = await client.ask(join_request("new"), 3)
            assert ErrorCode.NONE == joined.error_code
            await client.ask(commit_request(GROUP, TOPIC, {0: 3}), 8)
        assert 3 == await committed(broker)
    async with shown(files) as broker:
        assert 2 == await committed(broker)


async def test_share_groups_work_in_memory(files: MemoryFiles) -> None:
    one_partition = {"share_coordinator_state_topic_num_partitions": "1"}
    async with written(files, **one_partition) as broker:
        client = await ShareClient.of(broker.port, TOPIC)
        assert 0 == (await client.initialize(GROUP, 0)).error_code
        await client.produce([b"a", b"b"])
        await client.close()
    for _ in range(2):
        async with shown(files, **one_partition) as broker:
            await loaded(broker)
            client = await ShareClient.of(broker.port, TOPIC)
            member = Member(GROUP)
            answer = await client.share_fetch(member, max_wait_ms=3_600_000)
            assert ErrorCode.NONE == answer.error_code
            [found] = answer.responses[0].partitions
            assert [(0, 1)] == [
                (each.first_offset, each.last_offset) for each in found.acquired_records
            ]
            accepted = await client.share_acknowledge(member, [(0, 1, [1])])
            assert ErrorCode.NONE == accepted.responses[0].partitions[0].error_code
            await client.close()


async def test_memory_for_changes_of_members_is_limited_by_an_option(
    files: MemoryFiles,
) -> None:
    async with written(files) as broker:
        await write_something(broker)
    small = {"barnabas_max_coordinator_bytes": "20000"}
    async with shown(files, **small) as broker, await broker.client() as client:
        assert 2 == await committed(broker)
        found = []
        for offset in range(200):
            answer = await client.ask(commit_request(GROUP, TOPIC, {0: offset}), 8)
            found.append(answer.topics[0].partitions[0].error_code)
        [offsets] = broker.inside.partitions.of_topic("__consumer_offsets")

        assert [ErrorCode.NONE, ErrorCode.GROUP_AUTHORIZATION_FAILED] == sorted(set(found))
        assert 20_000 < offsets.bytes_in < 20_300
        assert [b"one", b"two", b"three"] == await values(broker, TOPIC)


async def test_acls_of_the_directory_apply_with_an_authorizer(
    files: MemoryFiles,
) -> None:
    async with written(files, **AUTHORIZER) as broker:
        await create_topics(broker, {OPEN: 1, OTHER: 1})
        await allow_only(broker, ((READ_TOPIC, OPEN),))
    async with shown(files, **AUTHORIZER) as broker, await broker.client() as client:
        asked = fetch_request(fetch_topic(OPEN, {0: 0}), fetch_topic(OTHER, {0: 0}))
        answer = await client.ask(asked, 12)

    found = {each.topic: each.partitions[0].error_code for each in answer.responses}
    assert {OPEN: ErrorCode.NONE, OTHER: ErrorCode.TOPIC_AUTHORIZATION_FAILED} == found


async def test_groups_work_without_an_offsets_topic(files: MemoryFiles) -> None:
    async with written(files) as broker:
        await broker.create(TOPIC)
    async with shown(files) as broker, await broker.client() as client:
        [found] = (await client.ask(coordinator_request(GROUP), 4)).coordinators
        answer = await client.ask(commit_request(GROUP, TOPIC, {0: 1}), 8)

    assert (0, 0) == (found.error_code, answer.topics[0].partitions[0].error_code)


async def test_leader_epoch_of_the_directory_is_kept(files: MemoryFiles) -> None:
    async with written(files) as broker:
        await write_something(broker)
        epoch = broker.inside.topics.get(TOPIC).partitions[0].leader_epoch
    async with shown(files) as broker:
        topic = broker.inside.topics.get(TOPIC)
        assert topic is not None
        assert epoch == topic.partitions[0].leader_epoch


# What time does.


async def test_nothing_expires_in_a_readonly_broker(files: MemoryFiles) -> None:
    """
    Records beyond their retention, superseded keys, and offsets of an empty group.
    """
    async with written(files) as broker:
        await write_something(broker)
        await broker.create("old", retention_ms="1", segment_ms="1")
        await broker.create("keys", cleanup_policy="compact", max_compaction_lag_ms="1")
        async with await broker.client() as client:
            for topic in ("old", "keys"):
                for value in (b"a", b"b"):
                    records = bytes(build_batch([SimpleRecord(START_MS, b"key", value)]))
                    await client.ask(produce_request(topic, records), 9)
    clock = ManualClock(START_MS + YEAR_MS)
    async with shown(files, clock) as broker:
        starts = ends_of(broker)
        await clock.pass_time(3 * 86_400)

        assert [b"a", b"b"] == await values(broker, "old")
        assert [b"a", b"b"] == await values(broker, "keys")
        assert 2 == await committed(broker)
        assert starts == ends_of(broker)
        assert 0 == broker.logs.deleted_segments


@pytest.mark.parametrize(("state", "timeout_ms"), [("Ongoing", 1000), ("PrepareCommit", 60_000)])
async def test_transactions_stay_unchanged_in_a_readonly_broker(
    files: MemoryFiles, state: str, timeout_ms: int
) -> None:
    """
    A transaction open beyond its timeout, and one that a coordinator was completing.
    """
    async with written(files) as broker:
        await prepare(broker, 2)
        async with await broker.client() as wire:
            producer = Client(wire, SECOND)
            await producer.init(timeout_ms=timeout_ms)
            assert ErrorCode.NONE is await producer.produce("open")
        if state == "PrepareCommit":
            shard, current = broker.inside.transactions._find(ID)
            shard.claim(ID)
            prepared = end(current, producer.producer, commit=True, now_ms=START_MS)
            await shard.update(ID, prepared)
    clock = ManualClock(START_MS + YEAR_MS)
    async with shown(files, clock) as broker:
        await clock.pass_time(86_400)

        assert state == await state_of_transaction(broker)
        assert [] == await values(broker, TOPIC, isolation_level=1)
        assert [b"open"] == await values(broker, TOPIC)


async def state_of_transaction(broker: TestBroker) -> str:
    async with await broker.client() as client:
        asked = DescribeTransactionsRequest(transactional_ids=[ID])
        [found] = (await client.ask(asked, 0)).transaction_states
    assert 0 == found.error_code
    state: str = found.transaction_state
    return state


async def test_directory_of_a_running_broker_is_shown_as_it_was(files: MemoryFiles) -> None:
    async with running(files, ManualClock(START_MS), **SMALL) as writer:
        await write_something(writer)
        before = everything(files)
        async with running(files, ManualClock(START_MS), **SMALL, **READ_ONLY) as shown:
            assert [b"one", b"two", b"three"] == await values(shown, TOPIC)
            assert before == everything(files)
            async with await writer.client() as client:
                await client.ask(produce_request(TOPIC, batch("four")), 9)

            assert [b"one", b"two", b"three"] == await values(shown, TOPIC)
        assert [b"one", b"two", b"three", b"four"] == await values(writer, TOPIC)


# What cannot be shown.


async def test_unreadable_segment_fails_alone(files: MemoryFiles) -> None:
    """
    A running broker may have deleted the segment; the rest of the directory stays online.
    """
    async with written(files) as broker:
        await write_something(broker)
        await broker.create("other")
        async with await broker.client() as client:
            await client.ask(produce_request("other", batch("there")), 9)
    async with running(files, ManualClock(START_MS), **SMALL, **READ_ONLY) as broker:
        files.remove(DATA / f"{TOPIC}-0" / "00000000000000000000.log")
        broker.files._sources._open.clear()  # type: ignore[attr-defined]  # as after many others
        async with await broker.client() as client:
            asked = fetch_request(fetch_topic(TOPIC, {0: 0}))
            [found] = (await client.ask(asked, 12)).responses[0].partitions

        assert ErrorCode.KAFKA_STORAGE_ERROR == found.error_code
        assert [b"there"] == await values(broker, "other")
        assert () == broker.logs.directories.offline


async def test_partition_without_a_log_in_the_directory_has_no_leader(files: MemoryFiles) -> None:
    """
    A copy may lack the log. An empty log would pretend that there are no records.
    """
    async with written(files) as broker:
        await write_something(broker)
    files.remove_tree(DATA / f"{TOPIC}-1")
    async with shown(files) as broker, await broker.client() as client:
        [topic] = (await client.ask(MetadataRequest(topics=None), 9)).topics[:1]

    led = {each.partition_index: each.leader_id for each in topic.partitions}
    assert {0: 1, 1: -1} == led


async def refusal(files: MemoryFiles, **options: str) -> str:
    before = everything(files)
    broker = TestBroker(
        broker_config(**READ_ONLY, **options), files=files, clock=ManualClock(START_MS)
    )
    with pytest.raises(InvalidLogDirectory) as caught:
        await broker.start()
    await broker.stop()
    assert before == everything(files)
    return str(caught.value)


async def test_directory_without_logs_is_refused(files: MemoryFiles) -> None:
    assert "There is no /data" in await refusal(files)

    files.open(Path("/file")).close()
    assert "/file is no directory" in await refusal(files, log_dirs="/file")

    files.make_directory(DATA)
    assert "never formatted. Without --read-only" in await refusal(files)

    async with written(files) as broker:
        await write_something(broker)
    assert "directory above" in await refusal(files, log_dirs=f"/data/{TOPIC}-0")

    for path in [path for path in files.nodes if "__cluster_metadata-0" in path.parts]:
        files.remove(path)
    files.remove_tree(DATA / "__cluster_metadata-0")
    assert "metadata.log.dir" in await refusal(files)


async def test_log_says_that_the_broker_is_readonly(
    files: MemoryFiles, caplog: pytest.LogCaptureFixture
) -> None:
    async with written(files) as broker:
        await write_something(broker)
    caplog.set_level(logging.INFO)
    async with shown(files):
        assert "read-only" in caplog.text
    caplog.clear()
    files.lock(DATA / ".lock")
    async with running(files, ManualClock(START_MS), **SMALL, **READ_ONLY):
        assert "A broker runs on /data" in caplog.text
