"""
Answers that leave together.

A send to a client that sleeps wakes it, which costs the broker about as much as the rest of a small
answer. Where one program has very many connections and waits for an answer on each, it would be
woken for each of them. So, where the requests of many connections follow each other closely, their
answers wait for a few others, or for the end of the loop's turn, whichever comes first::

    request of a --> answered --+
    request of b --> answered --+--> sent together
    request of c --> answered --+

Where few connections are active, and behind anything that takes long, nothing waits.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.server.network.sender import Sender

CROWD: Final = 8
"""So many requests in a row, each of another connection than the one before, make a crowd."""
CLOSELY_S: Final = 0.000_5
MOST_TOGETHER: Final = 16
LARGE_BYTES: Final = 16 * 1024
"""What takes more than a moment: no answer waits behind a request of this size."""


class Outbox:
    """
    The connections of one loop that have answers to be sent.

    The order of the senders does not matter: each ``Sender`` keeps its own answers in their order,
    and sends them with the first of its flushes.
    """

    __slots__ = ("_at", "_last", "_row", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[Sender] = []
        self._last: Sender | None = None
        self._at = 0.0
        self._row = 0

    def note(self, sender: Sender | None, now: float, size: int) -> None:
        """
        Bytes have arrived from the peer of *sender*, at *now*, in seconds since some moment.
        """
        if sender is self._last or now - self._at > CLOSELY_S:
            self._row = 0
        else:
            self._row += 1
        self._last = sender
        self._at = now
        if size >= LARGE_BYTES and self._waiting:
            self.flush()

    def send(self, sender: Sender) -> None:
        """
        Flush *sender*, now or soon.
        """
        if self._row < CROWD or sender.is_bulky:
            sender.flush()
            return
        waiting = self._waiting
        waiting.append(sender)
        if len(waiting) == 1:
            asyncio.get_running_loop().call_soon(self.flush)
        elif len(waiting) >= MOST_TOGETHER:
            self.flush()

    def flush(self) -> None:
        """
        Send what waits.
        """
        waiting, self._waiting = self._waiting, []
        for sender in waiting:
            sender.flush()
