"""
A connection: order of answers, back-pressure, the end.

What requests mean is played by ``Desk``: a frame is a word that says how it is to be answered.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from struct import pack
from typing import Any, Final, cast

import pytest

from barnabas.protocol.framing import FIRST_ROOM_BYTES
from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.metrics import Metrics
from barnabas.server.network.acceptor import LoopProtocol
from barnabas.server.network.backlog import TURN_S, Backlog
from barnabas.server.network.connection import Connection
from barnabas.server.network.registry import CROWD, ConnectionLimits, Connections
from barnabas.server.network.request_memory import (
    FAR_OVER,
    IMPATIENCE_S,
    LOOK_EVERY_S,
    PATIENCE_S,
)
from barnabas.server.network.resources import MOST_REQUEST_BYTES
from barnabas.server.network.sender import BUFFER_BYTES, LEAST_SPLICED, MOST_AT_ONCE, SMALL
from barnabas.server.purgatory import Delayed, Outcome
from barnabas.server.requests import client as requests_client
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.resources.descriptors import LEAST_FILES
from barnabas.server.security.host_address import host_address
from barnabas.server.security.security import Security
from barnabas.storage.fs.disk import MAPS_KEEP_DESCRIPTORS
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.fs.open_files import OpenFiles
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.testing.manual_clock import ManualClock
from tests.support.fake_transport import FakeTransport, feed
from tests.support.limits import stated
from tests.support.wire_client import Disconnected, WireClient

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0)


class Hurried(Delayed):
    """
    An answer that can be had early, as that of a waiting fetch.
    """

    __slots__ = ()

    def hurry(self) -> None:
        self.answer(cast(Any, "hurried"))


class Answer:
    """
    Stands for a request that waits for its answer.
    """

    held_bytes = 1000

    def buffers(self, outcome: Outcome) -> list[Any]:
        if isinstance(outcome, CloseConnection):
            raise outcome
        return [] if outcome is None else [framed(str(outcome))]


class Numbers:
    """
    A file whose byte at each position is known, and which may not be in the page cache.
    """

    path = Path("numbers.log")

    def __init__(
        self, size: int, *, cached: bool, first: int = 0, spliceable: bool = False
    ) -> None:
        self.size = size
        self.cached = cached
        self.first = first
        self.spliceable = spliceable
        self.reads = 0
        self.largest_read = 0

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
    Answers frames as they say.
    """

    def __init__(self) -> None:
        self.started: list[str] = []
        self.delayed: dict[str, Delayed] = {}
        self.tasks: dict[str, asyncio.Event] = {}
        self.file = Numbers(0, cached=True)

    def __call__(self, frame: memoryview, client: requests_client.Client) -> Any:
        word = bytes(frame).decode()
        self.started.append(word)
        verb, _, name = word.partition(":")
        return getattr(self, verb)(name)

    def now(self, name: str) -> list[bytes]:
        return [framed(name)]

    def none(self, name: str) -> None:
        return None

    def close(self, name: str) -> None:
        raise CloseConnection(f"no {name}")

    def delay(self, name: str) -> tuple[Answer, Delayed]:
        self.delayed[name] = Delayed()
        return Answer(), self.delayed[name]

    def poll(self, name: str) -> tuple[Answer, Delayed]:
        self.delayed[name] = Hurried()
        return Answer(), self.delayed[name]

    def task(self, name: str) -> tuple[Answer, Awaitable[str]]:
        event = self.tasks[name] = asyncio.Event()

        async def work() -> str:
            await event.wait()
            return name

        return Answer(), work()

    def big(self, size: str) -> list[bytes]:
        return [framed("x" * int(size))]

    def stored(self, _: str) -> list[Any]:
        size = self.file.size
        records = StoredRecords(FileSlice(cast(Any, self.file), 0, size))
        return [pack(">i", size + 2) + b"<", records, b">"]


