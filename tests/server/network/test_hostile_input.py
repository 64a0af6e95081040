"""
Hostile requests neither stop the broker nor use up its memory nor change a file.

A hundred thousand requests, the same ones in each run: requests of all APIs in all versions with
changed bytes, truncated, concatenated, and random bytes. Some belong to a member of a group, a
fetch session or an open transaction, and some have changed records with a matching checksum.
``BARNABAS_HOSTILE`` sets another number, and ``BARNABAS_HOSTILE_SEED`` another choice.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import time
import traceback
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from crc32c import crc32c

from barnabas.protocol.codec.schema import Message, fields
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.records.batch import CRC_AT
from barnabas.server.network.connection import Connection
from barnabas.server.requests.registry import HANDLERS
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.fake_transport import FakeTransport, feed
from tests.support.limits import stated
from tests.support.samples import sample
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
)
from tests.support.turns import objects_set_aside
from tests.support.wire_client import request_frame

REQUESTS = int(os.environ.get("BARNABAS_HOSTILE", "100000"))
SEED = 10 * int(os.environ.get("BARNABAS_HOSTILE_SEED", "0"))
EXPECTED_TRACEBACKS: frozenset[str] = frozenset()
"""
Errors that the broker did not expect, and that are known all the same.
"""
COLLECT_EVERY = 10_000
MANY = 4
SEALED = range(2, 6)
"""
The kinds of 20 whose records have the right checksum.
"""
EXTREMES = [pack(">i", value) for value in (-(2**31), -1, 0, 1, 2**16, 2**31 - 1)]
VARINTS = [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x80", b"\xff\xff\xff\xff\x7f", b"\x00"]

RECORDS = [
    *(batch("a", "bc" * 40, "d", compression=codec) for codec in CompressionType),
    batch("of a producer", producer_id=7, producer_epoch=0, base_sequence=0),
    batch(
        "in a transaction", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    ),
]

# What may rightly change something, however little of the request is left as it was.
CHANGING = {
    "AlterConfigsRequest",
    "AlterShareGroupOffsetsRequest",
    "CreatePartitionsRequest",
    "CreateTopicsRequest",
    "DeleteRecordsRequest",
    "DeleteTopicsRequest",
    "IncrementalAlterConfigsRequest",
    "InitProducerIdRequest",
    "JoinGroupRequest",
    "OffsetCommitRequest",
    "WriteTxnMarkersRequest",
}


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    options = {"auto_create_topics_enable": "false", "group_min_session_timeout_ms": "1"}
    tracebacks = Tracebacks()
    logging.disable(logging.WARNING)
    async with running(**options) as broker:
        await broker.create("x")
        await broker.create("kept")
        for internal in ("__consumer_offsets", "__transaction_state"):
            await broker.create(internal, partitions=2, cleanup_policy="compact")
        with tracebacks.watched():
            yield broker
    logging.disable(logging.NOTSET)
    assert EXPECTED_TRACEBACKS >= tracebacks.found


class Tracebacks(logging.Handler):
    """
    Collects log messages with a traceback, which are unexpected errors.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            place = traceback.extract_tb(record.exc_info[2])[-1]
            self.found.add(f"{record.exc_info[0].__name__} in {place.name}: {record.msg}")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """
        Collect everything that the broker logs, and keep it from other handlers.
        """
        broker = logging.getLogger("barnabas")
        broker.addHandler(self)
        broker.propagate = False
        yield
        broker.removeHandler(self)
        broker.propagate = True


def corpus(*, changing: bool) -> list[bytes]:
    spoiled = bytearray(batch("spoiled"))
    spoiled[17:21] = bytes(4)  # a checksum that no few changes make right
    requests: list[tuple[Message, range]] = [
        (produce_request("x", bytes(spoiled)), range(3, 13)),
        (fetch_request(fetch_topic("x", {0: 0}), max_wait_ms=100), range(4, 13)),
    ]
    requests += [
        (sample(registration.request), registration.versions)
        for _, registration in sorted(HANDLERS.items())
        if changing or registration.request.__name__ not in CHANGING
    ]
    return frames_of(requests)


