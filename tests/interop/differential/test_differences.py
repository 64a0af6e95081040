"""
Each difference of the table is there: the day that it goes away, its test fails.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.codec.schema import ZERO_UUID, replace
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    Topology,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.records.batch import batches, build_batch, seal_batch
from barnabas.protocol.records.record import Record, SimpleRecord, encode_records
from barnabas.server.requests.context import MOST_ENTRIES
from barnabas.storage.state_files.checkpoints import CLEAN_SHUTDOWN_FILE
from tests.interop.differential.known import KNOWN, LEFT_OUT
from tests.interop.differential.membership import Pause
from tests.interop.differential.recipes import Batch, Producer, Splice
from tests.interop.differential.sides import CLOSED, SILENT, UNCOORDINATED, Pair, Session, Side
from tests.interop.differential.steps import (
    LATEST,
    Ready,
    alter_configs_request,
    list_offsets_request,
    produce_request,
)
from tests.support.config_requests import BROKER, SET, TOPIC, change
from tests.support.streams_programs import internal, part
from tests.support.topic_requests import creatable
from tests.support.wire_client import WireClient

SOON: Final = 4.0
"""Seconds without an answer that count as none."""
NO_OPERATION: Final = 9
ALL_BUT_2_GIB: Final = b"\xfe\xff\xff\xff\x0f"
"""The length of a record, as large as it can be."""
FEW: Final = 20
MANY: Final = 2000
"""Records in a batch, by which it depends whether the versions of a library choose alike."""
TESTS: Final = Path(__file__).parents[2]

T = TypeVar("T")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """
    Both brokers, running.
    """
    made = Pair(tmp_path_factory.mktemp("differences"), UNCOORDINATED)
    with made.brokers:
        asyncio.run(made.start())
        yield made


def both(pair: Pair, does: Callable[[Session], Coroutine[Any, Any, T]]) -> tuple[T, T]:
    """
    What comes of the same, done to Kafka and to Barnabas.
    """

    async def run(side: Side) -> T:
        session = Session(side)
        try:
            return await does(session)
        finally:
            await session.close()

    async def run_both() -> tuple[T, T]:
        kafka, barnabas = await asyncio.gather(*map(run, pair.sides))
        return kafka, barnabas

    return asyncio.run(run_both())


async def create(session: Session, topic: str, **configs: str | int) -> None:
    configs = {"retention_ms": -1, **configs}
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    made = creatable(topic, configs=named)
    await session.ask(CreateTopicsRequest(topics=[made]), 7)
    await Ready(topic, 1).run(session)


async def produce(session: Session, topic: str, *made: Batch) -> list[int]:
    """
    The error of each batch, sent one by one.
    """
    codes = []
    for batch in made:
        request = produce_request(
            session, topic, {0: batch.build()}, version=9, acks=-1, transactional_id=None
        )
        answer = await session.ask(request, 9)
        codes.append(answer.responses[0].partition_responses[0].error_code)
    return codes


async def end_of(session: Session, topic: str) -> int:
    answer = await session.ask(list_offsets_request(topic, {0: LATEST}), 5)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def stored(side: Side, topic: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((side.data / f"{topic}-0").glob("*.log")))


def test_null_records_are_answered_differently(pair: Pair) -> None:
    async def send(session: Session) -> Any:
        await create(session, "records-null")
        data = PartitionProduceData(index=0, records=None)
        topic = TopicProduceData(name="records-null", partition_data=[data])
        request = ProduceRequest(
            transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[topic]
        )
        answer = await session.ask(request, 9, seconds=SOON)
        return (
            answer
            if isinstance(answer, str)
            else answer.responses[0].partition_responses[0].error_code
        )

    assert (SILENT, ErrorCode.INVALID_RECORD) == both(pair, send)


def test_kafka_leaves_some_requests_unanswered(pair: Pair) -> None:
    async def add_nothing(session: Session) -> Any:
        answer = await session.ask(AddPartitionsToTxnRequest(transactions=[]), 5, seconds=SOON)
        return answer if isinstance(answer, str) else answer.error_code

    assert (SILENT, ErrorCode.NONE) == both(pair, add_nothing)


def test_requests_time_out_differently(pair: Pair) -> None:
    async def create_at_once(session: Session) -> Any:
        topic = creatable("timed-out")
        answer = await session.ask(CreateTopicsRequest(topics=[topic], timeout_ms=0), 7)
        return answer.topics[0].error_code

    assert (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE) == both(pair, create_at_once)


@pytest.mark.parametrize("timeout_ms", [-1, -(2**31)])
def test_invalid_requests_are_refused_before_a_timeout(pair: Pair, timeout_ms: int) -> None:
    """
    What is wrong with a request is told, however short its timeout.
    """

    async def ask(session: Session) -> Any:
        topic = CreatePartitionsTopic(name="nowhere", count=2, assignments=None)
        request = CreatePartitionsRequest(
            topics=[topic], timeout_ms=timeout_ms, validate_only=False
        )
        answer = await session.ask(request, 3)
        return answer.results[0].error_code

    expected = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert expected == both(pair, ask)


@pytest.mark.parametrize("count", [10_002, 2**31 - 1])
def test_partitions_created_at_once_are_limited_differently(pair: Pair, count: int) -> None:
    async def ask(session: Session) -> Any:
        if count == 10_002:
            await create(session, "partitions-at-once")
        topic = CreatePartitionsTopic(name="partitions-at-once", count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=9000, validate_only=True)
        answer = await session.ask(request, 3)
        return answer.results[0].error_code

    assert (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.POLICY_VIOLATION) == both(pair, ask)


def test_long_poll_ends_differently_behind_a_request(pair: Pair) -> None:
    """
    Without a clock: the answer in front has what comes after the request behind it, or has not.
    """
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic="long-poll-behind", partitions=[partition])]
    poll = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics)
    batch = Batch(times=(1000,)).build()

    async def fetch(session: Session) -> bool:
        await create(session, "long-poll-behind")
        async with await WireClient.open(session.side.broker.port) as client:
            client.send(poll, version=12)
            client.send(list_offsets_request("long-poll-behind", {0: LATEST}), version=5)
            answer = asyncio.create_task(client.receive())
            await asyncio.wait({answer}, timeout=1)
            request = produce_request(
                session, "long-poll-behind", {0: batch}, version=9, acks=-1, transactional_id=None
            )
            await session.ask(request, 9)
            return bool((await answer).responses[0].partitions[0].records)

    assert (True, False) == both(pair, fetch)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
        ("cordoned.log.dirs", ""),
    ],
)
def test_broker_options_differ(pair: Pair, option: str, value: str) -> None:
    request = change(BROKER, "1", (option, SET, value), validate=True)

    async def alter(session: Session) -> Any:
        answer = await session.ask(request, 1)
        return answer.responses[0].error_code

    assert (ErrorCode.NONE, ErrorCode.INVALID_REQUEST) == both(pair, alter)


def test_refused_commit_differs(pair: Pair) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata="m" * 5000
    )
    topic = OffsetCommitRequestTopic(name="refused-commit", partitions=[partition])
    refused = OffsetCommitRequest(
        group_id="refused-commit", generation_id_or_member_epoch=-1, member_id="", topics=[topic]
    )
    later = replace(refused, generation_id_or_member_epoch=3, member_id="m")

    async def commit(session: Session) -> Any:
        await create(session, "refused-commit")
        answers = [await session.ask(request, 9) for request in (refused, later)]
        describe = DescribeGroupsRequest(groups=["refused-commit"])
        described = await session.ask(describe, 5)
        delete = DeleteGroupsRequest(groups_names=["refused-commit"])
        deleted = await session.ask(delete, 2)
        return (
            [answer.topics[0].partitions[0].error_code for answer in answers],
            described.groups[0].group_state,
            deleted.results[0].error_code,
        )

    codes = [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert ((codes, "Dead", 0), (codes, "Empty", 0)) == both(pair, commit)


def test_topic_id_of_zeros_is_answered_differently(pair: Pair) -> None:
    async def fetch(session: Session) -> Any:
        asked = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
            for index in (0, 1)
        ]
        topics = [FetchTopic(topic_id=ZERO_UUID, partitions=asked)]
        answer = await session.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 13)
        return answer.error_code, [
            partition.error_code for topic in answer.responses for partition in topic.partitions
        ]

    kafka, barnabas = both(pair, fetch)
    assert (ErrorCode.UNKNOWN_SERVER_ERROR, []) == kafka
    assert (ErrorCode.NONE, [ErrorCode.UNKNOWN_TOPIC_ID] * 2) == barnabas


def test_error_without_a_message_differs(pair: Pair) -> None:
    async def set_nothing(session: Session) -> Any:
        nothing = ScramCredentialUpsertion(
            name="wordless", mechanism=1, iterations=4096, salt=b"salt", salted_password=b""
        )
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[nothing])
        answer = await session.ask(request, 0)
        return answer.results[0].error_code, answer.results[0].error_message

    kafka, (code, message) = both(pair, set_nothing)
    assert (ErrorCode.UNKNOWN_SERVER_ERROR, None) == kafka
    assert ErrorCode.UNKNOWN_SERVER_ERROR == code
    assert "password" in message


@pytest.mark.parametrize("pattern", [r"\p{Greek}+", "a" * 10_001])
def test_pattern_classes_differ(pair: Pair, pattern: str) -> None:
    async def ask(session: Session) -> Any:
        request = ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern=pattern
        )
        answer = await session.ask(request, 2)
        return answer.error_code

    kafka, barnabas = both(pair, ask)
    assert ErrorCode.NONE == kafka
    assert ErrorCode.INVALID_REGULAR_EXPRESSION == barnabas


def test_protocol_named_twice_is_counted_differently(pair: Pair) -> None:
    async def join(session: Session) -> Any:
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"m")] * 2
        request = JoinGroupRequest(
            group_id="protocol-twice",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=6_000,
            member_id="",
            protocol_type="consumer",
            protocols=protocols,
        )
        return await session.ask(request, 3, seconds=SOON)

    kafka, barnabas = both(pair, join)
    assert kafka == SILENT
    assert (ErrorCode.NONE, "range") == (barnabas.error_code, barnabas.protocol_name)


def test_lost_tombstones_differ(pair: Pair) -> None:
    group, somebody = "lost-tombstones", "somebody"

    async def beat(session: Session, epoch: int) -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=6_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        answer = await session.ask(request, 1)
        found: int = answer.member_epoch
        return found

    async def join(session: Session) -> tuple[int, int]:
        await beat(session, 0)
        await beat(session, -1)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=6_000,
            rebalance_timeout_ms=6_000,
            member_id=somebody,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
        )
        refused = await session.ask(request, 3)
        return refused.error_code, await beat(session, 0)

    # The group begins anew where it was lost.
    assert ((ErrorCode.UNKNOWN_MEMBER_ID, 2), (ErrorCode.UNKNOWN_MEMBER_ID, 4)) == both(pair, join)


def streams_heartbeat(group: str, **facts: Any) -> StreamsGroupHeartbeatRequest:
    """
    That of a member whose program reads one topic.
    """
    given: dict[str, Any] = {
        "group_id": group,
        "member_id": "m",
        "member_epoch": 0,
        "endpoint_information_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "process_id": "p",
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
    }
    return StreamsGroupHeartbeatRequest(**given | facts)


def test_endpoint_of_a_member_without_tasks_differs(pair: Pair) -> None:
    async def join(session: Session) -> tuple[int, list[int]]:
        request = streams_heartbeat(
            "endpoint-without-tasks",
            topology=Topology(epoch=0, subtopologies=[part("0", ["no-such-topic"])]),
            user_endpoint=Endpoint(host="h", port=1),
        )
        answer = await session.ask(request, 0)
        return answer.error_code, [status.status_code for status in answer.status]

    missing_source_topics = 1
    assert ((-1, []), (0, [missing_source_topics])) == both(pair, join)


def test_lost_response_differs(pair: Pair) -> None:
    group = "lost-answer"

    async def come_back(session: Session) -> list[TaskIds] | None:
        topic = creatable(group)
        await session.ask(CreateTopicsRequest(topics=[topic]), 7)
        await Pause(1.0).run(session)
        program = Topology(epoch=0, subtopologies=[part("0", [group])])
        joined = await session.ask(streams_heartbeat(group, topology=program), 0)
        other = streams_heartbeat(group, topology=program, member_id="n", process_id="q")
        await session.ask(other, 0)
        epoch = joined.member_epoch
        for _ in range(2):
            answer = await session.ask(streams_heartbeat(group, member_epoch=epoch), 0)
        assert answer.member_epoch > epoch
        found: list[TaskIds] | None = answer.active_tasks
        return found

    kafka, barnabas = both(pair, come_back)
    assert kafka is None
    assert [("0", [0])] == [(each.subtopology_id, each.partitions) for each in barnabas or ()]


def test_stale_timer_differs(pair: Pair) -> None:
    group, timeout_s = "stale-timer", 3

    def join_consumer(epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="consumer",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[group],
            topic_partitions=[],
        )

    subscription = ConsumerProtocolSubscription(topics=[group], owned_partitions=[])
    join_classic = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=1000 * timeout_s,
        member_id="classic",
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + encode(subscription, 1))
        ],
    )

    async def come_and_go(session: Session) -> int:
        await create(session, group)
        await session.ask(join_consumer(0), 1)
        begun = time.monotonic()
        assert 0 == (await session.ask(join_classic, 5)).error_code  # and no SyncGroup
        await session.ask(join_consumer(-1), 1)
        joined = await session.ask(join_classic, 5)
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id="classic",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id="classic", assignment=b"")],
        )
        assert 0 == (await session.ask(sync, 5)).error_code
        await session.ask(join_consumer(0), 1)
        await asyncio.sleep(begun + timeout_s + 1 - time.monotonic())
        heartbeat = HeartbeatRequest(
            group_id=group, generation_id=joined.generation_id, member_id="classic"
        )
        code: int = (await session.ask(heartbeat, 4)).error_code
        return code

    removed, rejoins = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS
    assert (removed, rejoins) == both(pair, come_and_go)


def test_decompression_bomb_is_answered_differently(pair: Pair) -> None:
    zeros = [SimpleRecord(1_700_000_000_000, None, bytes(65 * 2**20))]
    data = bytes(build_batch(zeros, compression=CompressionType.GZIP))

    async def send(session: Session) -> int:
        await create(session, "bomb")
        request = produce_request(
            session, "bomb", {0: data}, version=9, acks=-1, transactional_id=None
        )
        answer = await session.ask(request, 9)
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    assert (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR) == both(pair, send)


def test_number_of_entries_is_limited_differently(pair: Pair) -> None:
    async def ask(session: Session) -> Any:
        topics = [MetadataRequestTopic(name="entries")] * (MOST_ENTRIES + 1)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = await session.ask(request, 4)
        return answer if answer == CLOSED else [topic.name for topic in answer.topics]

    assert (["entries"], CLOSED) == both(pair, ask)


def test_giant_record_is_answered_differently(pair: Pair) -> None:
    record = encode_records([Record(0, 1000, None, b"v")], 0, 1000)
    data = seal_batch(
        ALL_BUT_2_GIB + bytes(record[1:]),
        1,
        base_offset=0,
        last_offset_delta=0,
        base_timestamp=1000,
        max_timestamp=1000,
        compression=CompressionType.GZIP,
    )

    async def send(session: Session) -> int:
        await create(session, "giant-record", compression_type="uncompressed")
        request = produce_request(
            session, "giant-record", {0: bytes(data)}, version=9, acks=-1, transactional_id=None
        )
        answer = await session.ask(request, 9)
        code: int = answer.responses[0].partition_responses[0].error_code
        return code

    assert (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_RECORD) == both(pair, send)


def compressible(seed: int, *, count: int) -> Batch:
    value_bytes = 300 if count == FEW else 40
    return Batch(times=(1000,) * count, value_bytes=value_bytes, keys=100, seed=seed)


@pytest.mark.parametrize(
    ("name", "count", "options"),
    [
        ("snappy-bytes", FEW, {"compression_type": "snappy"}),
        ("zstd-bytes", MANY, {"compression_type": "zstd"}),
        ("lz4-low-levels", FEW, {"compression_type": "lz4", "compression_lz4_level": 1}),
    ],
)
def test_compressed_bytes_of_codecs_differ(
    pair: Pair, name: str, count: int, options: Mapping[str, str | int]
) -> None:
    async def store(session: Session) -> list[int]:
        await create(session, name, **options)
        return await produce(
            session, name, *(compressible(seed, count=count) for seed in range(20))
        )

    kafka, barnabas = both(pair, store)

    assert [0] * 20 == kafka == barnabas
    one, other = (stored(side, name) for side in pair.sides)
    assert one != other
    records = [[[*batch.records()] for batch in batches(data)] for data in (one, other)]
    assert records[0] == records[1]


def test_batch_broken_twice_is_answered_differently(pair: Pair) -> None:
    damaged = Batch(
        times=(1000,),
        value_bytes=100,
        keys=3,
        headers=1,
        codec=CompressionType.GZIP,
        seed=828455856,
        changes=(Splice(54, 4, b""),),
    )

    async def store(session: Session) -> list[int]:
        await create(session, "broken-twice", compression_type="uncompressed")
        return await produce(session, "broken-twice", damaged)

    expected = [ErrorCode.UNKNOWN_SERVER_ERROR], [ErrorCode.INVALID_RECORD]
    assert expected == both(pair, store)


def test_unknown_config_operation_is_answered_differently(pair: Pair) -> None:
    async def alter(session: Session) -> Any:
        await create(session, "config-operation")
        request = change(TOPIC, "config-operation", ("retention.ms", NO_OPERATION, "1"))
        answer = await session.ask(request, 1)
        return answer.responses[0].error_code

    assert (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST) == both(pair, alter)


def test_differences_after_a_stop_are_shown(pair: Pair) -> None:
    """
    The six that show when the brokers start: a log with a gap, an index that has no room for what
    a recovery puts into it, one that is larger than it may be, one that nobody has used, a producer
    that sends again what was on the way, and a streams group.
    """
    now_ms = round(time.time() * 1000)
    on_the_way = [Batch(times=(now_ms,), producer=Producer(4000, 0, number)) for number in range(6)]

    async def prepare(session: Session) -> None:
        await create(session, "gap", internal_segment_bytes=500)
        await create(session, "index", segment_index_bytes=1200, index_interval_bytes=0)
        await create(session, "full", segment_index_bytes=36, index_interval_bytes=0)
        await create(session, "twice")
        await create(session, "unused", segment_index_bytes=800)
        await join_with_changelog(session)
        some = [Batch(times=(1000,), value_bytes=100, seed=seed) for seed in range(20)]
        later = [Batch(times=(1000 + n,), value_bytes=100, seed=n) for n in range(20)]
        assert [0] * 20 == await produce(session, "gap", *later)
        assert [0] * 20 == await produce(session, "index", *some)
        assert [0] * 2 == await produce(session, "full", Batch(times=(1,)), Batch(times=(2,)))

    both(pair, prepare)
    assert (1, 1) == both(pair, changelog_partitions)
    asyncio.run(pair.stop())
    for side in pair.sides:
        tear(side.data)
    asyncio.run(pair.start())

    kafka, barnabas = both(pair, lambda session: end_of(session, "gap"))
    assert (20, 1) == (kafka, barnabas)
    assert (0, 1) == both(pair, changelog_partitions)

    async def fill(session: Session) -> None:
        assert [0] * 2 == await produce(session, "full", Batch(times=(3,)), Batch(times=(4,)))

        assert [0] * 6 == await produce(session, "twice", *on_the_way)

    both(pair, fill)
    pair.kill()
    for suffix in ("index", "timeindex"):
        file = Path("unused-0", f"{0:020}.{suffix}")
        sizes = [(side.data / file).stat().st_size for side in pair.sides]
        assert [{"index": 800, "timeindex": 792}[suffix], 0] == sizes
    pair.barnabas.broker.start()
    with pytest.raises(AssertionError, match="ended at once"):
        pair.kafka.broker.start()
    assert "TimeIndex.maybeAppend" in pair.kafka.broker.log_since_start()
    shutil.rmtree(pair.kafka.data / "full-0")
    pair.kafka.broker.start()
    asyncio.run(pair.kafka.have_coordinators())

    refused, known = both(pair, lambda session: produce(session, "twice", *on_the_way))
    assert ([45, 45, 45, 45, 45, 0], [45, 0, 0, 0, 0, 0]) == (refused, known)

    async def shrink(session: Session) -> Any:
        answer = await session.ask(alter_configs_request("index", {"segment.index.bytes": "40"}), 1)
        return answer.responses[0].error_code

    assert (0, 0) == both(pair, shrink)
    asyncio.run(pair.stop())
    pair.barnabas.broker.start()
    with pytest.raises(AssertionError, match="ended at once"):
        pair.kafka.broker.start()


async def join_with_changelog(session: Session) -> None:
    await create(session, "uncounted")
    program = part("0", ["uncounted"], changelogs=[internal("uncounted-changelog")])
    topology = Topology(epoch=0, subtopologies=[program])
    await session.ask(streams_heartbeat("uncounted", topology=topology), 0)


async def changelog_partitions(session: Session) -> int:
    """
    How many partitions the changelog of the group is said to have, once its member has tasks.
    """
    describe = StreamsGroupDescribeRequest(
        group_ids=["uncounted"], include_authorized_operations=False
    )
    for _ in range(100):
        described = await session.ask(describe, 0)
        (group,) = described.groups
        (member,) = group.members
        if member.assignment.active_tasks:
            break
        await session.ask(streams_heartbeat("uncounted", member_epoch=member.member_epoch), 0)
        await asyncio.sleep(0.1)
    await session.ask(streams_heartbeat("uncounted", member_epoch=member.member_epoch), 0)
    described = await session.ask(describe, 0)
    (program,) = described.groups[0].topology.subtopologies
    partitions: int = program.state_changelog_topics[0].partitions
    return partitions


def tear(data: Path) -> None:
    """
    Leave the log directory as a machine does that lost the end of the first segment when it
    crashed.
    """
    first = data / "gap-0" / f"{0:020}.log"
    whole = first.read_bytes()
    end = next(batches(whole)).end
    first.write_bytes(whole[:end])
    (data / CLEAN_SHUTDOWN_FILE).unlink()
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\ngap 0 0\n")


SHOWN: Final[Mapping[str, object]] = {
    "acl-numbers": "test_acls_that_are_filters_are_refused_individually",
    "acl-wildcard": "test_resource_names_that_begin_with_a_star_are_matched_exactly",
    "expired-token": "test_token_whose_owner_is_not_a_user_authenticates_nobody",
    "first-round": "test_group_in_its_first_join_round_can_be_upgraded",
    "not-ready": "test_not_ready_state_is_found_by_both_of_its_names",
    "unreadable-member": "test_members_with_malformed_metadata_prevent_the_downgrade",
    "missing-secret": "test_configuration_variable_without_a_value_is_refused",
    "stored-variables": "test_variables_in_dynamic_options_are_literal",
    "records-null": test_null_records_are_answered_differently,
    "unanswered": test_kafka_leaves_some_requests_unanswered,
    "timed-out": test_requests_time_out_differently,
    "partitions-at-once": test_partitions_created_at_once_are_limited_differently,
    "long-poll-behind": test_long_poll_ends_differently_behind_a_request,
    "created-by-metadata": "test_metadata_request_creates_topics",
    "broker-options": test_broker_options_differ,
    "refused-commit": test_refused_commit_differs,
    "topic-id-of-zeros": test_topic_id_of_zeros_is_answered_differently,
    "wordless": test_error_without_a_message_differs,
    "bomb": test_decompression_bomb_is_answered_differently,
    "entries": test_number_of_entries_is_limited_differently,
    "answer-memory": "test_response_beyond_the_limit_closes_the_connection",
    "coordinator-memory": "test_offsets_beyond_the_memory_budget_are_refused",
    "delegation-tokens": "test_tokens_of_one_requester_take_a_bounded_memory",
    "members": "test_members_of_all_groups_share_one_memory_budget",
    "producers": "test_new_producer_beyond_the_maximum_evicts_the_oldest",
    "share-runs": "test_number_of_runs_in_a_batch_is_limited",
    "share-state-ahead": "test_group_whose_records_are_lost_continues_with_its_share_states",
    "session-partitions": "test_fetch_beyond_the_partition_limit_leaves_sessions_as_they_are",
    "giant-record": test_giant_record_is_answered_differently,
    "pattern-classes": test_pattern_classes_differ,
    "protocol-twice": test_protocol_named_twice_is_counted_differently,
    "lost-tombstones": test_lost_tombstones_differ,
    "endpoint-without-tasks": test_endpoint_of_a_member_without_tasks_differs,
    "lost-answer": test_lost_response_differs,
    "uncounted-topics": test_differences_after_a_stop_are_shown,
    "stale-timer": test_stale_timer_differs,
    "snappy-bytes": test_compressed_bytes_of_codecs_differ,
    "zstd-bytes": test_compressed_bytes_of_codecs_differ,
    "broken-twice": test_batch_broken_twice_is_answered_differently,
    "lz4-low-levels": test_compressed_bytes_of_codecs_differ,
    "config-operation": test_unknown_config_operation_is_answered_differently,
    "full-index-after-crash": test_differences_after_a_stop_are_shown,
    "batches-after-kill": test_differences_after_a_stop_are_shown,
    "gap-after-power-loss": test_differences_after_a_stop_are_shown,
    "set-aside": "test_recovery_deletes_segments_behind_a_corrupt_one",
    "index-larger-than-limit": test_differences_after_a_stop_are_shown,
    "unused-index": test_differences_after_a_stop_are_shown,
    "cleaned-left": "test_malformed_batch_stops_the_cleaning_and_leaves_the_log_unchanged",
    "cleaner-checkpoint-early": "test_aborted_cleaning_writes_only_its_start_to_the_checkpoint",
}
"""
By which test; one that is only named is of the storage engine, of the server or of access control,
since no request to a pair with these settings shows it.
"""


def test_each_known_difference_is_shown_by_a_test() -> None:
    assert {*KNOWN, *LEFT_OUT} == SHOWN.keys()
    own = [path for name in ("storage", "server") for path in (TESTS / name).rglob("*.py")]
    own.append(TESTS / "interop" / "test_authorization.py")
    ours = "".join(path.read_text() for path in own)
    assert all(f"def {name}(" in ours for name in SHOWN.values() if isinstance(name, str))
