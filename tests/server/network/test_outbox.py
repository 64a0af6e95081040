from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.server.metrics import Counter
from barnabas.server.network.sender import BUFFER_BYTES, SMALL, Sender
from barnabas.server.network.splice import RecordPipe
from barnabas.server.network.write_coalescing import (
    CLOSELY_S,
    CROWD,
    LARGE_BYTES,
    MOST_TOGETHER,
    Outbox,
)
from tests.support.fake_transport import FakeTransport

SMALL_REQUEST = 100


class Peer:
    """
    The sending half of a connection.
    """

    def __init__(self) -> None:
        self.transport = FakeTransport()
        self.sender = Sender(
            self.transport,
            ThreadPoolExecutor(1),
            memoryview(bytearray(BUFFER_BYTES)),
            Counter(),
            RecordPipe(-1),
            progressed=lambda: None,
            failed=lambda error: None,
        )

    @property
    def has_answer(self) -> bool:
        return bool(self.transport.written)


class Desk:
    """
    Answers each request at once through an outbox. A test sets the time.
    """

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.now = 1.0

    def serve(self, peer: Peer, *, answer: bytes = b"answer", size: int = SMALL_REQUEST) -> None:
        self.outbox.note(peer.sender, self.now, size)
        peer.sender.put([answer])
        self.outbox.send(peer.sender)

    def crowd(self) -> None:
        """
        Serve enough peers in a row that the next one is part of a crowd.
        """
        for _ in range(CROWD + 1):
            self.serve(Peer())
        self.outbox.flush()


async def test_responses_of_many_peers_are_sent_at_the_end_of_the_loop_turn() -> None:
    desk, peers = Desk(), [Peer(), Peer()]
    desk.crowd()

    for peer in peers:
        desk.serve(peer)
    assert not any(peer.has_answer for peer in peers)
    await asyncio.sleep(0)

    assert [b"answer"] * 2 == [peer.transport.take() for peer in peers]


async def test_responses_are_sent_early_once_there_are_many() -> None:
    desk, peers = Desk(), [Peer() for _ in range(MOST_TOGETHER + 1)]
    desk.crowd()

    for peer in peers:
        desk.serve(peer)

    assert [True] * MOST_TOGETHER + [False] == [peer.has_answer for peer in peers]


@pytest.mark.parametrize("peers", [1, CROWD])
async def test_responses_are_not_delayed_with_few_peers(peers: int) -> None:
    desk = Desk()

    for peer in [Peer() for _ in range(peers)]:
        desk.serve(peer)
        assert peer.has_answer


async def test_one_peer_with_repeated_requests_does_not_delay_responses() -> None:
    desk, peer = Desk(), Peer()
    desk.crowd()

    for _ in range(CROWD):
        desk.serve(peer)
    peer.transport.take()
    desk.serve(peer)

    assert peer.has_answer


async def test_peers_with_rare_requests_do_not_delay_responses() -> None:
    desk, peer = Desk(), Peer()
    desk.crowd()

    desk.now += 2 * CLOSELY_S
    desk.serve(peer)

    assert peer.has_answer


async def test_responses_do_not_wait_behind_a_large_request() -> None:
    desk, waiting = Desk(), Peer()
    desk.crowd()
    desk.serve(waiting)
    assert not waiting.has_answer

    desk.outbox.note(Peer().sender, desk.now, LARGE_BYTES)

    assert waiting.has_answer


async def test_large_response_does_not_wait() -> None:
    desk, peer = Desk(), Peer()
    desk.crowd()

    desk.serve(peer, answer=bytes(SMALL + 1))

    assert peer.has_answer


async def test_responses_of_one_peer_keep_their_order() -> None:
    desk, peer = Desk(), Peer()
    desk.crowd()

    desk.serve(peer, answer=b"1")
    desk.serve(Peer())
    peer.sender.put([b"2"])
    peer.sender.flush()
    await asyncio.sleep(0)

    assert b"12" == peer.transport.take()