def frames_of(requests: Iterable[tuple[Message, range]]) -> list[bytes]:
    return [request_frame(request, v)[4:] for request, versions in requests for v in versions]


async def of_insiders(broker: TestBroker, clock: ManualClock) -> list[bytes]:
    async with await broker.client() as client:
        join = sample(JoinGroupRequest, member_id="", session_timeout_ms=30_000, group_id="inside")
        joining = asyncio.ensure_future(client.ask(join, 3))
        while not joining.done():
            await clock.pass_time(0.1)
        joined = joining.result()
        told = await client.ask(
            InitProducerIdRequest(transactional_id="inside", transaction_timeout_ms=60_000), 4
        )
        topic = fetch_topic("x", {0: 0})
        session = await client.ask(fetch_request(topic, session_epoch=0), 12)
    assert (0, 0) == (joined.error_code, told.error_code)
    assert session.session_id
    known = {
        "group_id": "inside",
        "member_id": joined.member_id,
        "generation_id": joined.generation_id,
        "generation_id_or_member_epoch": joined.generation_id,
        "transactional_id": "inside",
        "v3_and_below_transactional_id": "inside",
        "producer_id": told.producer_id,
        "v3_and_below_producer_id": told.producer_id,
        "producer_epoch": told.producer_epoch,
        "v3_and_below_producer_epoch": told.producer_epoch,
        "transaction_timeout_ms": 60_000,
        "session_timeout_ms": 30_000,
        "group_instance_id": None,
    }
    requests: list[tuple[Message, range]] = [
        (fetch_request(topic, session_id=session.session_id, session_epoch=epoch), range(7, 13))
        for epoch in range(4)
    ]
    for _, registration in sorted(HANDLERS.items()):
        names = {field.name for field in fields(registration.request)}
        own = {name: value for name, value in known.items() if name in names}
        if {"group_id", "transactional_id", "v3_and_below_transactional_id"} & names:
            requests.append((sample(registration.request, **own), registration.versions))
    return frames_of(requests)


def sealed(choose: random.Random) -> bytes:
    """
    A Produce request whose batch has changed bytes and a matching checksum.
    """
    record = choose.choice(RECORDS)
    data = bytearray(mutated(bytes(record), choose))
    if len(data) > CRC_AT + 4:
        data[8:12] = pack(">i", len(data) - 12)
        data[16] = record[16]
        data[CRC_AT : CRC_AT + 4] = pack(">I", crc32c(data[CRC_AT + 4 :]))
    return request_frame(produce_request("x", bytes(data)), choose.randrange(3, 13))[4:]


def mutated(frame: bytes, choose: random.Random) -> bytes:
    data = bytearray(frame)
    for _ in range(choose.choice((1, 1, 1, 2, MANY))):
        at = choose.randrange(len(data)) if data else 0
        match choose.randrange(8):
            case 0 | 1:
                data[at : at + 1] = bytes([choose.randrange(256)])
            case 2:
                data[at : at + 1] = bytes([data[at] ^ 1 << choose.randrange(8)]) if data else b"x"
            case 3:
                data[at : at + 4] = choose.choice(EXTREMES)
            case 4:
                data[at : at + 1] = choose.choice(VARINTS)
            case 5:
                del data[at:]
            case 6:
                data[at:at] = choose.randbytes(choose.randrange(1, 40))
            case _:
                del data[at : at + choose.randrange(1, 9)]
    return bytes(data)


def hostile(
    frames: list[bytes], count: int, seed: int, *, changing: bool = True
) -> Iterator[bytes]:
    """
    Generate *count* hostile requests, most with a matching size in front.
    """
    choose = random.Random(seed)
    excluded = (
        ()
        if changing
        else tuple(
            pack(">h", key)
            for key, registration in HANDLERS.items()
            if registration.request.__name__ in CHANGING
        )
    )
    for _ in range(count):
        kind = choose.randrange(20)
        body = choose.randbytes(choose.randrange(60)) if kind == 0 else choose.choice(frames)
        if changing and kind in SEALED:
            body = sealed(choose)
        elif kind > 1:
            body = mutated(body, choose)
        if body.startswith(excluded):
            # A change of its first bytes has made it a request of another kind.
            continue
        size = choose.choice((0, -1, 2**31 - 1, len(body) + 7)) if kind == 1 else len(body)
        yield pack(">i", size) + body


