"""
The records of a log that retention will delete before a group has read them.

::

    time      now           first check              second check
    log       |  segment  |  segment  |  segment  |  active  |
    group         o----------->x         o----->x
                               |loss  |         |loss

The group reads on at its pace. What it has not read of a segment when that is deleted is lost, and
the group goes on at the new start of the log, as with ``auto.offset.reset=earliest``. Records that
are not in the log yet are not looked at.
"""

from __future__ import annotations

from enum import Enum
from math import inf

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.forecast.commits import CommitHistory, Movement, Pace
from barnabas.storage.forecast.deletions import Deletion, LogOutlook


class ForecastVerdict(Enum):
    """
    Whether records will be deleted unread.
    """

    NOTHING_UNREAD = "the group has read all records"
    NEVER_DELETED = "retention deletes none of the unread records"
    IN_TIME = "the group reads all records before they are deleted"
    LOSS = "records are deleted unread"
    UNKNOWN = "the pace of the group is not known"


class Loss(NamedTuple):
    """
    The records that will be deleted unread.
    """

    first_offset: int
    records: int
    """The number of their offsets: there are fewer in a compacted log."""
    size: int
    """About how many bytes they have: a part of a segment counts in proportion to its offsets."""
    deletion: Deletion
    """The first deletion of unread records."""
    reaches_ms: float
    """When the group would reach the end of that segment; infinite if it stands still."""
    ends_ms: float
    """The last check that deletes some of them."""

    @property
    def begins_ms(self) -> float:
        return self.deletion.time_ms


@struct
class Forecast:
    """
    What becomes of the records that a group has not read.
    """

    now_ms: int
    verdict: ForecastVerdict
    pace: Pace
    position: int
    """Where the group reads on: not below the start of the log."""
    unread: int
    """The offsets from there to the high watermark."""
    already_deleted: int
    """The offsets that were deleted before the group has read them."""
    next_deletion: Deletion | None
    """Of the segment with its position, if that is going to be deleted."""
    loss: Loss | None
    reaches_end_ms: float | None
    """When the group reaches the high watermark of now; None if it does not, or nobody knows."""


def forecast(commits: CommitHistory, log: LogOutlook, *, now_ms: int, seen_ms: int) -> Forecast:
    """
    What becomes of the records of *log* that the group with these *commits* has not read.

    Args:
        now_ms: the time from which group and broker are supposed to go on.
        seen_ms: the time up to which commits would have been seen.
    """
    pace = commits.pace(seen_ms)
    end = log.high_watermark
    position = max(min(pace.position, max(end, pace.offset)), log.log_start_offset)
    ahead = [each for each in log.deletions if each.end_offset > position and each.size]
    walk = _Walk(position, pace.records_per_ms, now_ms)
    for deletion in ahead:
        walk.pass_segment(deletion, end)
    next_deletion = ahead[0] if ahead and ahead[0].time_ms < inf else None
    if position >= end:
        verdict = ForecastVerdict.NOTHING_UNREAD
    elif next_deletion is None:
        verdict = ForecastVerdict.NEVER_DELETED
    elif pace.movement is Movement.UNKNOWN:
        verdict = ForecastVerdict.UNKNOWN
    else:
        verdict = ForecastVerdict.IN_TIME if walk.loss is None else ForecastVerdict.LOSS
    return Forecast(
        now_ms,
        verdict,
        pace,
        position,
        max(0, end - position),
        max(0, log.log_start_offset - max(0, pace.position)),
        next_deletion,
        walk.loss if verdict is ForecastVerdict.LOSS else None,
        walk.at_ms if pace.records_per_ms and walk.at_ms < inf else None,
    )


class _Walk:
    """
    A group on its way along the segments.
    """

    def __init__(self, position: int, rate: float, now_ms: int) -> None:
        self.at_ms: float = now_ms
        """The time at which it is at ``position``."""
        self.loss: Loss | None = None
        self._position: float = position
        self._rate = rate

    def pass_segment(self, deletion: Deletion, high_watermark: int) -> None:
        """
        Read a segment up to the end, or as far as the group gets before it is deleted.
        """
        end = min(deletion.end_offset, high_watermark)
        unread = end - self._position
        if unread <= 0:
            return
        reaches_ms = self.at_ms + (unread / self._rate if self._rate else inf)
        deleted_ms = deletion.time_ms
        if reaches_ms > deleted_ms:
            reached = self._position + max(0.0, deleted_ms - self.at_ms) * self._rate
            self._lose(deletion, round(reached), end, reaches_ms)
            reaches_ms = max(self.at_ms, deleted_ms)
        self._position = end
        self.at_ms = reaches_ms

    def _lose(self, deletion: Deletion, first: int, end: int, reaches_ms: float) -> None:
        records = end - first
        if records <= 0:
            return
        share = records / max(1, deletion.end_offset - deletion.base_offset)
        size = round(deletion.size * min(1.0, share))
        known = self.loss
        if known is None:
            self.loss = Loss(first, records, size, deletion, reaches_ms, deletion.time_ms)
        else:
            self.loss = known._replace(
                records=known.records + records,
                size=known.size + size,
                ends_ms=deletion.time_ms,
            )