def framed(text: str) -> bytes:
    data = text.encode()
    return pack(">i", len(data)) + data


class Server:
    """
    Connections on a free port.
    """

    def __init__(self, open_files: OpenFiles | None = None, **options: str) -> None:
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
        )
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self, *, on_all_addresses: bool = False) -> None:
        if on_all_addresses:
            listening = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            listening = socket.create_server(("127.0.0.1", 0))
        self._server = await asyncio.get_running_loop().create_server(
            lambda: LoopProtocol(Connection(self.connections.resources, LISTENER)), sock=listening
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self.connections.drain(5.0)

    async def client(self) -> Client:
        return await Client.open(self.port)


class Client(WireClient):
    """
    Sends words.
    """

    def say(self, *words: str) -> None:
        self.send_bytes(b"".join(framed(word) for word in words))

    async def hear(self, count: int = 1) -> list[str]:
        return [(await self.receive_frame()).decode() for _ in range(count)]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with await server.client() as client:
        yield client


async def turns(count: int = 20) -> None:
    """
    Let the loop run, also for what has to go through a socket.
    """
    for _ in range(count):
        await asyncio.sleep(0.001)


async def test_responses_are_sent_in_request_order(client: Client) -> None:
    client.say(*(f"now:{n}" for n in range(1000)))

    assert [str(n) for n in range(1000)] == await client.hear(1000)


async def test_response_waits_for_earlier_ones(server: Server, client: Client) -> None:
    client.say("delay:a", "delay:b", "now:c")
    await turns()

    server.desk.delayed["b"].answer(cast(Any, "b"))
    await turns()
    server.desk.delayed["a"].answer(cast(Any, "a"))

    assert ["a", "b", "c"] == await client.hear(3)


async def test_requests_behind_a_delayed_response_take_effect(
    server: Server, client: Client
) -> None:
    client.say("delay:a", "none:b", "now:c")
    await turns()

    assert ["delay:a", "none:b", "now:c"] == server.desk.started
    server.desk.delayed["a"].answer(cast(Any, "a"))
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


async def test_long_poll_ends_when_a_later_response_is_ready(client: Client) -> None:
    client.say("poll:a", "poll:b")
    await turns()

    client.say("now:c")

    assert ["hurried", "hurried", "c"] == await client.hear(3)


async def test_two_long_polls_do_not_end_each_other(server: Server, client: Client) -> None:
    client.say("poll:a", "poll:b")
    await turns()

    assert not any(delayed.done for delayed in server.desk.delayed.values())


async def test_long_poll_ends_when_a_later_request_is_answered(
    server: Server, client: Client
) -> None:
    client.say("poll:a", "poll:b")
    await turns()

    server.desk.delayed["b"].answer(cast(Any, "b"))

    assert ["hurried", "b"] == await client.hear(2)


async def test_request_without_a_response_leaves_no_gap(client: Client) -> None:
    client.say("now:a", "none:b", "now:c")

    assert ["a", "c"] == await client.hear(2)


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


async def test_records_are_sent_from_their_file_in_pieces(server: Server, client: Client) -> None:
    server.desk.file = Numbers(1_500_000, cached=True)
    client.say("stored:", "now:after")

    frame = await client.receive_frame()

    assert b"<" + server.desk.file.read(0, 1_500_000) + b">" == frame
    assert 1_500_000 // BUFFER_BYTES + 1 == server.desk.file.reads
    assert ["after"] == await client.hear()


async def test_cached_bytes_are_sent_before_the_rest_is_read_in_the_executor(
    server: Server, client: Client
) -> None:
    """
    A file of which every other read finds nothing, and each gives a little only.
    """
    server.desk.file = file = Numbers(300_000, cached=True)
    whole_read = file.read_into

    def read_into(position: int, room: memoryview, *, nowait: bool = False) -> int:
        if not nowait:
            return whole_read(position, room[:10_000])
        file.cached = not file.cached
        return whole_read(position, room[:10_000], nowait=True)

    file.read_into = read_into  # type: ignore[method-assign]
    server.desk.stored = lambda _: [  # type: ignore[method-assign]
        pack(">i", 300_000),
        *(
            StoredRecords(FileSlice(cast(Any, file), at, 10_000))
            for at in range(0, 300_000, 10_000)
        ),
    ]
    client.say("stored:", "now:after")

    frame = await client.receive_frame()

    assert file.read(0, 300_000) == frame
    assert ["after"] == await client.hear()


async def test_unsent_buffer_is_not_reused(server: Server, client: Client) -> None:
    """
    While several peers do not read, what is prepared for others does not get into their answers.
    """
    size = 8 << 20
    slow = [await server.client() for _ in range(6)]
    for number, other in enumerate(slow):
        other.pause_reading()
        server.desk.file = Numbers(size, cached=True, first=number)
        other.say("stored:")
        await turns()
    server.desk.file = Numbers(size, cached=True, first=200)
    client.say("stored:")
    frame = await client.receive_frame()

    for other in slow:
        other.resume_reading()
    frames = [await other.receive_frame() for other in slow]

    assert b"<" + server.desk.file.read(0, size) + b">" == frame
    for number, found in enumerate(frames):
        assert b"<" + Numbers(size, cached=True, first=number).read(0, size) + b">" == found
    for other in slow:
        await other.close()


async def test_large_record_sets_are_sent_without_being_read(
    server: Server, client: Client
) -> None:
    server.desk.file = Numbers(200_000, cached=True, spliceable=True)
    client.say("stored:", "now:after")

    frame = await client.receive_frame()

    assert b"<" + server.desk.file.read(0, 200_000) + b">" == frame
    assert 0 == server.desk.file.reads
    assert ["after"] == await client.hear()


@pytest.mark.parametrize("spliceable", [False, True])
async def test_records_may_be_the_last_part_of_a_response(
    server: Server, client: Client, *, spliceable: bool
) -> None:
    """
    As in the older versions of a fetch, whose answers end with the records.
    """
    file = Numbers(200_000, cached=True, spliceable=spliceable)
    records = [StoredRecords(FileSlice(cast(Any, file), 0, size)) for size in (0, 200_000, 0)]
    server.desk.stored = lambda _: [  # type: ignore[method-assign]
        *(pack(">i", 200_000), b"", *records, b"")
    ]
    client.say("stored:", "now:after")

    assert file.read(0, 200_000) == await client.receive_frame()
    assert ["after"] == await client.hear()


async def test_small_record_sets_are_read_and_sent_with_the_rest(
    server: Server, client: Client
) -> None:
    server.desk.file = Numbers(LEAST_SPLICED - 1, cached=True, spliceable=True)
    client.say("stored:")

    frame = await client.receive_frame()

    assert LEAST_SPLICED + 1 == len(frame)
    assert 1 == server.desk.file.reads


async def test_full_socket_takes_the_rest_once_its_peer_has_read(
    server: Server, client: Client
) -> None:
    """
    The next thing that the transport sends tells when, for which a little is read.
    """
    size = 40_000_000
    server.desk.file = Numbers(size, cached=True, first=9, spliceable=True)
    client.pause_reading()
    client.say("stored:", "now:after")
    await turns()
    sent = server.metrics.value("network_bytes_out")
    read_for_the_peer = server.desk.file.largest_read

    client.resume_reading()
    frame = await client.receive_frame()

    assert sent < size
    assert 0 < read_for_the_peer <= SMALL
    assert b"<" + server.desk.file.read(0, size) + b">" == frame
    assert ["after"] == await client.hear()
    assert server.desk.file.largest_read < LEAST_SPLICED, "the last piece may be too few to splice"


async def test_other_connections_are_served_during_a_large_response() -> None:
    server = Server()
    connection = Connection(server.connections.resources, LISTENER)
    transport = FakeTransport(connection.connection_lost)
    connection.connection_made(transport)
    server.desk.file = Numbers(3 * MOST_AT_ONCE, cached=True)
    feed(connection, framed("stored:") + framed("now:after") + framed("close:now"))
    pieces = [transport.take()]
    while not transport.closed:
        assert ["stored:"] == server.desk.started
        await asyncio.sleep(0)
        pieces.append(transport.take())

    assert all(len(piece) < MOST_AT_ONCE + BUFFER_BYTES for piece in pieces)
    whole = server.desk.stored("")
    expected = whole[0] + server.desk.file.read(0, 3 * MOST_AT_ONCE) + whole[2] + framed("after")
    assert expected == b"".join(pieces)


async def test_deferred_bytes_are_sent_before_the_connection_closes() -> None:
    server = Server()
    connection = Connection(server.connections.resources, LISTENER)
    transport = FakeTransport(connection.connection_lost)
    connection.connection_made(transport)
    server.desk.file = Numbers(3 * MOST_AT_ONCE, cached=True)
    feed(connection, framed("stored:"))
    assert len(transport.written) < 2 * MOST_AT_ONCE

    connection.close()

    assert 3 * MOST_AT_ONCE + len(b"size" + b"<" + b">") == len(transport.written)
    await asyncio.sleep(0)


async def test_records_in_cold_pages_are_read_in_the_executor(
    server: Server, client: Client
) -> None:
    server.desk.file = Numbers(1_500_000, cached=False)
    client.say("stored:", "now:after")

    frame = await client.receive_frame()

    assert b"<" + server.desk.file.read(0, 1_500_000) + b">" == frame
    assert ["after"] == await client.hear()


async def test_missing_bytes_of_a_started_response_close_the_connection(
    server: Server, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    server.desk.file = Numbers(1000, cached=True)
    records = StoredRecords(FileSlice(cast(Any, server.desk.file), 0, 2000))
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
    server.desk.file = file = Numbers(0, cached=True)
    file.size = 2**30
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
def test_memory_for_requests_depends_on_the_machine(
    monkeypatch: pytest.MonkeyPatch, machine: int, limit: int
) -> None:
    """
    Unless ``queued.max.request.bytes`` says how much it is.
    """
    monkeypatch.setattr("barnabas.server.network.resources.memory_bytes", lambda: machine)

    assert limit == Server().connections.resources.request_memory.limit_bytes
    assert 12_000_000 == limited().connections.resources.request_memory.limit_bytes


async def test_number_of_started_requests_is_limited() -> None:
    """
    The first of each connection is always started; of those behind it ``queued.max.requests`` are,
    over all connections.
    """
    server = Server(queued_max_requests="3")
    await server.start()
    async with await server.client() as first, await server.client() as second:
        first.say(*(f"delay:{n}" for n in range(6)))
        await turns()
        second.say(*(f"delay:{n}" for n in range(6, 8)))
        await turns()
        started = list(server.desk.started)
        for n in (0, 1, 2, 3, 6, 4, 5, 7):
            server.desk.delayed[str(n)].answer(cast(Any, n))
            await turns(3)

        assert [f"delay:{n}" for n in (0, 1, 2, 3, 6)] == started
        assert [str(n) for n in range(6)] == await first.hear(6)
        assert ["6", "7"] == await second.hear(2)
        assert 0 == server.connections.resources.queued_requests
    await server.stop()


async def test_long_poll_ends_when_requests_behind_it_cannot_be_started() -> None:
    """
    Otherwise the broker would not even notice that their peer is gone: it does not read from it.
    """
    server = Server(queued_max_requests="1")
    await server.start()
    async with await server.client() as client:
        client.say(*(f"poll:{n}" for n in range(1000)))

        assert ["hurried"] * 998 == await client.hear(998)
        await turns()
        assert not any(server.desk.delayed[n].done for n in ("998", "999"))
    await server.stop()


async def test_requests_of_a_disconnected_peer_do_not_count() -> None:
    server = Server(queued_max_requests="3")
    await server.start()
    client = await server.client()
    client.say(*(f"delay:{n}" for n in range(4)))
    await turns()
    queued = server.connections.resources.queued_requests

    await client.close()
    await turns()

    assert 3 == queued
    assert 0 == server.connections.resources.queued_requests
    assert 0 == server.connections.resources.request_memory.used_bytes
    await server.stop()


def connected(server: Server) -> tuple[Connection, FakeTransport]:
    """
    A connection without a socket.
    """
    connection = Connection(server.connections.resources, LISTENER)
    transport = FakeTransport(connection.connection_lost)
    connection.connection_made(transport)
    return connection, transport


def slow_clock(step_s: float = TURN_S / 3) -> Callable[[], float]:
    """
    Time passes by being asked for.
    """
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


async def test_other_connections_are_served_before_pipelined_requests(server: Server) -> None:
    server.connections.resources.backlog = Backlog(slow_clock())
    (crowded, sent), (other, _) = connected(server), connected(server)

    feed(crowded, b"".join(framed(f"now:{n}") for n in range(100)))
    feed(other, framed("now:other"))
    at_first = list(server.desk.started)
    await turns(200)

    assert "now:other" == at_first[-1]
    assert len(at_first) < 10
    assert [f"now:{n}" for n in range(100)] == [
        word for word in server.desk.started if word != "now:other"
    ]
    assert b"".join(framed(str(n)) for n in range(100)) == bytes(sent.written)
    for connection in (crowded, other):
        connection.close()


async def test_pipelining_peers_take_turns(server: Server) -> None:
    server.connections.resources.backlog = Backlog(slow_clock())
    peers = {name: connected(server)[0] for name in "abc"}

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
    server = Server(queued_max_requests="1")
    await server.start()
    connection, sent = connected(server)

    feed(connection, b"".join(map(framed, [first, "delay:b", "now:c", "now:d"])))
    await turns()
    is_busy = server.connections.resources.backlog.is_busy
    if first == "task:a":
        server.desk.tasks["a"].set()
        await turns()
    else:
        server.desk.delayed["a"].answer(cast(Any, "a"))
    server.desk.delayed["b"].answer(cast(Any, "b"))
    await turns()

    assert not is_busy
    assert sent.written.endswith(framed("c") + framed("d"))
    connection.close()
    await server.stop()


LARGE: Final = 9_000_000
"""
A frame whose announcement is not believed.
"""


def limited() -> Server:
    """
    A server whose peers may hold 12 MB.
    """
    return Server(queued_max_request_bytes="12000000", socket_request_max_bytes="12000000")


async def test_large_requests_are_received_one_after_another_beyond_the_budget() -> None:
    """
    Three peers hold more than the budget in requests that are not whole: two are not read from.
    """
    server = limited()
    peers = [connected(server) for _ in range(3)]
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
        assert server.connections.resources.request_memory.used_bytes <= 12_000_000 + 2 * LARGE

    assert 1 == fewest
    for _, transport in peers:
        assert framed("x" * LARGE) == transport.take()
        transport.close()
    assert 0 == server.connections.resources.request_memory.used_bytes


async def test_small_requests_are_served_when_the_request_memory_is_exhausted() -> None:
    server = limited()
    (hog, _), (small, answers) = connected(server), connected(server)
    server.connections.resources.request_memory.limit_bytes = 100_000
    feed(hog, framed("now:" + "x" * LARGE)[:200_000])
    feed(small, framed("now:" + "y" * 50_000))

    assert server.connections.resources.request_memory.is_used_up
    assert framed("y" * 50_000) == answers.take()


async def test_long_poll_is_answered_at_once_when_the_request_memory_is_exhausted() -> None:
    server = limited()
    (hog, _), (poll, answers) = connected(server), connected(server)
    server.connections.resources.request_memory.limit_bytes = 100_000
    feed(poll, framed("poll:before"))
    feed(hog, framed("now:" + "x" * LARGE)[:200_000])
    before = answers.take()

    feed(poll, framed("poll:after"))

    assert b"" == before
    assert framed("hurried") * 2 == answers.take()


@pytest.mark.parametrize("short", [True, False])
async def test_stalled_request_is_dropped_when_others_wait_for_memory(
    caplog: pytest.LogCaptureFixture, *, short: bool
) -> None:
    """
    After 30 seconds, and only while the memory is used up: the largest first, and no more of them
    than it takes.
    """
    caplog.set_level("INFO")
    server = limited()
    (large, large_end), (little, little_end) = connected(server), connected(server)
    feed(large, framed("now:" + "x" * LARGE)[:900_000])
    feed(little, framed("now:" + "x" * LARGE)[:100_000])
    server.connections.resources.request_memory.limit_bytes = 500_000 if short else 2_500_000
    feed(little, b"x" * 200_000)
    await server.clock.pass_time(PATIENCE_S - LOOK_EVERY_S)
    early = large_end.closed

    await server.clock.pass_time(2 * LOOK_EVERY_S)

    assert not early
    assert short == large_end.closed
    assert short == ("queued.max.request.bytes are used up" in caplog.text)
    assert not little_end.closed


async def test_unread_responses_count_towards_the_request_memory(server: Server) -> None:
    """
    As long as they are not, and their peer is disconnected for them if others wait for memory.
    """
    client = await server.client()
    client.pause_reading()
    client.say(*["big:1000000"] * 30)
    await turns(50)
    memory = server.connections.resources.request_memory
    held = memory.used_bytes
    memory.limit_bytes = 1
    memory.wait(next(iter(memory.holders)))

    await server.clock.pass_time(PATIENCE_S + LOOK_EVERY_S)
    await turns()

    assert held > 0
    assert 0 == memory.used_bytes == len(server.connections)
    await client.close()


@pytest.mark.parametrize("share", [1.1, 0.9])
async def test_peers_that_do_not_read_are_dropped_soon_far_beyond_the_limit(
    server: Server, share: float
) -> None:
    """
    Small requests are served all the while, and their answers may be large. Those who hold most go
    first, and no more of them than it takes.
    """
    clients = [await server.client() for _ in range(2)]
    for client in clients:
        client.pause_reading()
        client.say(*["big:1000000"] * 30)
        await turns(50)
    memory = server.connections.resources.request_memory
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
    memory = server.connections.resources.request_memory
    memory._freed = lambda: freed.append(memory.used_bytes)
    peers = [connected(server) for _ in range(20)]
    for connection, _ in peers:
        feed(connection, framed("now:" + "x" * LARGE)[:2_000_000])
    for _, transport in peers:
        transport.close()

    await server.clock.pass_time(LOOK_EVERY_S)

    assert [0] == freed


async def test_dead_peer_blocks_nobody(server: Server) -> None:
    client = await server.client()
    client.say("delay:a", "poll:b")
    await turns()

    await client.close()
    await turns()

    assert server.desk.delayed["a"].done
    assert server.desk.delayed["b"].done
    assert 0 == len(server.connections)


async def test_task_survives_its_connection(server: Server) -> None:
    client = await server.client()
    client.say("task:a")
    await turns()

    await client.close()
    await turns()

    assert 1 == len(server.connections.resources.tasks)
    server.desk.tasks["a"].set()
    await turns()
    assert 0 == len(server.connections.resources.tasks)


async def test_task_survives_an_aborted_connection(server: Server) -> None:
    """
    As that of a transaction which ends, while records that were promised cannot be read.
    """
    client = await server.client()
    client.say("task:a")
    await turns()
    (connection,) = server.connections._open

    connection.abort()
    await turns()
    running = len(server.connections.resources.tasks)
    server.desk.tasks["a"].set()
    await turns()

    assert 1 == running
    assert 0 == len(server.connections.resources.tasks)
    await client.close()


async def test_idle_connection_is_closed_eventually() -> None:
    server = Server(connections_max_idle_ms="1000")
    await server.start()
    async with await server.client() as client:
        client.say("now:a")
        await client.hear()
        await server.clock.pass_time(0.9)
        client.say("now:b")
        await client.hear()
        await server.clock.pass_time(0.9)
        before = len(server.connections)
        await server.clock.pass_time(0.1)

        assert 1 == before
        assert await client.disconnected()
    await server.stop()


async def test_connection_waiting_for_a_response_is_not_idle() -> None:
    server = Server(connections_max_idle_ms="1000")
    await server.start()
    async with await server.client() as client:
        client.say("delay:a")
        await turns()
        await server.clock.pass_time(10.0)
        server.desk.delayed["a"].answer(cast(Any, "a"))

        assert ["a"] == await client.hear()
    await server.stop()


@pytest.mark.parametrize("on_all_addresses", [False, True])
async def test_connections_per_address_are_limited(on_all_addresses: bool) -> None:
    """
    A listener on all addresses sees IPv4 clients as IPv6 ones (``::ffff:127.0.0.1``).
    """
    server = Server(max_connections_per_ip="1", max_connections_per_ip_overrides="127.0.0.1:2")
    await server.start(on_all_addresses=on_all_addresses)
    async with await server.client() as first, await server.client() as second:
        async with await server.client() as third:
            assert await third.disconnected()
        first.say("now:a")
        second.say("now:b")

        assert (["a"], ["b"]) == (await first.hear(), await second.hear())
    await server.stop()


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


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(300, 200), (20_000, 17_500), (50, 1), (None, 2**31 - 1)]
)
def test_connections_leave_descriptors_for_files(
    monkeypatch: pytest.MonkeyPatch, descriptors: int | None, connections: int
) -> None:
    """
    Whatever ``max.connections`` says.
    """
    monkeypatch.setattr(
        "barnabas.server.resources.descriptors.descriptor_limit", lambda: descriptors
    )

    assert connections == ConnectionLimits.of(BrokerConfig()).total
    assert stated("descriptors-of-files") == LEAST_FILES


