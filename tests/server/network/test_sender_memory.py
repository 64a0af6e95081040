"""
The memory of what a peer has not taken yet.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest

from barnabas.server.metrics import Counter
from barnabas.server.network.sender import SMALL, Sender
from barnabas.server.network.splice import RecordPipe


class Transport:
    """
    A transport that takes as much as the test wants.
    """

    def __init__(self) -> None:
        self.data = bytearray()

    def set_write_buffer_limits(self, **_: int) -> None: ...

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.data += data


@pytest.mark.parametrize("seed", range(10))
def test_memory_is_that_of_all_bytes_that_were_not_given_to_the_transport(seed: int) -> None:
    random = Random(seed)
    transport: Any = Transport()
    with ThreadPoolExecutor() as io:
        sender = Sender(
            transport,
            io,
            memoryview(bytearray(1000)),
            Counter(),
            RecordPipe(-1),
            progressed=lambda: None,
            failed=lambda error: None,
        )
        put = b""
        for number in range(100):
            sizes = [random.choice((1, 10, 700, SMALL + 1)) for _ in range(random.randrange(1, 5))]
            parts = [bytes([number]) * size for size in sizes]
            put += b"".join(parts)
            sender.put([*parts])
            if random.random() < 0.4:
                sender.flush()
            sender.pause()
            assert len(put) - len(transport.data) == sender.unread_bytes
            sender.resume()
            assert put.startswith(transport.data)
            sender.pause()
            assert len(put) - len(transport.data) == sender.unread_bytes
            sender.resume()
        sender.pause()
        sender.put([b"x", b"y"])
        sender.stop()
        assert 0 == sender.unread_bytes
