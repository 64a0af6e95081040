"""
How much a socket holds of the records that its peer has asked for (SO_SNDBUF).

Records on their way from the page cache cost the socket no memory of its own, so that more room
would cost nothing, and the broker would be woken less often to fill it. But a peer that takes as
much as comes gets to read it when it is out of the processor's cache. So it depends on the peer's
window, that is on what it holds itself:

* A **wide** window, which Linux makes wider while the peer keeps up: what a client wants of a
  partition by default goes out at once, and no more is held.
* A **narrow** one, as that of Java's clients (``receive.buffer.bytes``, 64 KB): it reads each piece
  when it has just come, however much is behind it. There is room for several partitions' parts, and
  Linux sends them without the broker.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import struct
import sys
from contextlib import suppress
from socket import IPPROTO_TCP, SO_SNDBUF, SOL_SOCKET, socket
from typing import Final

ROOM_BYTES: Final = 512 * 1024
"""
For a connection that gets records through the pipe; Linux grants twice as much: a partition's part
of an answer as clients want it by default (1 MiB). With less a client waits for the broker once
more for each answer.
"""
LARGE_ROOM_BYTES: Final = 2 * 1024 * 1024
"""
For peers with a narrow window. Twice of it is as far as Linux goes by itself (``tcp_wmem``).
"""
NARROW_BYTES: Final = 128 * 1024
LOOKS: Final = 4
"""
So many answers have to find a narrow window: a window that grows begins as a narrow one.
"""

_TCP_INFO: Final = 11
_INFO: Final = struct.Struct("@24xI116xI80xI")
"""
Of Linux's ``struct tcp_info``, since 5.4: ``tcpi_unacked`` (segments), ``tcpi_notsent_bytes`` and
``tcpi_snd_wnd``.
"""
_SO_BUF_LOCK: Final = 72
"""Of Linux since 5.14: who has set a size may let the system change it again."""


class SendRoom:
    """
    The room of one connection.

    Args:
        configured_bytes: what its socket was given (``socket.send.buffer.bytes``), -1 if the system
            chooses. Neither that nor more than would be given here is changed.
    """

    __slots__ = ("_is_first", "_looks", "_was_full")

    def __init__(self, configured_bytes: int) -> None:
        grows = 0 <= configured_bytes < ROOM_BYTES
        self._is_first = grows
        self._looks = LOOKS if grows else 0
        self._was_full = False

    def before_answer(self, peer: socket) -> None:
        """
        An answer with records is about to be sent to *peer*.
        """
        if self._is_first:
            self._is_first = False
            peer.setsockopt(SOL_SOCKET, SO_SNDBUF, ROOM_BYTES)
        elif self._was_full and self._looks:
            self._look(peer)

    def note_full(self) -> None:
        """
        The socket did not take all of an answer at once.
        """
        self._was_full = True

    def _look(self, peer: socket) -> None:
        told = _tcp_info(peer)
        if told is None:
            self._looks = 0
            return
        unacknowledged, unsent, window = told
        if unacknowledged or unsent:
            return  # Only a peer that has all shows how wide its window is.
        self._was_full = False
        if window > NARROW_BYTES:
            self._looks = 0
            return
        self._looks -= 1
        if not self._looks:
            peer.setsockopt(SOL_SOCKET, SO_SNDBUF, LARGE_ROOM_BYTES)
            # An administrator's limit (net.core.wmem_max) may be less than what Linux would choose.
            with suppress(OSError):
                peer.setsockopt(SOL_SOCKET, _SO_BUF_LOCK, 0)


def _tcp_info(peer: socket) -> tuple[int, int, int] | None:
    """
    Segments and bytes of ours that the peer has not yet, and bytes that it says it takes; None if
    the system does not tell.
    """
    if sys.platform != "linux":
        return None
    try:
        told = peer.getsockopt(IPPROTO_TCP, _TCP_INFO, _INFO.size)
    except OSError:
        return None
    return _INFO.unpack(told) if len(told) == _INFO.size else None
