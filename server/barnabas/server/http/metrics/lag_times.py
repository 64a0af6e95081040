"""
The lag of groups in seconds.

It is the age of the batch with the first record that a group has not consumed: its header is read,
if the page cache has it. The times are kept from one scrape to the next: a group that stands still
costs nothing.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.records.batch import MAGIC, MAGIC_AT, MAX_TIMESTAMP_AT, NO_TIMESTAMP
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.log.fetch_isolation import FetchIsolation

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

logger = logging.getLogger(__name__)

LagKey: TypeAlias = tuple[str, str, int]
"""
A group, a topic and a partition.
"""

MOST_LOOKUPS: Final = 1000
"""
So many headers are read in one scrape; each takes some ten microseconds. A group for which none is
left keeps the time of its last one, which makes it seem older.
"""
_TIMESTAMP: Final = Struct(">q")
_HEAD_BYTES: Final = MAX_TIMESTAMP_AT + _TIMESTAMP.size


class LagTimes:
    """
    The times of the first records that groups have not consumed.

    Only groups that are behind are known, and of these the ones with series of their own.
    """

    def __init__(self) -> None:
        self._known: dict[
            LagKey, tuple[int, int]
        ] = {}  # an offset, and the time of its batch in ms

    def scrape(self) -> LagTimesOfScrape:
        """
        Begin a scrape.
        """
        return LagTimesOfScrape(self, self._known)

    def keep(self, known: dict[LagKey, tuple[int, int]]) -> None:
        """
        Keep the times of a scrape that has ended, and no others.
        """
        self._known = known


class LagTimesOfScrape:
    """
    The times that one scrape shows.
    """

    def __init__(self, times: LagTimes, before: dict[LagKey, tuple[int, int]]) -> None:
        self._times = times
        self._before = before
        self._found: dict[LagKey, tuple[int, int]] = {}
        self._left = MOST_LOOKUPS

    def seconds(self, key: LagKey, log: Log, offset: int, now_ms: int) -> float | None:
        """
        The age of the batch at *offset* of *log*, which is not at its end; None if it is not known.
        """
        known = self._before.get(key)
        if (known is None or known[0] != offset) and self._left > 0:
            self._left -= 1
            time_ms = _time_of(log, offset)
            known = None if time_ms is None else (offset, time_ms)
        if known is None:
            return None
        self._found[key] = known
        return max(0, now_ms - known[1]) / 1000

    def finish(self) -> None:
        """
        Keep the times for the next scrape.
        """
        self._times.keep(self._found)


def _time_of(log: Log, offset: int) -> int | None:
    """
    The largest timestamp of the batch with *offset*, in ms; None if it has none, or the page cache
    lacks it.
    """
    head = bytearray(_HEAD_BYTES)
    try:
        found = log.read(offset, 1, FetchIsolation.HIGH_WATERMARK, True, nowait=True).records
        if found is None or found.file.read_into(found.position, memoryview(head), nowait=True) < (
            _HEAD_BYTES
        ):
            return None
    except WouldBlock:
        return None
    except KafkaError as error:  # the log is deleted, say, or its directory has failed
        logger.debug("%s has no time for offset %d: %s", log.topic_partition, offset, error)
        return None
    (time_ms,) = _TIMESTAMP.unpack_from(head, MAX_TIMESTAMP_AT)
    return time_ms if head[MAGIC_AT] == MAGIC and time_ms != NO_TIMESTAMP else None
