"""
Peers that announce, pipeline, do not read or leave at the wrong moment, beside one that behaves.

The broker is a process of its own: what is measured is the memory that the system sees.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.storage.fs.disk import MAPS_KEEP_DESCRIPTORS
from tests.support.broker_process import Barnabas, resident_bytes, wait_for
from tests.support.checkers import findings
from tests.support.limits import stated
from tests.support.server import batch, fetch_request, fetch_topic, produce_request
from tests.support.topic_requests import creatable
from tests.support.wire_client import BlockingClient, request_frame

pytestmark = pytest.mark.prove

PEERS: Final = 1_000
LIMIT_BYTES: Final = 64 * 1024 * 1024
FETCH: Final = request_frame(
    fetch_request(fetch_topic("records", dict.fromkeys(range(4), 0)), max_bytes=50 << 20), 11
)
WIDE: Final = MetadataRequest(topics=[MetadataRequestTopic(name="wide")])


class Peer(BlockingClient):
    """
    A connection that may end rudely.
    """

    def reset(self) -> None:
        """
        Leave with what was sent to this peer unread.
        """
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Barnabas]:
    """
    A broker with records in the page cache that has served a few hundred connections.
    """
    broker = Barnabas(
        tmp_path,
        settings={
            "queued.max.request.bytes": f"{LIMIT_BYTES}",
            "socket.request.max.bytes": f"{LIMIT_BYTES}",
        },
        environment={findings.VARIABLE: ""},  # What checkers look at takes memory.
    )
    broker.start()
    topics = [creatable(name, count) for name, count in (("records", 4), ("wide", 1000))]
    data = batch(*[b"x" * 10_000] * 50)
    with Peer(broker.port) as peer:
        peer.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        for partition in range(4):
            for _ in range(8):
                peer.ask(produce_request("records", data, partition=partition), 9)
    for _ in range(3):
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(Peer(broker.port)).ask(WIDE, 9)
    yield broker
    broker.close()
    assert "Traceback" not in broker.log_text()


def announcing(port: int, stack: ExitStack) -> None:
    """
    A large frame is announced, and four bytes of it are sent.
    """
    for _ in range(PEERS):
        stack.enter_context(Peer(port)).send_bytes(
            struct.pack(">i", LIMIT_BYTES - 1) + b"\0\0\0\x09"
        )


def not_reading(port: int, stack: ExitStack) -> None:
    """
    Records are asked for and not read.
    """
    for _ in range(PEERS):
        stack.enter_context(Peer(port, receive_buffer_bytes=4096)).send_bytes(FETCH * 3)


def leaving(port: int, stack: ExitStack) -> None:
    """
    Peers come in crowds and leave, in the middle of a size or with their answer unread.
    """
    for _ in range(10):
        peers = [Peer(port) for _ in range(PEERS // 2)]
        for number, peer in enumerate(peers):
            peer.send_bytes(FETCH if number % 2 else FETCH[:2])
        for peer in peers:
            peer.reset()


def slow_producers(port: int, stack: ExitStack) -> None:
    """
    Requests of 1 MB without their last bytes.
    """
    frame = request_frame(produce_request("records", batch(b"x" * 1_000_000)), 9)
    for _ in range(PEERS):
        peer = stack.enter_context(Peer(port))
        peer.socket.setblocking(False)
        peer.socket.send(frame[:-10])


def pipelining(port: int, stack: ExitStack) -> None:
    """
    As many long polls as a read takes, of which the first waits.
    """
    poll = request_frame(
        fetch_request(fetch_topic("records", {0: 400}), max_wait_ms=100_000, min_bytes=10), 11
    )
    for _ in range(PEERS):
        peer = stack.enter_context(Peer(port))
        peer.socket.setblocking(False)
        peer.socket.send(poll * (250_000 // len(poll)))


@pytest.mark.parametrize(
    ("hostile", "unserved_bytes"),
    [
        (announcing, 0),
        (not_reading, 0),
        (leaving, 0),
        (slow_producers, LIMIT_BYTES),
        (pipelining, LIMIT_BYTES),
    ],
)
def test_memory_of_hostile_peers_is_bounded_and_given_back(
    broker: Barnabas, hostile: Callable[[int, ExitStack], None], unserved_bytes: int
) -> None:
    """
    By ``queued.max.request.bytes`` for requests that are not served; others are served meanwhile.
    """
    before = resident_bytes(broker.pid)
    with ExitStack() as stack, Peer(broker.port) as healthy:
        hostile(broker.port, stack)
        assert healthy.ask(WIDE, 9)

        held = resident_bytes(broker.pid) - before
        assert held <= unserved_bytes + stated("hostile-crowd")
    wait_for(
        lambda: resident_bytes(broker.pid) - before <= stated("hostile-crowd-gone"),
        "the memory of peers that have left",
        10.0,
    )


class FewDescriptors(Barnabas):
    """
    A broker that may have 300 files and sockets open.
    """

    def command(self) -> list[str]:
        return ["/bin/sh", "-c", 'ulimit -n 300; exec "$@"', "sh", *super().command()]


def test_connections_leave_descriptors_for_files(tmp_path: Path) -> None:
    """
    600 peers connect, and stay if they may; topics are created and written to meanwhile.
    """
    broker = FewDescriptors(tmp_path)
    try:
        broker.start()
        with ExitStack() as stack, Peer(broker.port) as healthy:
            for _ in range(600):
                stack.enter_context(Peer(broker.port))
            for number in range(5):
                name = f"topic-{number}"
                topic = creatable(name, 3)
                healthy.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
                response = healthy.ask(produce_request(name, batch(b"x")), 9)
                assert 0 == response.responses[0].partition_responses[0].error_code

        assert "at most 200 connections are served" in broker.log_text()
        assert "Too many open files" not in broker.log_text()
    finally:
        broker.close()


def test_partitions_may_outnumber_descriptors(tmp_path: Path) -> None:
    """
    500 partitions with 300 descriptors: each is created, written to and read from, and there again
    after a restart.
    """
    broker = FewDescriptors(tmp_path)
    try:
        broker.start()
        with Peer(broker.port) as peer:
            for number in range(100):
                topic = creatable(f"topic-{number}", 5)
                created = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
                assert 0 == peer.ask(created, 7).topics[0].error_code
        for expected in range(2):
            with Peer(broker.port) as peer:
                for number in range(100):
                    response = peer.ask(produce_request(f"topic-{number}", batch(b"x")), 9)
                    produced = response.responses[0].partition_responses[0]
                    assert (0, expected) == (produced.error_code, produced.base_offset)
            broker.stop()
            broker.start()

        files = int(stated("open-files") * 300 / 100)
        most = files // 2 if MAPS_KEEP_DESCRIPTORS else files
        assert f"at most {most} files of logs are open at a time" in broker.log_text()
        assert "Too many open files" not in broker.log_text()
    finally:
        broker.close()