class Peer:
    """
    A client that reconnects whenever the broker closes the connection.
    """

    def __init__(self, broker: TestBroker) -> None:
        self.connections = 0
        self._broker = broker
        self._connection: Connection | None = None
        self._transport = FakeTransport()

    def send(self, data: bytes) -> None:
        if self._connection is None:
            self.connections += 1
            assert self._broker.connections is not None
            self._connection = Connection(
                self._broker.connections.resources, self._broker.listeners[0]
            )
            self._transport = FakeTransport(self._lost)
            self._connection.connection_made(self._transport)
        self._transport.take()
        feed(self._connection, data)

    def hang_up(self) -> None:
        self._transport.close()

    def _lost(self, error: Exception | None) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.connection_lost(error)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def storm(
    broker: TestBroker, frames: list[bytes], count: int, seed: int, *, changing: bool = True
) -> int:
    """
    Send *count* hostile requests, and return how often the broker closed the connection.
    """
    peer = Peer(broker)
    longest_s = 0.0
    with objects_set_aside():
        for number, data in enumerate(hostile(frames, count, seed, changing=changing)):
            before = time.thread_time()
            peer.send(data)
            longest_s = max(longest_s, time.thread_time() - before)
            if number % 50 == 0:
                # Whatever waits for something else ends with its connection, or runs to its end.
                peer.hang_up()
                before = time.thread_time()
                await asyncio.sleep(0)
                longest_s = max(longest_s, time.thread_time() - before)
            if number % COLLECT_EVERY == 0:
                gc.collect()
    peer.hang_up()
    assert longest_s <= stated("longest-turn")
    return peer.connections


def content(files: MemoryFiles) -> dict[Path, Any]:
    return {path: bytes(node.data) for path, node in list(files.nodes.items())}


async def test_hostile_requests_change_nothing(broker: TestBroker) -> None:
    frames = corpus(changing=False)
    files: Any = broker.files
    await storm(broker, frames, REQUESTS // 5, seed=SEED + 1, changing=False)
    before = content(files)
    gc.collect()
    memory = resident_bytes()

    connections = await storm(broker, frames, REQUESTS, seed=SEED + 2, changing=False)

    gc.collect()
    grown = resident_bytes() - memory
    assert connections > REQUESTS // 50, "the broker should have hung up on most"
    after = content(files)
    assert [] == [path for path in before | after if before.get(path) != after.get(path)]
    assert grown < 32 * 1024 * 1024, f"{grown} bytes more"
    await still_serves(broker)


async def test_hostile_state_changing_requests_are_bounded_in_memory(broker: TestBroker) -> None:
    frames = corpus(changing=True)
    assert isinstance(broker.clock, ManualClock)
    inside = await of_insiders(broker, broker.clock)
    every = frames + inside * (len(frames) // len(inside))

    await storm(broker, every, REQUESTS // 5, seed=SEED + 3)

    await still_serves(broker)


async def test_hostile_requests_through_a_socket_do_no_harm(broker: TestBroker) -> None:
    frames = corpus(changing=False)

    for data in hostile(frames, 500, seed=SEED + 4):
        client = await broker.client()
        client.send_bytes(data)
        await asyncio.sleep(0)
        await client.close()

    await still_serves(broker)


async def still_serves(broker: TestBroker) -> None:
    async with await broker.client() as client:
        introduction = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        assert 0 == (await client.ask(introduction, 4)).error_code
        answer = await client.ask(produce_request("kept", batch("good")), 12)
        assert 0 == answer.responses[0].partition_responses[0].error_code
        answer = await client.ask(fetch_request(fetch_topic("kept", {0: 0})), 12)
        assert len(answer.responses[0].partitions[0].records) >= len(batch("good"))
