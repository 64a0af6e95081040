"""
Who may write records and read them. The answers are those of Apache Kafka 4.3.1 (``KafkaApis``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.fetch import ReplicaState
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.server.security.acl.bindings import CLUSTER_NAME
from barnabas.server.security.acl.permissions import (
    ALTER_TOPIC,
    CLUSTER_ACTION,
    CREATE_CLUSTER,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    Permission,
)
from tests.support.acls import (
    AUTHORIZER,
    EVERYTHING,
    Rights,
    allow,
    allow_only,
    create_topics,
    revoke_all,
)
from tests.support.build import api_request
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_all,
    produce_request,
    produce_topic,
)
from tests.support.session_client import SessionClient
from tests.support.transactional_client import ID, SECOND, TOPIC, Client, prepare
from tests.support.wire_client import WireClient

E = ErrorCode
pytestmark = pytest.mark.broker(
    **AUTHORIZER, transaction_state_log_num_partitions="1", offsets_topic_num_partitions="1"
)

FORBIDDEN: Final = E.TOPIC_AUTHORIZATION_FAILED
UNKNOWN: Final = E.UNKNOWN_TOPIC_OR_PARTITION
NOTHING: Final[Rights] = ()
NOBODYS: Final = UUID(int=7)
BY_NAME: Final = 12
Codes = Mapping[str, int]


def topic_id(broker: TestBroker, name: str) -> UUID:
    topic = broker.inside.topics.get(name)
    return NOBODYS if topic is None else topic.id


def end_offset(broker: TestBroker, name: str = "t", index: int = 0) -> int:
    return broker.inside.partitions.expect(name, index).log.log_end_offset


async def put_record(broker: TestBroker, name: str = "t") -> None:
    partition = broker.inside.partitions.expect(name, 0)
    await partition.committed(partition.append(memoryview(bytearray(batch("a")))).last_offset + 1)


def codes_of(answer: Any, names: Mapping[Any, str]) -> dict[str, int]:
    """
    The codes of a Produce answer by the topics that *names* have for names or ids.
    """
    return {
        names[topic.topic_id if topic.topic_id.int else topic.name]: data.error_code
        for topic in answer.responses
        for data in topic.partition_responses
    }


# Produce


@pytest.mark.parametrize(
    ("acls", "codes"),
    [
        (NOTHING, {"t": FORBIDDEN, "u": FORBIDDEN, "no": FORBIDDEN}),
        (
            ((READ_TOPIC, "*"), (DESCRIBE_TOPIC, "*")),
            {"t": FORBIDDEN, "u": FORBIDDEN, "no": FORBIDDEN},
        ),
        (((WRITE_TOPIC, "t"),), {"t": 0, "u": FORBIDDEN, "no": FORBIDDEN}),
        (((WRITE_TOPIC, "*"),), {"t": 0, "u": 0, "no": UNKNOWN}),
    ],
)
@pytest.mark.parametrize("version", [3, 12, 13])
async def test_records_are_taken_for_topics_that_the_client_may_write_to(
    broker: TestBroker, client: WireClient, acls: Rights, codes: Codes, version: int
) -> None:
    """
    Old versions are served in another way than most. No client needs a permission for an id that no
    topic has.
    """
    await create_topics(broker, {"t": 1, "u": 1})
    await allow_only(broker, acls)
    names: dict[Any, str] = {
        (topic_id(broker, name) if version > BY_NAME else name): name for name in codes
    }
    request = produce_all(*(produce_topic(each, {0: batch("a")}) for each in names))

    answer = await client.ask(request, version)

    expected = dict(codes)
    if version > BY_NAME:
        expected["no"] = E.UNKNOWN_TOPIC_ID
    assert expected == codes_of(answer, names)
    assert (expected["t"] == 0) == end_offset(broker)


async def test_permissions_come_before_what_is_wrong_with_a_partition(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1, "u": 1})
    await allow_only(broker, ((WRITE_TOPIC, "t"),))
    topics = [produce_topic(name, {0: b"no batch", 5: batch("a")}) for name in ("t", "u")]

    answer = await client.ask(produce_all(*topics, acks=7), BY_NAME)

    assert [("t", [E.INVALID_RECORD, UNKNOWN]), ("u", [FORBIDDEN, FORBIDDEN])] == [
        (topic.name, [each.error_code for each in topic.partition_responses])
        for topic in answer.responses
    ]


async def test_a_refused_partition_that_is_named_twice_is_answered_once(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})
    topics = [produce_topic("t", {0: batch("a"), 1: None}), produce_topic("t", {0: batch("b")})]

    answer = await client.ask(produce_all(*topics), BY_NAME)

    assert [("t", [(0, FORBIDDEN), (1, FORBIDDEN)])] == [
        (topic.name, [(each.index, each.error_code) for each in topic.partition_responses])
        for topic in answer.responses
    ]


async def test_a_refused_producer_that_wants_no_answer_is_disconnected(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})

    client.send(produce_request("t", batch("a"), acks=0), version=11)

    assert await client.disconnected()


async def test_a_codec_that_does_not_exist_is_looked_for_where_the_client_may_write(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})
    records = bytearray(batch("a"))
    records[22] |= 7
    request = produce_request("t", bytes(records))

    refused = await client.ask(request, 3)
    await allow(broker, WRITE_TOPIC, "t")
    failed = await client.ask(request, 3)

    assert {"t": FORBIDDEN} == codes_of(refused, {"t": "t"})
    assert {"t": E.UNKNOWN_SERVER_ERROR} == codes_of(failed, {"t": "t"})


def transactional(topic: str) -> Message:
    records = batch("a", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    return produce_request(topic, records, transactional_id=ID)


@pytest.mark.parametrize(
    "acls", [NOTHING, ((WRITE_TOPIC, "*"),), ((DESCRIBE_TRANSACTIONAL_ID, "*"), (WRITE_TOPIC, "*"))]
)
async def test_a_transaction_needs_the_permission_to_write_with_its_id(
    broker: TestBroker, client: WireClient, acls: Rights
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)

    refused = await client.ask(transactional("t"), 11)
    plain = await client.ask(produce_request("t", batch("a"), transactional_id=ID), 11)

    assert {"t": E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED} == codes_of(refused, {"t": "t"})
    assert {"t": 0 if acls else FORBIDDEN} == codes_of(plain, {"t": "t"})


@pytest.mark.parametrize("may_write", [True, False])
async def test_a_forbidden_topic_does_not_become_a_part_of_the_transaction(
    broker: TestBroker, client: WireClient, may_write: bool
) -> None:
    await allow_only(broker, EVERYTHING)
    await prepare(broker, 1)
    producer = Client(client, SECOND)
    assert 0 == await producer.init()
    await allow_only(broker, ((WRITE_TRANSACTIONAL_ID, ID),))
    if may_write:
        await allow(broker, WRITE_TOPIC, TOPIC)

    code = await producer.produce("a")

    await allow_only(broker, EVERYTHING)
    answer = await client.ask(DescribeTransactionsRequest(transactional_ids=[ID]), 0)
    topics = [topic.topic for topic in answer.transaction_states[0].topics]
    assert (0 if may_write else FORBIDDEN, [TOPIC] if may_write else []) == (code, topics)


# InitProducerId


@pytest.mark.parametrize(
    ("acls", "code", "code_with_id"),
    [
        (NOTHING, E.CLUSTER_AUTHORIZATION_FAILED, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (
            ((CREATE_CLUSTER, CLUSTER_NAME), (ALTER_TOPIC, "*"), (DESCRIBE_TRANSACTIONAL_ID, "*")),
            E.CLUSTER_AUTHORIZATION_FAILED,
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        (((IDEMPOTENT_WRITE, CLUSTER_NAME),), 0, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (((WRITE_TOPIC, "some"),), 0, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (((WRITE_TRANSACTIONAL_ID, ID),), E.CLUSTER_AUTHORIZATION_FAILED, E.NOT_COORDINATOR),
    ],
)
async def test_a_producer_gets_an_id_if_it_may_write_to_some_topic(
    broker: TestBroker, client: WireClient, acls: Rights, code: int, code_with_id: int
) -> None:
    await allow_only(broker, acls)

    codes = [
        (
            await client.ask(
                InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=9),
                5,
            )
        ).error_code
        for transactional_id in (None, ID)
    ]

    assert [code, code_with_id] == codes


async def test_permissions_come_before_a_producer_id_without_an_epoch(client: WireClient) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=9, producer_id=5)

    assert E.CLUSTER_AUTHORIZATION_FAILED == (await client.ask(request, 5)).error_code


async def test_a_denied_prefix_takes_the_permission_for_some_topic_back(
    broker: TestBroker, client: WireClient
) -> None:
    await allow(broker, WRITE_TOPIC, "some")
    await allow(broker, WRITE_TOPIC, "so", prefixed=True, deny=True)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=9)

    assert E.CLUSTER_AUTHORIZATION_FAILED == (await client.ask(request, 5)).error_code


# Fetch


def fetched(answer: Any, names: Mapping[Any, str]) -> list[tuple[str, int, bool]]:
    """
    The codes of a Fetch answer, and whether there are records.
    """
    return [
        (
            names[topic.topic_id if topic.topic_id.int else topic.topic],
            data.error_code,
            bool(data.records),
        )
        for topic in answer.responses
        for data in topic.partitions
    ]


@pytest.mark.parametrize(
    ("acls", "told"),
    [
        (NOTHING, [("t", FORBIDDEN, False), ("u", FORBIDDEN, False), ("no", FORBIDDEN, False)]),
        (
            ((WRITE_TOPIC, "*"), (CLUSTER_ACTION, CLUSTER_NAME)),
            [("t", FORBIDDEN, False), ("u", FORBIDDEN, False), ("no", FORBIDDEN, False)],
        ),
        (((READ_TOPIC, "u"),), [("u", 0, True), ("t", FORBIDDEN, False), ("no", FORBIDDEN, False)]),
        (((READ_TOPIC, "*"),), [("t", 0, True), ("u", 0, True), ("no", UNKNOWN, False)]),
    ],
)
@pytest.mark.parametrize("version", [4, 12, 17])
async def test_a_client_reads_topics_that_it_may_read(
    broker: TestBroker,
    client: WireClient,
    acls: Rights,
    told: list[tuple[str, int, bool]],
    version: int,
) -> None:
    """
    What is refused comes last, and does not wait for what is not.
    """
    await create_topics(broker, {"t": 1, "u": 1})
    await put_record(broker, "t")
    await put_record(broker, "u")
    await allow_only(broker, acls)
    names: dict[Any, str] = {
        (topic_id(broker, name) if version > BY_NAME else name): name for name in ("t", "u", "no")
    }

    answer = await client.ask(
        fetch_request(*(fetch_topic(each, {0: 0}) for each in names)), version
    )

    if version > BY_NAME:
        told = [(n, E.UNKNOWN_TOPIC_ID if n == "no" else code, has) for n, code, has in told]
    assert told == fetched(answer, names)


async def test_a_fetch_of_forbidden_topics_only_does_not_wait(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})
    request = fetch_request(fetch_topic("t", {0: 0}), max_wait_ms=60_000, isolation_level=9)

    answer = await client.ask(request, BY_NAME)

    assert [("t", FORBIDDEN, False)] == fetched(answer, {"t": "t"})


@pytest.mark.parametrize(
    ("acls", "code"),
    [
        (((READ_TOPIC, "*"),), FORBIDDEN),
        (((CLUSTER_ACTION, CLUSTER_NAME),), E.NOT_LEADER_OR_FOLLOWER),
    ],
)
@pytest.mark.parametrize("version", [12, 17])
async def test_a_follower_needs_cluster_action(
    broker: TestBroker, client: WireClient, acls: Rights, code: int, version: int
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)
    t = topic_id(broker, "t")
    names = {t: "t", NOBODYS: "no"} if version > BY_NAME else {"t": "t", "no": "no"}
    topics: list[Any] = list(names)
    request = fetch_request(
        *(fetch_topic(each, {0: 0}) for each in topics),
        replica_id=2,
        replica_state=ReplicaState(replica_id=2, replica_epoch=-1),
    )

    answer = await client.ask(request, version)

    unknown = E.UNKNOWN_TOPIC_ID if version > BY_NAME else UNKNOWN
    missing = FORBIDDEN if code == FORBIDDEN else unknown
    assert [("t", code, False), ("no", missing, False)] == fetched(answer, names)


@pytest.mark.parametrize("by_id", [True, False])
async def test_each_fetch_of_a_session_asks_again(
    broker: TestBroker, client: WireClient, by_id: bool
) -> None:
    await create_topics(broker, {"t": 1})
    t = topic_id(broker, "t")
    session = SessionClient(client, t if by_id else "t", 17 if by_id else BY_NAME)
    session.offsets = {0: 0}
    names: dict[Any, str] = {t: "t", "t": "t"}
    refused = [("t", FORBIDDEN, False)]

    assert refused == fetched(await session.fetch(), names)
    assert refused == fetched(await session.fetch(), names)
    await allow(broker, READ_TOPIC, "t")
    assert [("t", 0, False)] == fetched(await session.fetch(), names)
    assert [] == fetched(await session.fetch(), names)
    await put_record(broker)
    await revoke_all(broker)
    assert refused == fetched(await session.fetch(), names)
    assert refused == fetched(await session.fetch(), names)
    await allow(broker, READ_TOPIC, "t")
    assert [("t", 0, True)] == fetched(await session.fetch(), names)
    assert session.session_id


async def test_a_fetch_that_waits_has_asked_when_it_began(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})
    await allow(broker, READ_TOPIC, "t")
    client.send(fetch_request(fetch_topic("t", {0: 0}), max_wait_ms=60_000), version=BY_NAME)
    async with await broker.client() as other:
        await other.ask(fetch_request(), BY_NAME)  # by now the first one waits

    await revoke_all(broker)
    await put_record(broker)

    assert [("t", 0, True)] == fetched(await client.receive(), {"t": "t"})


# ListOffsets, OffsetForLeaderEpoch


def list_offsets(*topics: str, isolation_level: int = 0) -> Message:
    partitions = [{"partition_index": 0, "timestamp": -1}]
    return api_request(
        "list_offsets",
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[{"name": name, "partitions": partitions} for name in topics],
    )


def epochs(*topics: str) -> Message:
    partitions = [{"partition": 0, "leader_epoch": 0}]
    wanted = [{"topic": name, "partitions": partitions} for name in topics]
    return api_request("offset_for_leader_epoch", topics=wanted)


OFFSETS: Final[list[tuple[Rights, list[tuple[str, int, int]]]]] = [
    (NOTHING, [("t", FORBIDDEN, -1), ("u", FORBIDDEN, -1), ("no", FORBIDDEN, -1)]),
    (((READ_TOPIC, "u"),), [("u", 0, 1), ("t", FORBIDDEN, -1), ("no", FORBIDDEN, -1)]),
    (((DESCRIBE_TOPIC, "*"),), [("t", 0, 1), ("u", 0, 1), ("no", UNKNOWN, -1)]),
]


async def with_records(broker: TestBroker, acls: Rights) -> None:
    await create_topics(broker, {"t": 1, "u": 1})
    await put_record(broker, "t")
    await put_record(broker, "u")
    await allow_only(broker, acls)


@pytest.mark.parametrize(("acls", "told"), OFFSETS)
async def test_offsets_are_listed_for_who_may_describe_the_topic(
    broker: TestBroker, client: WireClient, acls: Rights, told: list[tuple[str, int, int]]
) -> None:
    await with_records(broker, acls)

    answer = await client.ask(list_offsets("t", "u", "no"), 7)

    assert told == [(t.name, p.error_code, p.offset) for t in answer.topics for p in t.partitions]


async def test_the_isolation_level_is_not_looked_at_for_forbidden_topics(
    broker: TestBroker, client: WireClient
) -> None:
    await with_records(broker, NOTHING)

    answer = await client.ask(list_offsets("t", isolation_level=9), 7)

    assert [FORBIDDEN] == [p.error_code for t in answer.topics for p in t.partitions]


CLUSTERS: Final[tuple[Permission, str]] = (CLUSTER_ACTION, CLUSTER_NAME)


@pytest.mark.parametrize(("acls", "told"), [*OFFSETS, ((CLUSTERS,), OFFSETS[-1][1])])
async def test_ends_of_epochs_are_for_brokers_and_for_who_may_describe_the_topic(
    broker: TestBroker, client: WireClient, acls: Rights, told: list[tuple[str, int, int]]
) -> None:
    await with_records(broker, acls)

    answer = await client.ask(epochs("t", "u", "no"), 4)

    assert told == [
        (t.topic, p.error_code, p.end_offset) for t in answer.topics for p in t.partitions
    ]
