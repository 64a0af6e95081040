"""
The groups of a partition, and what will be deleted before they have read it.

Their commits are the records of ``__consumer_offsets``, for share groups those of
``__share_group_state``. Older commits are there until compaction removes them: a pace is that of
the commits which are left, and unknown if there is one only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

from barnabas.protocol.codec.codec import decode_from
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.internal_topics.group_records import (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.protocol.internal_topics.share_state_records import (
    RECORDS,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.control import ControlRecordType
from barnabas.protocol.records.record import Record
from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.explain.known import BrokerTimes, unreadable
from barnabas.storage.explain.logs import READ_ERRORS, Condition, ReadOnlyLog, ReadOnlyLogs
from barnabas.storage.explain.retention import retention_checks
from barnabas.storage.forecast.commits import CommitHistory
from barnabas.storage.forecast.deletions import outlook
from barnabas.storage.forecast.forecast import Forecast, forecast
from barnabas.storage.log.retention import LogState

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"

_VERSION: Final = Struct(">h")
_OFFSET_KEYS: Final = {LegacyOffsetCommitKey.api.key, OffsetCommitKey.api.key}


class GroupKey(NamedTuple):
    """
    A partition of the topic as one group reads it.
    """

    group_id: str
    partition: int
    is_share: bool


@struct
class GroupReport:
    """
    A group, and what it will lose of one partition.
    """

    group_id: str
    is_share: bool
    forecast: Forecast


class StoredCommit(NamedTuple):
    """
    A commit, as a record has it; without an offset it deletes the one before.
    """

    key: GroupKey
    offset: int | None
    time_ms: int
    record_offset: int


class TopicGroups:
    """
    The groups that have committed offsets of one topic, from the files of internal topics.
    """

    def __init__(self, logs: ReadOnlyLogs, opened: ReadOnlyLog, until_ms: int) -> None:
        """
        Args:
            opened: a partition of the topic that the groups read.
            until_ms: later commits do not count.

        Raises:
            ExplainError: files cannot be read.
        """
        self._topic = opened.partition.topic
        self._topic_id = opened.log.topic_id
        self._log_start_offset = opened.log.log_start_offset
        self._until_ms = until_ms
        self._known: dict[GroupKey, tuple[CommitHistory, int]] = {}
        self.latest_ms = 0
        """The time of the latest commit of any group, and of any topic."""
        self._read(logs, GROUP_METADATA_TOPIC, self._committed)
        if self._topic_id is not None:
            self._read(logs, SHARE_GROUP_STATE_TOPIC, self._shared)

    def of_partition(self, partition: int) -> Iterator[tuple[GroupKey, CommitHistory]]:
        """
        The groups that have read a partition, by name.
        """
        for key in sorted(self._known):
            if key.partition == partition:
                yield key, self._known[key][0]

    def _read(
        self, logs: ReadOnlyLogs, topic: str, commit_of: Callable[[Record], StoredCommit | None]
    ) -> None:
        if topic not in logs.topics:
            return
        for partition in logs.find(topic):
            opened = logs.open(partition)
            pending: dict[int, list[StoredCommit]] = {}
            try:
                for segment in opened.log.segments.values():
                    for batch in segment.log.batches():
                        self._replay(batch, pending, commit_of)
            except (*READ_ERRORS, DecodeError) as error:
                raise unreadable(f"The log in {opened.path}", error) from error

    def _replay(
        self,
        batch: RecordBatch,
        pending: dict[int, list[StoredCommit]],
        commit_of: Callable[[Record], StoredCommit | None],
    ) -> None:
        """
        Take the commits of a batch, or those of the transaction that its marker commits.
        """
        if batch.is_control:
            commits = pending.pop(batch.producer_id, [])
            kinds = {ControlRecordType.of(marker.key) for marker in batch.records(most_headers=0)}
            if ControlRecordType.COMMIT in kinds:
                self._apply(commits)
            return
        if batch.max_timestamp <= self._until_ms:
            self.latest_ms = max(self.latest_ms, batch.max_timestamp)
        commits = [
            found
            for record in batch.records(most_headers=0)
            if (found := commit_of(record)) is not None
        ]
        if batch.is_transactional:
            pending.setdefault(batch.producer_id, []).extend(commits)
        else:
            self._apply(commits)

    def _apply(self, commits: list[StoredCommit]) -> None:
        """
        Take commits, except those of which a later record has counted already: a transaction may
        end after it.
        """
        for key, offset, time_ms, record_offset in commits:
            known = self._known.get(key)
            if time_ms > self._until_ms or (known is not None and record_offset < known[1]):
                continue
            if offset is None:
                self._known.pop(key, None)
                continue
            history = CommitHistory(offset, time_ms) if known is None else known[0]
            history.add(offset, time_ms, self._log_start_offset)
            self._known[key] = history, record_offset

    def _committed(self, record: Record) -> StoredCommit | None:
        """
        The commit of a record of ``__consumer_offsets``; None if it is of another kind or topic.
        """
        key, value = record.key, record.value
        if key is None or _version(key) not in _OFFSET_KEYS:
            return None
        whose = decode_from(OffsetCommitKey, 0, key, _VERSION.size)[0]
        if whose.topic != self._topic:
            return None
        group = GroupKey(whose.group, whose.partition, is_share=False)
        if value is None:
            return StoredCommit(group, None, record.timestamp, record.offset)
        stored = decode_from(OffsetCommitValue, _version(value), value, _VERSION.size)[0]
        return StoredCommit(group, stored.offset, stored.commit_timestamp, record.offset)

    def _shared(self, record: Record) -> StoredCommit | None:
        """
        The start offset in a record of ``__share_group_state``; None if it says nothing of it, or
        is of another topic.
        """
        key, value = record.key, record.value
        if key is None or _version(key) not in RECORDS:
            return None
        key_class, value_class = RECORDS[_version(key)]
        whose = decode_from(key_class, 0, key, _VERSION.size)[0]
        assert isinstance(whose, ShareSnapshotKey | ShareUpdateKey)
        if whose.topic_id != self._topic_id:
            return None
        group = GroupKey(whose.group_id, whose.partition, is_share=True)
        if value is None:
            return StoredCommit(group, None, record.timestamp, record.offset)
        stored = decode_from(value_class, _version(value), value, _VERSION.size)[0]
        assert isinstance(stored, ShareSnapshotValue | ShareUpdateValue)
        if stored.start_offset < 0:
            return None
        return StoredCommit(group, stored.start_offset, record.timestamp, record.offset)


def groups_of(
    opened: ReadOnlyLog, known: TopicGroups, times: BrokerTimes, now_ms: int
) -> tuple[GroupReport, ...]:
    """
    What the groups of a partition will lose, if a broker runs from now on.

    While no broker runs, nobody can commit or produce: the pace is that of the last commit or
    record.
    """
    log = opened.log
    seen_ms = now_ms
    if opened.condition is not Condition.IN_USE:
        seen_ms = min(now_ms, max(known.latest_ms, log.largest_record_timestamp() or 0))
    state = LogState(
        log.segments.values(), log.log_start_offset, log.high_watermark, log.log_end_offset
    )
    checks = retention_checks(log.config, times)
    seen = outlook(state, log.config, checks, now_ms=now_ms, seen_ms=seen_ms)
    return tuple(
        GroupReport(
            key.group_id, key.is_share, forecast(commits, seen, now_ms=now_ms, seen_ms=seen_ms)
        )
        for key, commits in known.of_partition(opened.partition.partition)
    )


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("a record without a type or a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version