async def test_connection_without_a_free_descriptor_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    It does not wait: while it did, it would have one.
    """
    monkeypatch.setattr(
        "barnabas.server.resources.descriptors.descriptor_limit", lambda: LEAST_FILES + 2
    )
    server = Server()
    await server.start()
    async with await server.client() as first, await server.client() as second:
        async with await server.client() as third:
            assert await third.disconnected()
        first.say("now:a")
        second.say("now:b")

        assert (["a"], ["b"]) == (await first.hear(), await second.hear())
    await server.stop()


async def test_files_may_use_the_descriptors_that_connections_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.server.resources.descriptors.descriptor_limit", lambda: 200)
    open_files = OpenFiles(1000)
    server = Server(open_files=open_files)
    holders = [Held() for _ in range(150)]
    for holder in holders:
        open_files.add(holder)
    await server.start()
    clients = [await server.client() for _ in range(80)]
    await turns()
    crowded = open_files.limit
    left = len(open_files)
    for client in clients:
        await client.close()
    await turns()

    share = stated("open-files") / 100 / (2 if MAPS_KEEP_DESCRIPTORS else 1)
    assert (120 * share, 200 * share) == (crowded, open_files.limit)
    assert crowded == left
    assert 150 - left == sum(holder.is_given_back for holder in holders)
    await server.stop()


class Held:
    """
    An open file, and whether it has been given back.
    """

    was_used = False
    is_given_back = False

    def give_back(self) -> None:
        self.is_given_back = True


async def test_heap_is_trimmed_once_per_second_of_closed_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Once for all that leave within a second.
    """
    trimmed: list[int] = []
    monkeypatch.setattr("barnabas.server.network.registry.trim_heap", lambda: trimmed.append(1))
    server = Server()
    await server.start()
    clients = [await server.client() for _ in range(CROWD + 10)]
    await turns()
    for client in clients[1:]:
        await client.close()
    await turns()
    at_once = len(trimmed)

    server.clock.advance(LOOK_EVERY_S)
    await turns()

    assert (0, 1) == (at_once, len(trimmed))
    await clients[0].close()
    await server.stop()


