"""
Connections: order of responses, back-pressure and the end.

``Desk`` stands for the handlers: a frame is a word that says how it is answered.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from struct import pack
from typing import Any, Final, Self, cast

import pytest

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.framing import FIRST_ROOM_BYTES
from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.metrics import Metrics
from barnabas.server.network.acceptor import LoopProtocol
from barnabas.server.network.backlog import LARGE_BYTES, MOST_SLOW, TURN_S, Backlog
from barnabas.server.network.connection import Connection
from barnabas.server.network.registry import CROWD, MOST_LOOKS, ConnectionLimits, Connections
from barnabas.server.network.request_memory import (
    FAR_OVER,
    IMPATIENCE_S,
    LOOK_EVERY_S,
    PATIENCE_S,
)
from barnabas.server.network.resources import MOST_REQUEST_BYTES
from barnabas.server.network.sender import BUFFER_BYTES, LEAST_SPLICED, MOST_AT_ONCE, SMALL
from barnabas.server.requests import client as requests_client
from barnabas.server.requests.context import Effects
from barnabas.server.requests.errors import CloseConnection, Outcome
from barnabas.server.resources.descriptors import LEAST_FILES
from barnabas.server.scheduling.turns import SLOW_S, Turns, Work, settle
from barnabas.server.security.host_address import host_address
from barnabas.server.security.listeners import Security
from barnabas.storage.fs.disk import MAPS_KEEP_DESCRIPTORS
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.fs.open_files import OpenFiles
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.testing.manual_clock import ManualClock
from tests.support.fake_transport import FakeTransport, feed
from tests.support.limits import stated
from tests.support.wire_client import Disconnected, WireClient

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0)


class Waiting:
    """
    An answer for which the test has to see.
    """

    def __init__(self) -> None:
        self.future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def done(self) -> bool:
        return self.future.done()

    def answer(self, outcome: str) -> None:
        settle(self.future, outcome)

    def hurry(self) -> None:
        self.answer("hurried")

    async def outcome(self) -> str:
        return await self.future


class Answer:
    held_bytes = 1000

    def __init__(self, effects: Effects | None = None) -> None:
        self.effects = effects
        self.on_effects: Callable[[], None] | None = None
        self.on_answered: Callable[[], None] | None = None

    def buffers(self, outcome: Outcome) -> list[Any]:
        if isinstance(outcome, CloseConnection):
            raise outcome
        return [] if outcome is None else [framed(str(outcome))]

    def answered(self) -> None:
        pass


class Numbers:
    """
    A file whose byte at each position is known, and which may not be in the page cache.
    """

    path = Path("numbers.log")

    def __init__(
        self, size: int, *, cached: bool = True, first: int = 0, spliceable: bool = False
    ) -> None:
        self.size = size
        self.cached = cached
        self.first = first
        self.spliceable = spliceable
        self.reads = 0
        self.largest_read = 0

    def records(self, position: int, size: int) -> StoredRecords:
        return StoredRecords(FileSlice(cast(Any, self), position, size))

    def read(self, position: int, size: int) -> bytes:
        size = max(0, min(size, self.size - position))
        start = (self.first + position) % 251
        return (bytes(range(251)) * (size // 251 + 2))[start : start + size]

    def read_into(self, position: int, room: memoryview, *, nowait: bool = False) -> int:
        if nowait and not self.cached:
            raise WouldBlock
        self.reads += 1
        data = self.read(position, len(room))
        self.largest_read = max(len(data), self.largest_read)
        room[: len(data)] = data
        return len(data)

    def splice_into(self, pipe: int, position: int, size: int) -> int:
        return os.write(pipe, self.read(position, size)) if self.spliceable else 0


class Desk:
    """
    Answers each frame as its verb says; ``delay``, ``poll`` and ``task`` wait for the test.
    """

    def __init__(self) -> None:
        self.started: list[str] = []
        self.delayed: dict[str, Waiting] = {}
        self.tasks: dict[str, asyncio.Event] = {}
        self.file = Numbers(0, cached=True)
        self.turns = Turns()

    def __call__(self, frame: memoryview, client: requests_client.Client) -> Any:
        word = bytes(frame).decode()
        self.started.append(word)
        verb, _, name = word.partition(":")
        return getattr(self, verb)(name)

    def answer(self, *names: str) -> None:
        for name in names:
            self.delayed[name].answer(name)

    @property
    def stored_frame(self) -> bytes:
        return b"<" + self.file.read(0, self.file.size) + b">"

    def now(self, name: str) -> list[bytes]:
        return [framed(name)]

    def none(self, name: str) -> None:
        return None

    def close(self, name: str) -> None:
        raise CloseConnection(f"no {name}")

    def delay(self, name: str) -> tuple[Answer, Work[str]]:
        waiting = self.delayed[name] = Waiting()
        return Answer(Effects(None, is_seen=True)), Turns().start(waiting.outcome())

    def poll(self, name: str) -> tuple[Answer, Work[str]]:
        waiting = self.delayed[name] = Waiting()
        return Answer(Effects(waiting.hurry, is_seen=True)), Turns().start(waiting.outcome())

    def task(self, name: str) -> tuple[Answer, Work[str]]:
        event = self.tasks[name] = asyncio.Event()

        async def work() -> str:
            await event.wait()
            return name

        return Answer(), Turns().start(work())

    def slow(self, name: str) -> tuple[Answer, Work[str]]:
        """
        Work whose first turn is slow.
        """

        async def work() -> str:
            await checkpoint()
            spend(2 * SLOW_S)
            return name

        return Answer(), self.turns.start(work())

    def big(self, size: str) -> list[bytes]:
        return [framed("x" * int(size))]

    def stored(self, _: str) -> list[Any]:
        size = self.file.size
        return [pack(">i", size + 2) + b"<", self.file.records(0, size), b">"]


def spend(seconds: float) -> None:
    time.sleep(seconds)


def framed(text: str) -> bytes:
    data = text.encode()
    return pack(">i", len(data)) + data


class Server:
    """
    Connections on a free port as long as the block, and connections without a socket.
    """

    def __init__(
        self,
        open_files: OpenFiles | None = None,
        *,
        on_all_addresses: bool = False,
        let_go: Callable[[], object] = lambda: None,
        is_busy: Callable[[], bool] = lambda: False,
        **options: str,
    ) -> None:
        config = BrokerConfig.parse({name.replace("_", "."): v for name, v in options.items()})
        self.desk = Desk()
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.connections = Connections(
            config,
            self.clock,
            ThreadPoolExecutor(1),
            cast(Any, self.desk),
            self.metrics,
            security=Security((), lambda _mechanism, _user: None, self.clock),
            open_files=open_files,
            let_go=let_go,
            is_busy=is_busy,
        )
        self.resources = self.connections.resources
        self.desk.turns.on_slow = self.resources.backlog.count_slow
        self.memory = self.resources.request_memory
        self.port = 0
        self._on_all_addresses = on_all_addresses
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        if self._on_all_addresses:
            listening = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            listening = socket.create_server(("127.0.0.1", 0))
        self._server = await asyncio.get_running_loop().create_server(
            lambda: LoopProtocol(self.connection()), sock=listening
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self.connections.drain(5.0)

    async def client(self) -> Client:
        return await Client.open(self.port)

    def connection(self) -> Connection:
        return Connection(self.resources, LISTENER)

    def connected(self, transport: FakeTransport | None = None) -> tuple[Connection, FakeTransport]:
        connection = self.connection()
        transport = transport or FakeTransport(connection.connection_lost)
        connection.connection_made(transport)
        return connection, transport


class Client(WireClient):
    def say(self, *words: str) -> None:
        self.send_bytes(b"".join(framed(word) for word in words))

    async def hear(self, count: int = 1) -> list[str]:
        return [(await self.receive_frame()).decode() for _ in range(count)]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with await server.client() as client:
        yield client


async def turns(count: int = 20) -> None:
    """
    Let the loop run, and give sockets time to pass data on.
    """
    for _ in range(count):
        await asyncio.sleep(0.001)


async def test_requests_behind_a_delayed_response_take_effect(
    server: Server, client: Client
) -> None:
    client.say("delay:a", "none:b", "now:c")
    await turns()

    assert ["delay:a", "none:b", "now:c"] == server.desk.started
    server.desk.answer("a")
    assert ["a", "c"] == await client.hear(2)


async def test_no_request_starts_behind_a_task(server: Server, client: Client) -> None:
    client.say("task:a", "now:b", "task:c", "now:d")
    await turns()
    first = list(server.desk.started)

    server.desk.tasks["a"].set()
    await turns()
    second = list(server.desk.started)
    server.desk.tasks["c"].set()

    assert ["task:a"] == first
    assert ["task:a", "now:b", "task:c"] == second
    assert ["a", "b", "c", "d"] == await client.hear(4)


async def test_long_poll_ends_when_a_later_response_is_ready(
    server: Server, client: Client
) -> None:
    client.say("poll:a", "poll:b")
    await turns()
    assert not any(delayed.done for delayed in server.desk.delayed.values())

    client.say("now:c")

    assert ["hurried", "hurried", "c"] == await client.hear(3)


async def test_long_poll_ends_when_a_later_request_is_answered(
    server: Server, client: Client
) -> None:
    client.say("poll:a", "poll:b")
    await turns()

    server.desk.answer("b")

    assert ["hurried", "b"] == await client.hear(2)


async def test_connection_is_closed_with_one_log_line_giving_the_reason(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    client.say("now:a", "close:way", "now:b")

    assert ["a"] == await client.hear()
    with pytest.raises(Disconnected):
        await client.hear()
    (message,) = caplog.messages
    assert message.startswith("closing the connection of a client at 127.0.0.1:")
    assert message.endswith(": no way")


@pytest.mark.parametrize(
    ("size", "cached", "spliceable", "reads"),
    [
        pytest.param(1_500_000, True, False, 1_500_000 // BUFFER_BYTES + 1, id="read in pieces"),
        pytest.param(1_500_000, False, False, 0, id="cold pages are read in the executor"),
        pytest.param(200_000, True, True, 0, id="large records are not read"),
        pytest.param(LEAST_SPLICED - 1, True, True, 1, id="small records are read"),
    ],
)
async def test_records_are_sent_from_their_file(
    server: Server, client: Client, size: int, reads: int, *, cached: bool, spliceable: bool
) -> None:
    server.desk.file = Numbers(size, cached=cached, spliceable=spliceable)
    client.say("stored:", "now:after")

    assert server.desk.stored_frame == await client.receive_frame()
    assert reads == server.desk.file.reads
    assert ["after"] == await client.hear()


async def test_cached_bytes_are_sent_before_the_rest_is_read_in_the_executor(
    server: Server, client: Client
) -> None:
    """
    Every other read finds nothing in the cache, and each returns at most 10,000 bytes.
    """
    server.desk.file = file = Numbers(300_000)
    whole_read = file.read_into

    def read_into(position: int, room: memoryview, *, nowait: bool = False) -> int:
        if not nowait:
            return whole_read(position, room[:10_000])
        file.cached = not file.cached
        return whole_read(position, room[:10_000], nowait=True)

    file.read_into = read_into  # type: ignore[method-assign]
    server.desk.stored = lambda _: [  # type: ignore[method-assign]
        pack(">i", 300_000),
        *(file.records(at, 10_000) for at in range(0, 300_000, 10_000)),
    ]
    client.say("stored:", "now:after")

    frame = await client.receive_frame()

    assert file.read(0, 300_000) == frame
    assert ["after"] == await client.hear()


async def test_unsent_buffer_is_not_reused(server: Server, client: Client) -> None:
    """
    Six peers do not read while the seventh is served from the same buffers.
    """
    peers = [await server.client() for _ in range(6)]
    expected = []
    for number, peer in enumerate([*peers, client]):
        server.desk.file = Numbers(8 << 20, first=30 * number)
        expected.append(server.desk.stored_frame)
        if peer is not client:
            peer.pause_reading()
        peer.say("stored:")
        await turns()

    assert expected[-1] == await client.receive_frame()
    for frame, peer in zip(expected, peers, strict=False):
        peer.resume_reading()
        assert frame == await peer.receive_frame()
        await peer.close()


@pytest.mark.parametrize("spliceable", [False, True])
async def test_records_may_be_the_last_part_of_a_response(
    server: Server, client: Client, *, spliceable: bool
) -> None:
    """
    Older versions of Fetch end with the records.
    """
    file = Numbers(200_000, spliceable=spliceable)
    records = [file.records(0, size) for size in (0, 200_000, 0)]
    server.desk.stored = lambda _: [  # type: ignore[method-assign]
        *(pack(">i", 200_000), b"", *records, b"")
    ]
    client.say("stored:", "now:after")

    assert file.read(0, 200_000) == await client.receive_frame()
    assert ["after"] == await client.hear()


async def test_full_socket_takes_the_rest_once_its_peer_has_read(
    server: Server, client: Client
) -> None:
    """
    A small piece is read and given to the transport, which reports when it is sent.
    """
    size = 40_000_000
    server.desk.file = Numbers(size, first=9, spliceable=True)
    client.pause_reading()
    client.say("stored:", "now:after")
    await turns()
    sent = server.metrics.value("network_bytes_out")
    read_for_the_peer = server.desk.file.largest_read

    client.resume_reading()
    frame = await client.receive_frame()

    assert sent < size
    assert 0 < read_for_the_peer <= SMALL
    assert server.desk.stored_frame == frame
    assert ["after"] == await client.hear()
    assert server.desk.file.largest_read < LEAST_SPLICED, "the last piece may be too few to splice"


async def test_other_connections_are_served_during_a_large_response() -> None:
    server = Server()
    connection, transport = server.connected()
    server.desk.file = Numbers(3 * MOST_AT_ONCE)
    feed(connection, framed("stored:") + framed("now:after") + framed("close:now"))
    pieces = [transport.take()]
    while not transport.closed:
        assert ["stored:"] == server.desk.started
        await asyncio.sleep(0)
        pieces.append(transport.take())

    assert all(len(piece) < MOST_AT_ONCE + BUFFER_BYTES for piece in pieces)
    frame = server.desk.stored_frame
    assert pack(">i", len(frame)) + frame + framed("after") == b"".join(pieces)


async def test_deferred_bytes_are_sent_before_the_connection_closes() -> None:
    server = Server()
    connection, transport = server.connected()
    server.desk.file = Numbers(3 * MOST_AT_ONCE)
    feed(connection, framed("stored:"))
    assert len(transport.written) < 2 * MOST_AT_ONCE

    connection.close()

    assert 3 * MOST_AT_ONCE + len(b"size" + b"<" + b">") == len(transport.written)
    await asyncio.sleep(0)


async def test_missing_bytes_of_a_started_response_close_the_connection(
    server: Server, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    records = Numbers(1000).records(0, 2000)
    server.desk.stored = lambda _: [pack(">i", 2000), records]  # type: ignore[method-assign]
    client.say("stored:")

    with pytest.raises(Disconnected):
        await client.receive_frame()
    assert "numbers.log ends before 2000" in caplog.text


async def test_requests_of_a_peer_that_does_not_read_are_not_received(
    server: Server, client: Client
) -> None:
    client.pause_reading()
    words = ["big:100000"] * 300
    client.say(*words)
    await turns(50)
    started = len(server.desk.started)

    client.resume_reading()
    answers = await client.hear(300)

    # The socket buffers of both ends take some megabytes, our own a few hundred kilobytes.
    assert started < 200
    assert 300 == len(answers)
    assert words == server.desk.started


async def test_peer_that_does_not_read_costs_one_piece_of_a_file(
    server: Server, client: Client
) -> None:
    server.desk.file = file = Numbers(2**30)
    file.read_into = lambda position, room, **_: len(room)  # type: ignore[method-assign]
    client.pause_reading()
    client.say("stored:", "stored:", "stored:")
    await turns(50)

    assert ["stored:"] == server.desk.started
    assert server.metrics.value("network_bytes_out") < 64 * 1024 * 1024


def test_connection_limits_match_the_documentation() -> None:
    config = BrokerConfig()

    assert stated("announcement") == FIRST_ROOM_BYTES
    assert stated("unread-records") == SMALL
    assert stated("pipelined-turn") == TURN_S
    assert stated("request-memory") == MOST_REQUEST_BYTES
    assert stated("request-patience") == PATIENCE_S
    assert stated("request-impatience") == IMPATIENCE_S
    assert stated("queued-requests") == config.queued_max_requests


@pytest.mark.parametrize(
    ("machine", "limit"),
    [(2**40, MOST_REQUEST_BYTES), (2**34, 2**28), (2**20, 100 * 2**20)],
    ids=["huge", "16 GiB", "tiny"],
)
def test_memory_for_requests_depends_on_the_machine_unless_configured(
    monkeypatch: pytest.MonkeyPatch, machine: int, limit: int
) -> None:
    monkeypatch.setattr("barnabas.server.network.resources.memory_bytes", lambda: machine)

    assert (limit, 12_000_000) == (Server().memory.limit_bytes, limited().memory.limit_bytes)


async def test_number_of_started_requests_is_limited() -> None:
    """
    The first request of each connection always starts; the limit applies to those behind it, over
    all connections.
    """
    async with (
        Server(queued_max_requests="3") as server,
        await server.client() as first,
        await server.client() as second,
    ):
        first.say(*(f"delay:{n}" for n in range(6)))
        await turns()
        second.say(*(f"delay:{n}" for n in range(6, 8)))
        await turns()
        started = list(server.desk.started)
        for n in "01236457":
            server.desk.answer(n)
            await turns(3)

        assert [f"delay:{n}" for n in "01236"] == started
        assert ["012345", "67"] == ["".join(await first.hear(6)), "".join(await second.hear(2))]
        assert 0 == server.resources.queued_requests


async def test_long_poll_ends_when_requests_behind_it_cannot_be_started() -> None:
    """
    The broker stops reading from the peer, and would not notice that it is gone.
    """
    async with Server(queued_max_requests="1") as server, await server.client() as client:
        client.say(*(f"poll:{n}" for n in range(1000)))

        assert ["hurried"] * 998 == await client.hear(998)
        await turns()
        assert not any(server.desk.delayed[n].done for n in ("998", "999"))


async def test_requests_of_a_disconnected_peer_do_not_count() -> None:
    async with Server(queued_max_requests="3") as server:
        async with await server.client() as client:
            client.say(*(f"delay:{n}" for n in range(4)))
            await turns()
            queued = server.resources.queued_requests
        await turns()

        assert (3, 0) == (queued, server.resources.queued_requests)
        assert 0 == server.memory.used_bytes


def slow_clock(step_s: float = TURN_S / 3) -> Callable[[], float]:
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


async def test_other_connections_are_served_before_pipelined_requests(server: Server) -> None:
    server.resources.backlog = Backlog(slow_clock())
    (crowded, sent), (other, _) = server.connected(), server.connected()

    feed(crowded, b"".join(framed(f"now:{n}") for n in range(100)))
    feed(other, framed("now:other"))
    at_first = list(server.desk.started)
    await turns(200)

    assert "now:other" == at_first[-1]
    assert len(at_first) < 10
    server.desk.started.remove("now:other")
    assert [f"now:{n}" for n in range(100)] == server.desk.started
    assert b"".join(framed(str(n)) for n in range(100)) == bytes(sent.written)
    for connection in (crowded, other):
        connection.close()


async def test_large_requests_of_many_peers_let_others_be_served(server: Server) -> None:
    server.resources.backlog = Backlog(slow_clock())
    numbers = [f"{n}-{'x' * LARGE_BYTES}" for n in range(100)]
    peers = [server.connected() for _ in numbers]
    (other, _) = server.connected()

    for (peer, _), number in zip(peers, numbers, strict=True):
        feed(peer, framed(f"now:{number}"))
    feed(other, framed("now:other"))
    at_first = list(server.desk.started)
    await turns(200)

    assert "now:other" == at_first[-1]
    assert len(at_first) < 10
    server.desk.started.remove("now:other")
    assert sorted(f"now:{number}" for number in numbers) == sorted(server.desk.started)
    assert [framed(number) for number in numbers] == [bytes(sent.written) for _, sent in peers]
    for connection, _ in [*peers, (other, None)]:
        connection.close()


async def test_slow_requests_of_many_peers_let_others_be_served(server: Server) -> None:
    peers = [server.connected() for _ in range(3 * MOST_SLOW)]
    (other, _) = server.connected()

    for number, (peer, _) in enumerate(peers):
        feed(peer, framed(f"slow:{number}"))
    at_first = list(server.desk.started)
    await asyncio.sleep(0)
    feed(other, framed("now:other"))
    at_once = list(server.desk.started)
    await turns(200)

    assert MOST_SLOW == len(at_first)
    assert "now:other" == at_once[-1]
    assert len(at_once) < 2 * MOST_SLOW
    assert [framed(str(n)) for n in range(len(peers))] == [bytes(s.written) for _, s in peers]
    for connection, _ in [*peers, (other, None)]:
        connection.close()


async def test_large_requests_that_are_brief_do_not_wait(server: Server) -> None:
    server.resources.backlog = Backlog(slow_clock(SLOW_S / 2))
    peers = [server.connected() for _ in range(100)]

    for peer, _ in peers:
        feed(peer, framed(f"now:{'x' * LARGE_BYTES}"))

    assert 100 == len(server.desk.started)
    assert not server.resources.backlog.is_busy
    for peer, _ in peers:
        peer.close()


async def test_pipelining_peers_take_turns(server: Server) -> None:
    server.resources.backlog = Backlog(slow_clock())
    peers = {name: server.connected()[0] for name in "abc"}

    for name, peer in peers.items():
        feed(peer, b"".join(framed(f"now:{name}") for n in range(50)))
    for _ in range(40):
        await asyncio.sleep(0)

    shares = Counter(server.desk.started)
    assert 40 <= shares.total() < 150
    assert max(shares.values()) - min(shares.values()) < 10
    for peer in peers.values():
        peer.close()


@pytest.mark.parametrize("first", ["task:a", "delay:a"])
async def test_requests_behind_a_waiting_one_take_no_turn(first: str) -> None:
    async with Server(queued_max_requests="1") as server:
        connection, sent = server.connected()

        feed(connection, b"".join(map(framed, [first, "delay:b", "now:c", "now:d"])))
        await turns()
        is_busy = server.resources.backlog.is_busy
        if first == "task:a":
            server.desk.tasks["a"].set()
            await turns()
        else:
            server.desk.answer("a")
        server.desk.answer("b")
        await turns()

        assert not is_busy
        assert sent.written.endswith(framed("c") + framed("d"))
        connection.close()


LARGE: Final = 9_000_000
"""
A frame whose announcement is not believed.
"""


def limited(limit_bytes: int = 12_000_000) -> Server:
    """
    A server that takes requests of up to 12 MB.
    """
    server = Server(queued_max_request_bytes="12000000", socket_request_max_bytes="12000000")
    server.memory.limit_bytes = limit_bytes
    return server


async def test_large_requests_are_received_one_after_another_beyond_the_budget() -> None:
    """
    Three peers would hold more than the budget in incomplete requests: two are not read from.
    """
    server = limited()
    peers = [server.connected() for _ in range(3)]
    stream = framed("now:" + "x" * LARGE)
    left = [stream] * 3
    fewest = 3
    while any(left):
        for n, (connection, transport) in enumerate(peers):
            if transport.reading and left[n]:
                piece, left[n] = left[n][:100_000], left[n][100_000:]
                feed(connection, piece)
        await asyncio.sleep(0)
        fewest = min(fewest, [transport.reading for _, transport in peers].count(True))
        assert server.memory.used_bytes <= 12_000_000 + 2 * LARGE

    assert 1 == fewest
    for _, transport in peers:
        assert framed("x" * LARGE) == transport.take()
        transport.close()
    assert 0 == server.memory.used_bytes


async def test_small_requests_are_served_when_the_request_memory_is_exhausted() -> None:
    server = limited(100_000)
    (hog, _), (small, answers) = server.connected(), server.connected()
    feed(hog, framed("now:" + "x" * LARGE)[:200_000])
    feed(small, framed("now:" + "y" * 50_000))

    assert server.memory.is_used_up
    assert framed("y" * 50_000) == answers.take()


async def test_long_poll_is_answered_at_once_when_the_request_memory_is_exhausted() -> None:
    server = limited(100_000)
    (hog, _), (poll, answers) = server.connected(), server.connected()
    feed(poll, framed("poll:before"))
    feed(hog, framed("now:" + "x" * LARGE)[:200_000])
    before = answers.take()

    feed(poll, framed("poll:after"))
    await turns(5)

    assert (b"", framed("hurried") * 2) == (before, answers.take())


@pytest.mark.parametrize("short", [True, False])
async def test_stalled_request_is_dropped_when_others_wait_for_memory(
    caplog: pytest.LogCaptureFixture, *, short: bool
) -> None:
    """
    After 30 seconds, and only while the memory is used up. The largest request is dropped first,
    and no more than necessary.
    """
    caplog.set_level("INFO")
    server = limited()
    (large, large_end), (little, little_end) = server.connected(), server.connected()
    feed(large, framed("now:" + "x" * LARGE)[:900_000])
    feed(little, framed("now:" + "x" * LARGE)[:100_000])
    server.memory.limit_bytes = 500_000 if short else 2_500_000
    feed(little, b"x" * 200_000)
    await server.clock.pass_time(PATIENCE_S - LOOK_EVERY_S)
    early = large_end.closed

    await server.clock.pass_time(2 * LOOK_EVERY_S)

    assert not early
    assert short == large_end.closed
    assert short == ("queued.max.request.bytes are used up" in caplog.text)
    assert not little_end.closed


async def test_unread_responses_count_towards_the_request_memory(server: Server) -> None:
    async with await server.client() as client:
        client.pause_reading()
        client.say(*["big:1000000"] * 30)
        await turns(50)
        held = server.memory.used_bytes
        server.memory.limit_bytes = 1
        server.memory.wait(next(iter(server.memory.holders)))

        await server.clock.pass_time(PATIENCE_S + LOOK_EVERY_S)
        await turns()

        assert held > 0
        assert 0 == server.memory.used_bytes == len(server.connections)


@pytest.mark.parametrize("share", [1.1, 0.9])
async def test_peers_that_do_not_read_are_dropped_soon_far_beyond_the_limit(
    server: Server, share: float
) -> None:
    """
    Small requests are always served, and their answers may be large. The peers that hold most are
    dropped first, and no more than necessary.
    """
    clients = [await server.client() for _ in range(2)]
    for client in clients:
        client.pause_reading()
        client.say(*["big:1000000"] * 30)
        await turns(50)
    memory = server.memory
    memory.limit_bytes = round(memory.used_bytes / FAR_OVER / share)
    memory._watch()

    await server.clock.pass_time(IMPATIENCE_S + 2 * LOOK_EVERY_S)
    await turns()

    assert (1 if share > 1 else 2) == len(server.connections)
    assert memory.used_bytes <= FAR_OVER * memory.limit_bytes
    for client in clients:
        await client.close()


async def test_heap_is_trimmed_after_many_connections_have_closed() -> None:
    freed = []
    server = Server()
    server.memory._freed = lambda: freed.append(server.memory.used_bytes)
    peers = [server.connected() for _ in range(20)]
    for connection, _ in peers:
        feed(connection, framed("now:" + "x" * LARGE)[:2_000_000])
    for _, transport in peers:
        transport.close()

    await server.clock.pass_time(LOOK_EVERY_S)

    assert [0] == freed


async def test_dead_peer_blocks_nobody(server: Server) -> None:
    async with await server.client() as client:
        client.say("delay:a", "poll:b")
        await turns()
    await turns()

    assert [True, True] == [delayed.done for delayed in server.desk.delayed.values()]
    assert 0 == len(server.connections)


@pytest.mark.parametrize("aborted", [False, True])
async def test_task_survives_its_connection(
    server: Server, client: Client, *, aborted: bool
) -> None:
    client.say("task:a")
    await turns()
    (connection,) = server.connections._open

    if aborted:
        connection.abort()
    else:
        await client.close()
    await turns()

    assert 1 == len(server.resources.unfinished)
    server.desk.tasks["a"].set()
    await turns()
    assert 0 == len(server.resources.unfinished)


async def test_idle_connection_is_closed_eventually() -> None:
    async with Server(connections_max_idle_ms="1000") as server, await server.client() as client:
        for _ in range(2):
            client.say("now:a")
            await client.hear()
            await server.clock.pass_time(0.9)
        before = len(server.connections)
        await server.clock.pass_time(0.1)

        assert 1 == before
        assert await client.disconnected()


async def test_connection_waiting_for_a_response_is_not_idle() -> None:
    async with Server(connections_max_idle_ms="1000") as server, await server.client() as client:
        client.say("delay:a")
        await turns()
        await server.clock.pass_time(10.0)
        server.desk.answer("a")

        assert ["a"] == await client.hear()


async def has_room_for_two(server: Server) -> bool:
    async with server, await server.client() as first, await server.client() as second:
        async with await server.client() as third:
            is_full = await third.disconnected()
        first.say("now:a")
        second.say("now:b")
        return is_full and ["a", "b"] == await first.hear() + await second.hear()


@pytest.mark.parametrize("on_all_addresses", [False, True])
async def test_connections_per_address_are_limited(on_all_addresses: bool) -> None:
    """
    A listener on all addresses sees IPv4 clients as IPv6 ones (``::ffff:127.0.0.1``).
    """
    assert await has_room_for_two(
        Server(
            on_all_addresses=on_all_addresses,
            max_connections_per_ip="1",
            max_connections_per_ip_overrides="127.0.0.1:2",
        )
    )


@pytest.mark.parametrize(
    ("host", "override"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::ffff:7f00:1", "localhost"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::1", "localhost"),
        ("FE80::A", "fe80:0:0:0:0:0:0:a"),
    ],
)
async def test_limit_of_an_address_applies_however_the_address_is_written(
    monkeypatch: pytest.MonkeyPatch, host: str, override: str
) -> None:
    where = {"localhost": ["127.0.0.1", "::1"]}.get(override, [override])
    monkeypatch.setattr(
        "barnabas.server.network.registry.socket.getaddrinfo",
        lambda *_: [(0, 0, 0, "", (each, 0)) for each in where],
    )
    limits = ConnectionLimits.of(
        BrokerConfig.parse({"max.connections.per.ip.overrides": f"{override}:2"})
    )

    assert 2 == limits.by_address[host_address(host)]


def test_stored_override_of_a_host_without_an_address_is_logged_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    texts = {"max.connections.per.ip.overrides": "nohost.invalid:2,127.0.0.1:3"}

    assert {"127.0.0.1": 3} == ConnectionLimits.of(BrokerConfig.parse(texts)).by_address
    assert "nohost.invalid" in caplog.text


DESCRIPTOR_LIMIT = "barnabas.server.resources.descriptors.descriptor_limit"


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(300, 200), (20_000, 17_500), (50, 1), (None, 2**31 - 1)]
)
def test_connections_leave_descriptors_for_files_whatever_their_limit_is(
    monkeypatch: pytest.MonkeyPatch, descriptors: int | None, connections: int
) -> None:
    monkeypatch.setattr(DESCRIPTOR_LIMIT, lambda: descriptors)

    assert connections == ConnectionLimits.of(BrokerConfig()).total
    assert stated("descriptors-of-files") == LEAST_FILES


async def test_connection_without_a_free_descriptor_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    It cannot wait, since a waiting connection has a descriptor.
    """
    monkeypatch.setattr(DESCRIPTOR_LIMIT, lambda: LEAST_FILES + 2)

    assert await has_room_for_two(Server())


