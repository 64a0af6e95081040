"""
What retention will delete before groups have read it, looked at again and again.

::

    loop    positions of all groups, in turns --> histories            warnings --> log
    upkeep                                          segments --> forecasts

The histories are of the event loop; a thread reads the segments, whose time indexes may be on the
disk, and foresees.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.structs import struct
from barnabas.server.forecast.positions import CommittedPosition, GroupPartition, positions
from barnabas.server.forecast.warnings import LossWarning, news_in, warn
from barnabas.storage.forecast.commits import CommitHistory
from barnabas.storage.forecast.deletions import Checks, LogOutlook, checks_of, outlook
from barnabas.storage.forecast.forecast import Forecast, forecast
from barnabas.storage.log.retention import LogState
from barnabas.storage.threads.turns import SHORT_TURNS, ThreadTurns, offered

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.storage.log.log import Log

logger = logging.getLogger(__name__)

MOST_FOLLOWED: Final = 10_000
"""
So many partitions of groups are followed, each with a history of its commits.
"""
POSITIONS_PER_STEP: Final = 128
"""
Each takes one to three microseconds.
"""


@struct(frozen=False)
class Followed:
    """
    A partition of a group that is followed.
    """

    commits: CommitHistory
    warning: LossWarning
    forecast: Forecast | None = None
    """The last one; None if there was none yet."""


class Forecasts:
    """
    The forecasts for all groups, each as of the last round.

    Invariants:

    1. At most ``MOST_FOLLOWED`` partitions of groups are followed. Groups that are behind come
       first; others keep their places while there are enough.

    Used on the event loop's thread only; what takes files is done in ``upkeep``.
    """

    def __init__(self, parts: BrokerParts) -> None:
        self._parts = parts
        self._followed: dict[GroupPartition, Followed] = {}
        self._is_full = False

    def __iter__(self) -> Iterator[tuple[GroupPartition, Forecast]]:
        for key, followed in tuple(self._followed.items()):
            if followed.forecast is not None:
                yield key, followed.forecast

    def get(self, group_id: str, topic: str, partition: int) -> Forecast | None:
        """
        The forecast of the last round; None if there was none for that group and partition.
        """
        followed = self._followed.get(GroupPartition(group_id, topic, partition))
        return None if followed is None else followed.forecast

    async def check(self) -> None:
        """
        Do a round: see how far the groups are, foresee, and warn.
        """
        parts = self._parts
        behind = await parts.turns.finish(self._follow(), 1 + len(self._followed))
        now_ms = parts.clock.now_ms()
        found = await parts.workers.in_upkeep(lambda: self._foresee(behind, now_ms))
        news = await parts.turns.finish(news_in(self._conclude(found)), 1 + len(self._followed))
        if news:
            await parts.workers.in_upkeep(lambda: warn(news))

    async def of_group(self, group_id: str) -> dict[str, dict[int, Forecast]]:
        """
        The forecasts for a group as of now, by topic and partition.
        """
        parts = self._parts
        asked: list[tuple[CommittedPosition, CommitHistory]] = []
        found: dict[str, dict[int, Forecast]] = {}
        async for position in parts.turns.between(positions(parts, group_id)):
            if position is not None:
                followed = self._followed.get(position.key)
                commits = _history(position) if followed is None else followed.commits.copied()
                _move(commits, position)
                asked.append((position, commits))
        now_ms = parts.clock.now_ms()
        for key, foreseen in (
            await parts.workers.in_upkeep(lambda: self._foresee(asked, now_ms))
        ).items():
            found.setdefault(key.topic, {})[key.partition] = foreseen
        return found

    async def _follow(self) -> list[tuple[CommittedPosition, CommitHistory]]:
        """
        The positions of the groups that are followed, with their histories up to now.
        """
        before = self._followed
        followed: dict[GroupPartition, Followed] = {}
        asked = []
        for number, position in enumerate(positions(self._parts)):
            if number % POSITIONS_PER_STEP == 0:
                await checkpoint()
            if position is None:
                continue
            is_behind = position.offset < position.partition.log.high_watermark
            known = before.get(position.key)
            if len(followed) >= MOST_FOLLOWED or not (
                is_behind or (known is not None and not self._is_full)
            ):
                continue
            if known is None:
                known = Followed(_history(position), LossWarning())
            _move(known.commits, position)
            followed[position.key] = known
            asked.append((position, known.commits))
        self._is_full = len(followed) >= MOST_FOLLOWED
        self._followed = followed
        return asked

    def _foresee(
        self, asked: Iterable[tuple[CommittedPosition, CommitHistory]], now_ms: int
    ) -> dict[GroupPartition, Forecast]:
        """
        Called in a thread.
        """
        found: dict[GroupPartition, Forecast] = {}
        logs: dict[Partition, LogOutlook | None] = {}
        with SHORT_TURNS:
            for position, commits in offered(asked, ThreadTurns()):
                partition = position.partition
                if partition not in logs:
                    logs[partition] = self._outlook(partition.log, now_ms)
                seen = logs[partition]
                if seen is not None:
                    found[position.key] = forecast(commits, seen, now_ms=now_ms, seen_ms=now_ms)
        return found

    def _conclude(
        self, found: Mapping[GroupPartition, Forecast]
    ) -> Iterator[tuple[GroupPartition, LossWarning, Forecast | None]]:
        """
        Keep the forecasts of a round, one after the other.
        """
        for key, followed in self._followed.items():
            followed.forecast = found.get(key)
            yield key, followed.warning, followed.forecast

    def _outlook(self, log: Log, now_ms: int) -> LogOutlook | None:
        """
        The deletions of *log*; None if it cannot be read.
        """
        manager = self._parts.log_manager
        every = Checks(
            self._parts.config.log_retention_check_interval_ms,
            manager.maintenance.next_retention_check_ms,
        )
        cleaner = manager.cleaner
        backoff_ms = None if cleaner is None else cleaner.settings.backoff_ms
        try:
            return outlook(
                LogState(
                    log.segments.values(),
                    log.log_start_offset,
                    log.high_watermark,
                    log.log_end_offset,
                ),
                log.config,
                checks_of(log.config, every, cleaner_backoff_ms=backoff_ms),
                now_ms=now_ms,
                seen_ms=now_ms,
            )
        except (KafkaError, OSError) as error:  # it is deleted meanwhile, say
            logger.debug("%s has no forecast: %s", log.topic_partition, error)
            return None


def _history(position: CommittedPosition) -> CommitHistory:
    return CommitHistory(position.offset, position.time_ms)


def _move(commits: CommitHistory, position: CommittedPosition) -> None:
    commits.add(position.offset, position.time_ms, position.partition.log.log_start_offset)
