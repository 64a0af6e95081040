"""
The order to clean one log, and the exceptions that end its cleaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.structs import struct

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log


class LogCleaningAborted(Exception):
    """
    Another thread waits for the log: it deletes or truncates it, or changes its policy.
    """


class CleanerStopped(LogCleaningAborted):
    """
    The cleaner thread is to end.
    """


@struct(kw_only=True)
class LogToClean:
    """
    A log, and the part of it whose keys decide which records stay (Kafka's class of that name).

    Invariants:

    1. ``uncleanable_offset`` is the base offset of a segment: whole segments are cleaned. It is
       below ``first_dirty_offset`` only if that lies in the segment which begins there.
    """

    log: Log
    first_dirty_offset: int
    """Where the last cleaning ended."""
    uncleanable_offset: int
    """Records from here on stay as they are."""
    cleanable_ratio: float = 0.0
    """How dirty the log is, from 0 to 1."""