async def test_files_may_use_the_descriptors_that_connections_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DESCRIPTOR_LIMIT, lambda: 200)
    open_files = OpenFiles(1000)
    holders = [Held() for _ in range(150)]
    async with Server(open_files) as server:
        for holder in holders:
            open_files.add(holder)
        clients = [await server.client() for _ in range(80)]
        await turns()
        crowded, left = open_files.limit, len(open_files)
        for client in clients:
            await client.close()
        await turns()

        share = stated("open-files") / 100 / (2 if MAPS_KEEP_DESCRIPTORS else 1)
        assert (120 * share, 200 * share) == (crowded, open_files.limit)
        assert crowded == left
        assert 150 - left == sum(holder.is_given_back for holder in holders)


class Held:
    was_used = False
    is_given_back = False

    def give_back(self) -> None:
        self.is_given_back = True


@pytest.fixture
def trimmed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """
    What was done to give memory back to the system.
    """
    done: list[str] = []
    monkeypatch.setattr("barnabas.server.network.registry.trim_heap", lambda: done.append("trim"))
    return done


async def let_a_crowd_leave(server: Server) -> None:
    clients = [await server.client() for _ in range(CROWD + 9)]
    await turns()
    for client in clients:
        await client.close()
    await turns()


async def test_heap_is_trimmed_once_per_second_of_closed_connections(trimmed: list[str]) -> None:
    async with (
        Server(let_go=lambda: trimmed.append("let go")) as server,
        await server.client(),
    ):
        await let_a_crowd_leave(server)
        at_once = [*trimmed]

        server.clock.advance(LOOK_EVERY_S)
        await turns()

        assert ([], ["let go", "trim"]) == (at_once, trimmed)