async def test_connection_beyond_the_limit_waits_until_another_one_ends() -> None:
    server = Server(max_connections="1")
    await server.start()
    first = await server.client()
    first.say("now:a")
    await first.hear()
    async with await server.client() as second:
        second.say("now:b")
        await turns()
        started = list(server.desk.started)
        await first.close()

        assert ["now:a"] == started
        assert ["b"] == await second.hear()
    await server.stop()


async def test_draining_answers_received_requests_and_then_closes(server: Server) -> None:
    client = await server.client()
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


async def test_draining_ends_after_a_timeout(server: Server) -> None:
    client = await server.client()
    client.say("task:never")
    await turns()

    await server.connections.drain(0.01)

    assert await client.disconnected()
    await client.close()
    assert not server.connections.resources.tasks


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


async def test_frame_received_byte_by_byte_is_assembled(server: Server, client: Client) -> None:
    connection = Connection(server.connections.resources, LISTENER)
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: LoopProtocol(connection), sock=ours)
    theirs.setblocking(False)

    for byte in framed("now:slow") + framed("now:er"):
        await loop.sock_sendall(theirs, bytes([byte]))
        await asyncio.sleep(0)

    assert framed("slow") + framed("er") == await loop.sock_recv(theirs, 100)
    theirs.close()
    await turns()


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
    More than the configured buffer holds, but not where the system was to choose.
    """
    server = Server(socket_receive_buffer_bytes=str(configured))
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10_000)
    before = ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    loop = asyncio.get_running_loop()
    connection = Connection(server.connections.resources, LISTENER)
    await loop.create_connection(lambda: LoopProtocol(connection), sock=ours)
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
def test_responses_keep_their_order_however_requests_finish(seed: int) -> None:
    """
    Any mix of answers that are ready at once, delayed or of no answer at all, finished in any
    order while requests come in: each is given once, in the order of the requests.
    """
    choose = random.Random(seed)
    server = Server()
    connection = Connection(server.connections.resources, LISTENER)
    transport = FakeTransport(connection.connection_lost)
    connection.connection_made(transport)
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
            name = pending.pop(choose.randrange(len(pending)))
            server.desk.delayed[name].answer(cast(Any, name))
    choose.shuffle(pending)
    for name in pending:
        server.desk.delayed[name].answer(cast(Any, name))
    for delayed in server.desk.delayed.values():
        delayed.hurry()

    assert b"".join(map(framed, expected)) == transport.take()
    transport.close()


async def test_nothing_is_spliced_into_a_closing_socket() -> None:
    """
    Its descriptor may be that of another connection already.
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
    server.desk.file = Numbers(100_000, cached=True, spliceable=True)
    connection = Connection(server.connections.resources, LISTENER)
    transport = Closing()
    connection.connection_made(transport)

    with ours, theirs:
        feed(connection, framed("stored:"))
        while_open = theirs.recv(200_000)
        closing = True
        feed(connection, framed("stored:"))
        with pytest.raises(BlockingIOError):
            theirs.recv(200_000)

    whole = server.desk.stored("")
    assert whole[0] + server.desk.file.read(0, 100_000) + whole[2] == while_open
    assert while_open == bytes(transport.written)


# Quotas


def throttled(server: Server, seconds: float) -> Connection:
    """
    The only connection, whose peer has to wait for so long.
    """
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

    server.desk.delayed["a"].answer(cast(Any, "a"))

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
    server.desk.delayed["a"].answer(cast(Any, "a"))

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
