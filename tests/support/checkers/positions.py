"""
The offsets and the epoch of a partition only move forward.

Legitimate exceptions:

* A topic that is deleted and created again is another topic: it has another id (KIP-516), and
  partitions of their own (Kafka ``ReplicaManager.applyDelta``).
* A directory that fails takes its partitions along; a partition that is opened again, also after
  its log has moved to another directory, is another object here (Kafka
  ``ReplicaManager.handleLogDirFailure``, ``Partition.maybeReplaceCurrentWithFutureReplica``).
* A log is truncated where it follows a leader (Kafka ``UnifiedLog.truncateTo`` and
  ``truncateFullyAndStartAt``). A node without other replicas is always the leader, so the rules
  have no exception for it.
* After a restart the high watermark is that of the last checkpoint (Kafka
  ``ReplicaManager.checkpointHighWatermarks``). A clean stop writes one, a killed broker does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol


class Place(Protocol):
    """
    The log of a partition, as far as its offsets are concerned.
    """

    log_start_offset: Any
    last_stable_offset: Any
    high_watermark: Any
    log_end_offset: Any


class Led(Protocol):
    """
    A partition.
    """

    topic: Any
    index: Any
    topic_id: Any
    leader_epoch: Any
    error: Any
    log: Any


NAMES = ("log start offset", "last stable offset", "high watermark", "leader epoch")


class Positions:
    """
    What the partitions of a broker were at when they were last looked at.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._seen: dict[tuple[str, int], tuple[Any, tuple[int, int, int, int]]] = {}

    def look(self, partitions: Iterable[Led]) -> None:
        """
        Compare each partition with what it was.
        """
        seen = self._seen
        for partition in partitions:
            if partition.error is not None:
                continue
            log = partition.log
            # The later offset is read last, so that an append in between cannot make it smaller.
            start, stable = log.log_start_offset, log.last_stable_offset
            now = (start, stable, log.high_watermark, partition.leader_epoch)
            if now[2] > log.log_end_offset:
                self._report(
                    f"{partition.topic}-{partition.index}: the high watermark {now[2]} is behind"
                    f" the end of the log, {log.log_end_offset}"
                )
            key = (partition.topic, partition.index)
            before = seen.get(key)
            if before is not None and before[0] is partition and before[1] != now:
                self._compare(partition, before[1], now)
            if before is None or before[0] is not partition or before[1] != now:
                seen[key] = (partition, now)

    def _compare(
        self, partition: Led, before: tuple[int, int, int, int], now: tuple[int, int, int, int]
    ) -> None:
        for name, old, new in zip(NAMES, before, now, strict=True):
            if new < old:
                self._report(
                    f"{partition.topic}-{partition.index}: the {name} went back from {old} to {new}"
                )