@pytest.mark.parametrize("is_busy", [False, True])
async def test_heap_is_not_trimmed_after_the_stop(trimmed: list[str], is_busy: bool) -> None:
    """
    The executor that does it takes no more work then.
    """
    async with Server(is_busy=lambda: is_busy) as server, await server.client():
        await let_a_crowd_leave(server)
        if is_busy:
            server.clock.advance(LOOK_EVERY_S)

    for _ in range(MOST_LOOKS + 1):
        server.clock.advance(LOOK_EVERY_S)
    await turns()

    assert [] == trimmed


@pytest.mark.parametrize("busy_s", [3, 1000])
async def test_heap_is_trimmed_once_large_requests_are_served_or_after_a_while(
    trimmed: list[str], busy_s: int
) -> None:
    seconds = 0
    async with (
        Server(is_busy=lambda: seconds < busy_s) as server,
        await server.client(),
    ):
        await let_a_crowd_leave(server)

        while not trimmed:
            seconds += 1
            server.clock.advance(LOOK_EVERY_S)
            await turns()

        assert min(busy_s, 1 + MOST_LOOKS) == seconds


async def test_connection_beyond_the_limit_waits_until_another_one_ends() -> None:
    async with Server(max_connections="1") as server:
        async with await server.client() as first:
            first.say("now:a")
            await first.hear()
            second = await server.client()
            second.say("now:b")
            await turns()
            assert ["now:a"] == server.desk.started

        assert ["b"] == await second.hear()
        await second.close()


