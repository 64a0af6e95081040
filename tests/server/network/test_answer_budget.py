"""
Answers count in the memory for requests while they are made, while they wait, and while nobody
reads them.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, cast

import pytest

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.metrics import Metrics
from barnabas.server.network.connection import ANSWERED_AT_ONCE
from barnabas.server.network.request_memory import (
    IMPATIENCE_S,
    LOOK_EVERY_S,
    RequestMemory,
)
from barnabas.server.network.sender import BUFFER_BYTES, SHORT_BYTES, Sender
from barnabas.server.network.splice import RecordPipe
from barnabas.server.requests import answer_room
from barnabas.server.requests.answer_room import ENTRY_BYTES, FREE_BYTES
from barnabas.server.scheduling.turns import Turns
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.testing.disks.memory import MemoryFiles
from tests.server.network.test_connection import Numbers, Server, framed, turns
from tests.support.broker_process import Barnabas, resident_bytes
from tests.support.fake_transport import FakeTransport, feed
from tests.support.group_requests import commit_request
from tests.support.server import TestBroker, running, until
from tests.support.topic_requests import creatable
from tests.support.wire_client import BlockingClient, Disconnected, request_frame

MIB: Final = 1024 * 1024
PARTITIONS: Final = 50
METADATA: Final = "x" * 4096


def commit_of_much() -> Message:
    """
    Commit 200 KiB for the group g; v8.
    """
    return commit_request("g", "orders", dict.fromkeys(range(PARTITIONS), 1), metadata=METADATA)


def large_request(times: int) -> bytes:
    """
    A request whose answer has 200 KiB so often.
    """
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)] * times
    return request_frame(OffsetFetchRequest(groups=groups), 8, 0, "hog")


def deaf_peer(port: int, request: bytes) -> socket.socket:
    """
    A peer that sends *request*, and reads nothing.
    """
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", port))
    peer.sendall(request)
    return peer


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    options = {"socket_send_buffer_bytes": "4096"}
    async with running(MemoryFiles(), **options) as broker:
        await broker.create("orders", PARTITIONS)
        await broker.create("__consumer_offsets", cleanup_policy="compact")
        async with await broker.client() as client:
            await client.ask(commit_of_much(), 8)
        yield broker


def memory_of(broker: TestBroker) -> RequestMemory:
    assert broker.connections is not None
    return broker.connections.resources.request_memory


async def test_unread_answers_of_all_peers_exceed_the_request_memory_by_one(
    broker: TestBroker,
) -> None:
    memory = memory_of(broker)
    async with await broker.client() as client:
        client.send_bytes(large_request(10))
        await client.receive_frame()
        one = memory._peak_bytes
        memory.limit_bytes = 2 * one
        peers = [deaf_peer(broker.port, large_request(10)) for _ in range(16)]
        await until(lambda: memory.is_used_up)
        for _ in range(20):
            await client.ask(ApiVersionsRequest(), 0)
        peak = memory._peak_bytes

        client.send_bytes(large_request(10))
        answer = asyncio.ensure_future(client.receive_frame())
        # Once the deaf peers are gone, the clock stands still: this client may be slow.
        assert broker.connections is not None
        while len(broker.connections) > 1 and not answer.done():
            await cast(Any, broker.clock).pass_time(IMPATIENCE_S + 2 * LOOK_EVERY_S)
            await asyncio.sleep(0.01)
        await answer

    assert one > 10 * FREE_BYTES
    assert peak < memory.limit_bytes + 1.2 * one
    assert len(await answer) > FREE_BYTES
    for peer in peers:
        peer.close()


@pytest.mark.prove
def test_peers_that_read_nothing_cost_no_more_than_the_request_memory(tmp_path: Path) -> None:
    settings = dict.fromkeys(
        ("queued.max.request.bytes", "socket.request.max.bytes"), f"{64 * MIB}"
    )
    with Barnabas(tmp_path, settings=settings) as broker:
        with BlockingClient(broker.port) as client:
            topic = creatable("orders", PARTITIONS)
            client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
            is_committed = False
            while not is_committed:
                client.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
                answer = client.ask(commit_of_much(), 8)
                is_committed = 0 == answer.topics[0].partitions[0].error_code
        before = most = resident_bytes(broker.pid)
        peers = [deaf_peer(broker.port, large_request(100)) for _ in range(40)]
        for _ in range(60):
            with BlockingClient(broker.port) as other:
                other.ask(MetadataRequest(topics=[]), 9)
            most = max(most, resident_bytes(broker.pid))
            time.sleep(0.05)
        for peer in peers:
            peer.close()

    assert most - before < 128 * MIB


async def test_answer_behind_an_unfinished_one_counts() -> None:
    server = Server()
    connection, _ = server.connected()

    feed(connection, framed("delay:a") + framed("big:1000000"))
    await turns()

    assert server.connections.resources.request_memory.used_bytes > 1_000_000
    server.desk.delayed["a"].answer("a")
    await turns()
    assert 0 == server.connections.resources.request_memory.used_bytes
    connection.close()


@pytest.mark.parametrize("key", sorted(ANSWERED_AT_ONCE))
async def test_large_answer_that_is_made_at_once_waits_for_memory(key: int) -> None:
    server = Server()
    resources = server.connections.resources
    memory = resources.request_memory
    resources.dispatch = lambda _frame, _client: [framed("answer")]
    memory.limit_bytes = 100
    (first, _), (turn, _) = server.connected(), server.connected()
    feed(first, framed("x" * 1000)[:500])
    turn.count_answer(1)
    assert turn.may_answer(lambda: None)
    (waiting, answers) = server.connected()
    frame = b"\0\0\0\4" + key.to_bytes(2) + b"ab"

    feed(waiting, frame)
    early = answers.take()
    turn.close()
    await turns()

    assert b"" == early
    assert framed("answer") == answers.take()
    for each in (first, waiting):
        each.close()


@pytest.mark.parametrize("waits", [True, False])
async def test_peer_that_does_not_read_is_dropped_soon_while_answers_wait(*, waits: bool) -> None:
    server = Server()
    memory = server.connections.resources.request_memory
    memory.limit_bytes = 1000
    (deaf, deaf_end), (turn, _), (waiting, _) = (server.connected() for _ in range(3))
    deaf_end.get_write_buffer_size = lambda: 1100  # type: ignore[method-assign]
    deaf.pause_writing()
    assert memory.used_bytes == 1100
    if waits:
        assert turn.may_answer(lambda: None)
        assert not waiting.may_answer(lambda: None)

    await server.clock.pass_time(IMPATIENCE_S + 2 * LOOK_EVERY_S)

    assert waits == deaf_end.closed
    for each in (deaf, turn, waiting):
        each.close()


@pytest.mark.parametrize(("share", "reads"), [(0.2, True), (0.01, False)])
async def test_peer_reads_as_long_as_its_answers_arrive_within_the_patience(
    share: float, *, reads: bool
) -> None:
    server = Server()
    connection, transport = server.connected()
    left = [1_000_000]
    transport.get_write_buffer_size = lambda: left[0]  # type: ignore[method-assign]
    connection.pause_writing()
    since = connection.unread_since
    left[0] -= round(share * 1_000_000)

    connection.look_whether_it_reads(since + 1)

    assert (since + 1 if reads else since) == connection.unread_since
    connection.close()


async def test_held_work_goes_on_when_it_may() -> None:
    turns_of = Turns()
    may = [False]

    async def steps() -> str:
        await checkpoint()
        return "done"

    held = turns_of.start(steps(), may_go_on=lambda: may[0])
    other = turns_of.start(steps())
    turns_of.resume()
    is_early = held.is_done
    may[0] = True
    turns_of.resume()

    assert other.is_done
    assert not is_early
    assert "done" == await held.future()


BOUNDED: Final[dict[str, tuple[Message, int]]] = {
    "CreateTopics": (
        CreateTopicsRequest(topics=[creatable("new")], timeout_ms=60_000, validate_only=True),
        7,
    ),
    "ListGroups": (ListGroupsRequest(), 4),
    "Metadata": (MetadataRequest(topics=None), 9),
    "DescribeTopicPartitions": (DescribeTopicPartitionsRequest(topics=[], cursor=None), 0),
    "ListTransactions": (ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 1),
    "ListConfigResources": (ListConfigResourcesRequest(resource_types=[2]), 1),
    "DescribeLogDirs": (DescribeLogDirsRequest(topics=None), 4),
    "OffsetFetch": (
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g0", topics=None)]),
        8,
    ),
}


@pytest.mark.parametrize("name", BOUNDED)
async def test_answer_beyond_its_limit_closes_the_connection(
    broker: TestBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await broker.create(f"t{number}", 2)
    await broker.create("__transaction_state", cleanup_policy="compact")
    async with await broker.client() as client:
        for number in range(4):
            for topic in range(4):
                await client.ask(commit_request(f"g{number}", f"t{topic}", {0: 1}), 8)
            request = InitProducerIdRequest(
                transactional_id=f"t{number}", transaction_timeout_ms=1000
            )
            while (await client.ask(request, 4)).error_code:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    monkeypatch.setattr(answer_room, "MOST_BYTES", 3 * ENTRY_BYTES)

    async with await broker.client() as client:
        with pytest.raises(Disconnected):
            await client.ask(*BOUNDED[name])


@pytest.mark.parametrize(("is_short", "size"), [(True, SHORT_BYTES), (False, BUFFER_BYTES)])
def test_peer_with_tls_gets_short_pieces_while_memory_is_used_up(
    *, is_short: bool, size: int
) -> None:
    """
    What it does not read has left its file, since it is encrypted.
    """
    file = Numbers(4 * BUFFER_BYTES, cached=True)
    transport = FakeTransport()
    sender = Sender(
        transport,
        cast(Any, None),
        memoryview(bytearray(BUFFER_BYTES)),
        Metrics().counter("network_bytes_out", "Bytes."),
        RecordPipe(0),
        progressed=lambda: None,
        failed=lambda error: pytest.fail(str(error)),
        is_short=lambda: is_short,
    )
    write = transport.write

    def write_and_fill(data: Any) -> None:
        write(data)
        sender.pause()

    transport.write = write_and_fill  # type: ignore[method-assign]

    sender.put([b"<", cast(Any, StoredRecords(FileSlice(cast(Any, file), 0, file.size)))])
    sender.flush()

    assert size == len(transport.written)
