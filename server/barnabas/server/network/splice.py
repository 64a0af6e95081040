"""
A way for records from the page cache to a socket on which nothing copies them.

A pipe holds pages, also those of the page cache as they are, and a socket sends them as they are::

    file --splice--> pipe --splice--> socket

In the pipe, too, is what stands before and behind the records in an answer. (``sendfile`` does the
same through a pipe of its own, which holds 64 KB at a time, and sends nothing but the file.)
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import fcntl
import logging
import os
import sys
from collections.abc import Iterable
from typing import Final, TypeAlias

from barnabas.protocol.codec.primitives import Buffer
from barnabas.server.fetch.stored_records import StoredRecords

logger = logging.getLogger(__name__)

AnswerPart: TypeAlias = Buffer | StoredRecords
"""A part of an answer."""

PIPE_BYTES: Final = 1024 * 1024
"""As much as Linux grants everybody (``fs.pipe-max-size``)."""


class RecordPipe:
    """
    A pipe that all connections use by turns, made when the first one does.

    It is empty but between ``fill`` and the ``empty_into`` or ``forget`` that follows.
    """

    __slots__ = ("_entrance", "_exit", "_held", "_nowhere", "is_usable", "send_buffer_bytes")

    def __init__(self, send_buffer_bytes: int) -> None:
        """
        Args:
            send_buffer_bytes: the send buffer that connections have (``socket.send.buffer.bytes``).
        """
        self.send_buffer_bytes = send_buffer_bytes
        self.is_usable = sys.platform == "linux" and hasattr(os, "splice")
        """Whether the system has what this needs, as far as is known."""
        self._entrance = self._exit = self._nowhere = -1
        self._held = 0

    def close(self) -> None:
        """
        Give the descriptors back; from now on the pipe is of no use.
        """
        self.is_usable = False
        for descriptor in (self._entrance, self._exit, self._nowhere):
            if descriptor >= 0:
                os.close(descriptor)
        self._entrance = self._exit = self._nowhere = -1

    def fill(self, parts: Iterable[AnswerPart]) -> int:
        """
        Put the next *parts* in, without taking them, as far as there is room and the page cache has
        them; how many bytes that are.
        """
        if self._entrance < 0 and not self._open():
            return 0
        self.forget()  # Bytes that an error has left are not for the next sender.
        for part in parts:
            if isinstance(part, StoredRecords):
                count = part.splice_into(self._entrance, PIPE_BYTES)
            else:
                try:
                    count = os.write(self._entrance, part)
                except BlockingIOError:
                    break
            self._held += count
            if count < len(part):
                break
        return self._held

    def _open(self) -> bool:
        if not self.is_usable:
            return False
        try:
            self._exit, self._entrance = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self._nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            fcntl.fcntl(self._entrance, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError as error:
            # No descriptors are left, or somebody limits pipes to 64 KB: not worth the trouble.
            logger.info("Records are copied to sockets, for there is no large pipe: %s", error)
            self.close()
        return self.is_usable

    def empty_into(self, peer: int) -> int:
        """
        Send what is in the pipe, as far as the socket with the descriptor *peer* takes it at once,
        and forget the rest; how many bytes were sent.
        """
        try:
            sent = os.splice(self._exit, peer, self._held)
        except OSError:  # It is full, or broken, which the next write to it tells as well.
            sent = 0
        self._held -= sent
        self.forget()
        return sent

    def forget(self) -> None:
        """
        Have nothing in the pipe.
        """
        while self._held:
            self._held -= os.splice(self._exit, self._nowhere, self._held)