async def test_draining_answers_received_requests_and_then_closes(
    server: Server, client: Client
) -> None:
    client.say("poll:a", "task:b")
    await turns()

    drained = asyncio.create_task(server.connections.drain(5.0))
    await turns()
    client.say("now:late")
    server.desk.tasks["b"].set()

    assert ["hurried", "b"] == await client.hear(2)
    assert await client.disconnected()
    await client.close()
    await drained
    assert ["poll:a", "task:b"] == server.desk.started


async def test_draining_ends_after_a_timeout(server: Server, client: Client) -> None:
    client.say("task:never")
    await turns()

    await server.connections.drain(0.01)

    assert await client.disconnected()
    assert not server.resources.unfinished


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, 100 * 2**20 + 1])
async def test_impossible_frame_size_closes_the_connection(
    server: Server, client: Client, size: int
) -> None:
    client.send_bytes(pack(">i", size))

    assert await client.disconnected()


@pytest.mark.parametrize(
    ("data", "hint"),
    [(b"GET / HTTP/1.1\r\n\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00\x01\x00", "TLS")],
    ids=["http", "tls"],
)
async def test_client_of_another_protocol_is_logged(
    server: Server, client: Client, caplog: pytest.LogCaptureFixture, data: bytes, hint: str
) -> None:
    caplog.set_level("INFO")

    client.send_bytes(data)

    assert await client.disconnected()
    assert hint in caplog.text


