"""
Transactions over the wire, in both protocols.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from barnabas.protocol.errors import ErrorCode, KafkaStorageError
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.server import (
    START_MS,
    TestBroker,
    batch,
    produce_all,
    produce_request,
    produce_topic,
    running,
)
from tests.support.some import some
from tests.support.transaction_requests import add_as_broker_request, marker, markers_request
from tests.support.transactional_client import FIRST, ID, SECOND, TOPIC, Client, prepare

SMALL = {"transaction_state_log_num_partitions": "3", "offsets_topic_num_partitions": "2"}


def list_request(**options: Any) -> ListTransactionsRequest:
    return ListTransactionsRequest(**({"state_filters": [], "producer_id_filters": []} | options))


def advance(broker: TestBroker, seconds: float) -> None:
    assert isinstance(broker.clock, ManualClock)
    broker.clock.advance(seconds)


class World:
    """
    A broker on files that outlive it, and a clock that moves when it is told to.
    """

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.clock = ManualClock(START_MS)

    def running(self, **options: str) -> Any:
        return running(self.files, self.clock, **SMALL, **options)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[TestBroker]:
    async with World().running() as broker:
        await prepare(broker, 3)
        yield broker


@pytest_asyncio.fixture(params=[FIRST, SECOND], ids=["first protocol", "second protocol"])
async def client(broker: TestBroker, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with await broker.client() as wire:
        yield Client(wire, request.param)


@pytest_asyncio.fixture
async def first(broker: TestBroker) -> AsyncIterator[Client]:
    async with await broker.client() as wire:
        yield Client(wire, FIRST)


@pytest_asyncio.fixture
async def second(broker: TestBroker) -> AsyncIterator[Client]:
    async with await broker.client() as wire:
        yield Client(wire, SECOND)


# What a producer does


async def test_committed_records_are_read_and_aborted_ones_are_not(client: Client) -> None:
    assert ErrorCode.NONE is await client.init()
    for value, commit in (("a", True), ("b", False), ("c", True)):
        for partition in range(3):
            assert ErrorCode.NONE is await client.produce(f"{value}{partition}", partition)
        assert ErrorCode.NONE is await client.end(commit=commit)

    for partition in range(3):
        values, aborted = await client.read(partition)
        assert [f"a{partition}", f"c{partition}"] == values
        assert 1 == len(aborted)
    assert "CompleteCommit" == await client.state()


async def test_open_transaction_hides_later_records(broker: TestBroker, client: Client) -> None:
    await client.init()
    await client.produce("open")
    async with await broker.client() as other:
        await other.ask(produce_request(TOPIC, batch("plain")), 9)

    assert ([], []) == await client.read()
    await client.end(commit=True)
    assert (["open", "plain"], []) == await client.read()


async def test_transactional_offsets_count_once_committed(client: Client) -> None:
    await client.init()

    assert ErrorCode.NONE is await client.commit_offset(17)
    assert (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT) == await client.committed_offset()
    await client.end(commit=True)
    assert (17, ErrorCode.NONE) == await client.committed_offset()
    await client.commit_offset(99)
    await client.end(commit=False)
    assert (17, ErrorCode.NONE) == await client.committed_offset()


async def test_transaction_version_2_gives_each_transaction_an_epoch(second: Client) -> None:
    await second.init()
    epochs = []
    for _ in range(3):
        await second.produce("x")
        await second.end(commit=True)
        epochs.append(second.producer.producer_epoch)

    assert [1, 2, 3] == epochs
    assert ErrorCode.NONE is await second.end(commit=False), "nothing was begun"
    assert 4 == second.producer.producer_epoch


async def test_end_txn_may_be_repeated(client: Client) -> None:
    await client.init()
    before = client.producer
    await client.produce("x")
    await client.end(commit=True)
    after, client.producer = client.producer, before

    assert ErrorCode.NONE is await client.end(commit=True)
    assert after == client.producer
    client.producer = before
    assert ErrorCode.INVALID_TXN_STATE is await client.end(commit=False)


# What is refused


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (9, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
async def test_partition_outside_the_transaction_refuses_the_batch(
    first: Client, version: int, code: ErrorCode
) -> None:
    await first.init()
    await first.add(1)

    assert code is await first.produce_only("x", 0, version=version)
    assert ErrorCode.NONE is await first.produce_only("x", 1)


async def test_produce_request_has_transactions_of_one_producer(first: Client) -> None:
    await first.init()
    one, other = (
        batch("x", is_transactional=True, producer_id=n, producer_epoch=0, base_sequence=0)
        for n in (0, 1)
    )
    request = produce_all(produce_topic(TOPIC, {0: one, 1: other}), transactional_id=ID)

    answer = await first.wire.ask(request, 11)

    assert [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2 == [
        each.error_code for each in answer.responses[0].partition_responses
    ]


async def test_offsets_of_a_group_outside_the_transaction_are_refused(first: Client) -> None:
    await first.init()
    await first.add(0)

    assert ErrorCode.TRANSACTION_ABORTABLE is await first.commit_offset(1, add=False)


@pytest.mark.parametrize(
    ("version", "fenced"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
)
async def test_old_clients_get_no_producer_fenced_error(
    first: Client, version: int, fenced: ErrorCode
) -> None:
    await first.init()
    old = first.producer
    await first.init()
    first.producer = old

    assert [fenced] == await first.add(0, version=version)
    assert fenced is await first.end(commit=True, version=version)


async def test_fenced_producer_cannot_continue(first: Client) -> None:
    await first.init()
    old = first.producer
    await first.init()
    await first.init()

    was = {"producer_id": old.producer_id, "producer_epoch": old.producer_epoch}
    assert ErrorCode.PRODUCER_FENCED is await first.init(version=4, **was)
    assert ErrorCode.INVALID_PRODUCER_EPOCH is await first.init(version=3, **was)


# Fencing, time, and restarts


async def test_new_producer_aborts_the_transaction_of_its_predecessor(
    broker: TestBroker, client: Client
) -> None:
    await client.init()
    await client.produce("lost")
    async with await broker.client() as wire:
        other = Client(wire, client.protocol)

        assert ErrorCode.CONCURRENT_TRANSACTIONS is await other.init()
        assert ErrorCode.NONE is await other.init()

        assert client.producer.producer_epoch + 2 == other.producer.producer_epoch
        assert ErrorCode.INVALID_PRODUCER_EPOCH is await client.produce_only("late")
        assert ErrorCode.PRODUCER_FENCED is await client.end(commit=True)
        await other.produce("kept")
        await other.end(commit=True)
    assert ["kept"] == (await client.read())[0]


async def test_transaction_is_aborted_after_its_timeout(broker: TestBroker, client: Client) -> None:
    await client.init(timeout_ms=30_000)
    await client.produce("lost")

    advance(broker, 25)
    assert "Ongoing" == await client.state()
    advance(broker, 16)

    await client.wait_for("CompleteAbort")
    assert ([], [client.producer.producer_id]) == await client.read()
    assert ErrorCode.INVALID_PRODUCER_EPOCH is await client.produce_only("late")


async def test_unused_transactional_id_expires() -> None:
    world = World()
    soon = {
        "transactional_id_expiration_ms": "60000",
        "transaction_remove_expired_transaction_cleanup_interval_ms": "10000",
    }
    async with world.running(**soon) as broker, await broker.client() as wire:
        await prepare(broker, 3)
        client = Client(wire, FIRST)
        await client.init()
        advance(broker, 50)
        assert "Empty" == await client.state()

        advance(broker, 20)

        await client.wait_for("")
        assert ErrorCode.TRANSACTIONAL_ID_NOT_FOUND == (await client.describe()).error_code


@pytest.mark.parametrize("protocol", [FIRST, SECOND])
async def test_open_transaction_continues_after_a_restart(protocol: int) -> None:
    world = World()
    async with world.running() as broker, await broker.client() as wire:
        await prepare(broker, 3)
        client = Client(wire, protocol)
        await client.init()
        await client.produce("before")
        producer, sequences = client.producer, client.sequences

    async with world.running() as broker, await broker.client() as wire:
        client = Client(wire, protocol)
        client.producer, client.sequences = producer, sequences
        await until_loaded(client)
        assert ErrorCode.NONE is await client.produce("after")
        assert ErrorCode.NONE is await client.end(commit=True)
        assert ["before", "after"] == (await client.read())[0]


async def until_loaded(client: Client) -> None:
    while (await client.describe()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass


async def test_failed_marker_is_written_later(
    broker: TestBroker, second: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await second.init()
    await second.produce("x")
    with monkeypatch.context() as patch:

        async def fails(*_: object, **__: object) -> None:
            raise KafkaStorageError("not today")

        patch.setattr("barnabas.server.transactions.markers.MarkerWriter.write", fails)
        assert ErrorCode.NONE is await second.end(commit=True), "the outcome is decided"
    assert "PrepareCommit" == await second.state()

    advance(broker, 1)

    await second.wait_for("CompleteCommit")
    assert ["x"] == (await second.read())[0]


async def test_deleted_topic_does_not_prevent_a_transaction_from_ending(
    broker: TestBroker, second: Client
) -> None:
    await second.init()
    await second.produce("x")
    await broker.delete(TOPIC)

    assert ErrorCode.NONE is await second.end(commit=True)
    assert "CompleteCommit" == await second.state()


# What administrators see


@pytest.mark.parametrize(
    ("options", "is_listed"),
    [
        ({"state_filters": ["Ongoing", "What", "What"]}, True),
        ({"state_filters": ["Empty"]}, False),
        ({"state_filters": ["What"]}, False),
        ({"producer_id_filters": [0]}, True),
        ({"producer_id_filters": [5]}, False),
        ({"duration_filter": 999}, True),
        ({"duration_filter": 1000}, False),
        ({"transactional_id_pattern": "t."}, True),
        ({"transactional_id_pattern": "t"}, False),
        ({"transactional_id_pattern": ""}, True),
    ],
)
async def test_transactions_are_listed_by_filters(
    broker: TestBroker, second: Client, options: dict[str, Any], is_listed: bool
) -> None:
    await second.init()
    await second.produce("x")
    advance(broker, 1)

    answer = await second.wire.ask(list_request(**options), 2)

    assert is_listed == bool(answer.transaction_states)
    unknown = ["What"] if "What" in options.get("state_filters", []) else []
    assert unknown == answer.unknown_state_filters


async def test_administrator_can_abort_a_hanging_transaction(first: Client) -> None:
    await first.init()
    await first.produce("x")
    abort = marker(first.producer, {TOPIC: [0, 9]}, commit=False)

    answer = await first.wire.ask(markers_request(abort), 1)

    results = answer.markers[0].topics[0].partitions
    assert [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == [r.error_code for r in results]
    assert ([], [first.producer.producer_id]) == await first.read()


async def test_transactional_id_is_stuck_when_its_coordinator_is_fenced(first: Client) -> None:
    await first.init()
    await first.produce("x")
    abort = marker(first.producer, {TOPIC: [0]}, commit=False, coordinator_epoch=7)
    await first.wire.ask(markers_request(abort), 1)

    assert ErrorCode.NONE is await first.end(commit=True)

    assert ErrorCode.CONCURRENT_TRANSACTIONS is await first.end(commit=False)
    assert ErrorCode.CONCURRENT_TRANSACTIONS is await first.init()


async def test_brokers_add_and_verify_partitions_in_batches(second: Client) -> None:
    await second.init()
    mine = [(ID, second.producer)]

    codes = []
    for partition, verify in ((0, False), (0, True), (1, True)):
        request = add_as_broker_request(mine, {TOPIC: [partition]}, verify=verify)
        answer = await second.wire.ask(request, 5)
        [result] = answer.results_by_transaction[0].topic_results[0].results_by_partition
        codes.append(result.partition_error_code)

    assert [0, 0, ErrorCode.TRANSACTION_ABORTABLE] == codes


async def test_last_entry_of_a_broker_for_a_transactional_id_counts(
    second: Client,
) -> None:
    nobody = (ID, (12345, 0))
    request = add_as_broker_request([nobody, nobody], {TOPIC: [-2]}, {TOPIC: [0]})
    answer = await second.wire.ask(request, 5)

    expected = (-2, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    for result in some(answer.results_by_transaction):
        [partition] = result.topic_results[0].results_by_partition
        assert expected == (partition.partition_index, partition.partition_error_code)
    assert 2 == len(answer.results_by_transaction)
