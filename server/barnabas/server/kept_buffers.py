"""
Memory for what is about to be sent.

The kernel zeroes every page that it hands out, and what is still in the cache of the processor is
sent much faster than what is not. So all connections use the same few buffers by turns.
"""

from __future__ import annotations

from typing import Final

BUFFER_BYTES: Final = 4 * 65_483
"""
What a socket with the default ``socket.send.buffer.bytes`` takes at once on the loopback interface:
four segments of the largest size. A few bytes more would be sent by themselves, a few fewer would
leave a short segment. It fits into the second cache of most processors.
"""
MOST_KEPT: Final = 4


class KeptBuffers:
    """
    Buffers of one size.

    Invariants:

    1. A buffer that was taken belongs to who took it, until it is given back. One of which nobody
       knows whether it is still read is not given back.
    2. Only ``MOST_KEPT`` are kept while nobody needs them.
    """

    __slots__ = ("_idle",)

    def __init__(self) -> None:
        self._idle: list[memoryview] = []

    def take(self) -> memoryview:
        """
        A buffer with anything in it.
        """
        return self._idle.pop() if self._idle else memoryview(bytearray(BUFFER_BYTES))

    def give_back(self, buffer: memoryview) -> None:
        if len(self._idle) < MOST_KEPT:
            self._idle.append(buffer)