async def test_frame_received_byte_by_byte_is_assembled() -> None:
    connection, transport = Server().connected()

    for byte in framed("now:slow") + framed("now:er"):
        feed(connection, bytes([byte]))

    assert framed("slow") + framed("er") == transport.take()


@pytest.mark.parametrize(
    ("size", "configured", "grows"),
    [
        (900_000, 102_400, True),
        (90_000, 102_400, False),
        (900_000, 1_000_000, False),
        (2_500_000, 1_048_576, False),
        (900_000, -1, False),
    ],
    ids=["large", "small", "has room", "has more room", "the system's"],
)
async def test_socket_buffer_is_enlarged_for_large_frames(
    size: int, configured: int, *, grows: bool
) -> None:
    """
    For frames larger than the configured buffer, unless the system chooses its size (-1).
    """
    server = Server(socket_receive_buffer_bytes=str(configured))
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10_000)
    before = ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: LoopProtocol(server.connection()), sock=ours)
    theirs.setblocking(False)

    with theirs:
        await loop.sock_sendall(theirs, framed("now:" + "x" * size))
        answer = b""
        while len(answer) < size + 4:
            answer += await loop.sock_recv(theirs, size)
        after = ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    assert framed("x" * size) == answer
    assert grows == (after > before)
    await turns()


@pytest.mark.parametrize("seed", range(200))
async def test_responses_keep_their_order_however_requests_finish(seed: int) -> None:
    """
    Answers are ready at once, delayed or absent, and requests finish in any order while others
    arrive: each answer is sent once, in the order of the requests.
    """
    choose = random.Random(seed)
    server = Server()
    connection, transport = server.connected()
    expected: list[str] = []
    pending: list[str] = []

    for number in range(choose.randrange(1, 60)):
        verb = choose.choice(["now", "delay", "delay", "poll", "none"])
        feed(connection, framed(f"{verb}:{number}"))
        if verb != "none":
            expected.append("hurried" if verb == "poll" else str(number))
        if verb == "delay":
            pending.append(str(number))
        while pending and choose.random() < 0.4:
            server.desk.answer(pending.pop(choose.randrange(len(pending))))
    choose.shuffle(pending)
    server.desk.answer(*pending)
    for delayed in server.desk.delayed.values():
        delayed.hurry()
    await turns(5)

    assert b"".join(map(framed, expected)) == transport.take()
    transport.close()


async def test_nothing_is_spliced_into_a_closing_socket() -> None:
    """
    Its descriptor may already belong to another connection.
    """

    class Closing(FakeTransport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return ours if name == "socket" else super().get_extra_info(name, default)

        def is_closing(self) -> bool:
            return closing

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    closing = False
    server = Server()
    server.desk.file = Numbers(100_000, spliceable=True)
    connection, transport = server.connected(Closing())

    with ours, theirs:
        feed(connection, framed("stored:"))
        while_open = theirs.recv(200_000)
        closing = True
        feed(connection, framed("stored:"))
        with pytest.raises(BlockingIOError):
            theirs.recv(200_000)

    assert server.desk.stored_frame == while_open[4:]
    assert while_open == bytes(transport.written)


# Quotas


def throttled(server: Server, seconds: float) -> Connection:
    (connection,) = server.connections._open
    connection.client.throttle(seconds)
    return connection


async def test_no_request_starts_while_a_peer_is_throttled(server: Server, client: Client) -> None:
    client.say("now:a")
    assert ["a"] == await client.hear()
    throttled(server, 5.0)

    client.say("now:b", "now:c")
    await turns()
    assert ["now:a"] == server.desk.started

    await server.clock.pass_time(5.0)
    assert ["b", "c"] == await client.hear(2)


async def test_responses_are_sent_while_a_peer_is_throttled(server: Server, client: Client) -> None:
    client.say("delay:a")
    await turns()
    throttled(server, 5.0)

    server.desk.answer("a")

    assert ["a"] == await client.hear()


async def test_longest_throttle_time_counts(server: Server, client: Client) -> None:
    await turns()
    for seconds in (5.0, 7.0, 1.0):
        throttled(server, seconds)
    client.say("now:a")

    await server.clock.pass_time(6.9)
    await turns()
    assert [] == server.desk.started

    await server.clock.pass_time(0.1)
    assert ["a"] == await client.hear()


async def test_throttled_peer_does_not_block_others(server: Server, client: Client) -> None:
    await turns()
    throttled(server, 5.0)
    client.say("now:a")

    async with await server.client() as other:
        other.say("now:b")
        assert ["b"] == await other.hear()


async def test_throttled_peer_is_answered_and_closed_at_shutdown(
    server: Server, client: Client
) -> None:
    client.say("delay:a", "now:b")
    await turns()
    throttled(server, 1e6)
    client.say("now:c")
    await turns()

    draining = asyncio.ensure_future(server.connections.drain(60.0))
    await turns()
    server.desk.answer("a")

    assert ["a", "b", "c"] == await client.hear(3)
    assert await client.disconnected()
    await draining


async def test_throttled_peer_that_disconnects_leaves_no_timer(
    server: Server, client: Client
) -> None:
    await turns()
    connection = throttled(server, 5.0)
    connection.abort()
    await turns()

    await server.clock.pass_time(10.0)
    connection.client.throttle(5.0)

    assert 0 == len(server.connections)
