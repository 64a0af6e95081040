"""
A batch that a producer got an offset for stays at that offset, with the same bytes.

The first batches of each partition are remembered, and a part of the later ones: their offset, and
a checksum of their records as the producer has sent them. They are looked up in the files after a
clean stop, by the batches that ``stored`` has found there.

Legitimate exceptions:

* Records below the log start offset: retention (Kafka ``UnifiedLog.deleteOldSegments``) and
  DeleteRecords move it, and a segment is removed only below it.
* Compaction removes records and writes what is left of a batch again (Kafka
  ``Cleaner.cleanInto``): topics whose policy has contained ``compact``.
* The broker writes a batch itself: ``message.timestamp.type=LogAppendTime`` puts a time in it, a
  ``compression.type`` other than ``producer`` compresses it, and formats 0 and 1 are converted
  (Kafka ``LogValidator``). The offset has to be covered by a batch even so.
* The header of a batch is corrected where its largest timestamp is not that of its records, so the
  checksum is not that in the header (Kafka ``DefaultRecordBatch.setMaxTimestamp``).
* A batch with the sequence number of an earlier one repeats it, whatever it contains, and
  is acknowledged at its offset (Kafka ``ProducerStateEntry.findDuplicateBatch``).
* The topic is deleted, or another one has its name; the directory has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID
from zlib import crc32

FIRST: Final = 64
"""
The number of batches of a partition that are all remembered.
"""
EVERY: Final = 16
"""
Of those that follow, one in so many is.
"""
MOST: Final = 512
RECORDS_AT: Final = 57
"""
Where the number of records is in a batch, in front of them.
"""


class Batch(NamedTuple):
    """
    A batch that was acknowledged.
    """

    offset: int
    checksum: int | None
    """Of its records; None if the broker may have written the batch itself."""


class Found(NamedTuple):
    """
    A batch in the files.
    """

    last_offset: int
    checksum: int


class Acknowledged:
    """
    The acknowledged batches of a broker.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._batches: dict[tuple[UUID, int], list[Batch]] = {}
        self._counts: dict[tuple[UUID, int], int] = {}
        self._ends: dict[tuple[UUID, int], int] = {}
        self._compacted: set[tuple[UUID, int]] = set()

    def begin(self, partitions: Iterable[Any]) -> None:
        """
        Remember where the logs end. What an earlier start has written may be acknowledged again,
        whatever the batch that repeats its sequence number contains.
        """
        self._ends = {(each.topic_id, each.index): each.log.log_end_offset for each in partitions}

    def look(self, partitions: Iterable[Any]) -> None:
        """
        Remember which topics are compacted, if only for a while.
        """
        for each in partitions:
            if each.error is None and "compact" in each.log.config.cleanup_policy:
                self._compacted.add((each.topic_id, each.index))

    def __len__(self) -> int:
        return sum(map(len, self._batches.values()))

    def add(self, partition: Any, offset: int, checksum: int | None) -> None:
        """
        Remember a batch at *offset*, for which a producer is sent that offset.
        """
        log = partition.log
        if partition.error is None and offset >= log.high_watermark:
            self._report(
                f"{partition.topic}-{partition.index}: offset {offset} is acknowledged, the high"
                f" watermark is {log.high_watermark}"
            )
        key = (partition.topic_id, partition.index)
        number = self._counts[key] = self._counts.get(key, 0) + 1
        if number > FIRST and number % EVERY:
            return
        if offset < self._ends.get(key, 0):
            return
        batches = self._batches.setdefault(key, [])
        if len(batches) < MOST:
            batches.append(Batch(offset, checksum if is_kept_as_sent(log.config) else None))

    def check(
        self, partitions: Iterable[Any], stored: Callable[[Any], Mapping[int, Found] | None]
    ) -> None:
        """
        Compare what was acknowledged with what is stored.

        Args:
            stored: returns the batches of a partition by their base offset, None if nobody knows.
        """
        partitions = tuple(partitions)
        self.look(partitions)
        for partition in partitions:
            key = (partition.topic_id, partition.index)
            batches = self._batches.get(key)
            if not batches or partition.error is not None or key in self._compacted:
                continue
            found = stored(partition)
            if found is not None:
                self._compare(partition, batches, found)

    def _compare(
        self, partition: Any, batches: Iterable[Batch], found: Mapping[int, Found]
    ) -> None:
        start = partition.log.log_start_offset
        name = f"{partition.topic}-{partition.index}"
        compared: set[int] = set()
        for offset, checksum in batches:
            if offset < start or offset in compared:
                continue
            compared.add(offset)
            batch = found.get(offset)
            if batch is None:
                covered = any(base <= offset <= each.last_offset for base, each in found.items())
                # A batch that is compressed again is one with others of its request.
                if checksum is not None or not covered:
                    self._report(
                        f"{name}: the batch at offset {offset} was acknowledged and is lost"
                    )
            elif checksum is not None and batch.checksum != checksum:
                self._report(
                    f"{name}: the batch at offset {offset} was acknowledged with records of the"
                    f" checksum {checksum:08x} and is stored with {batch.checksum:08x}"
                )


def is_kept_as_sent(config: Any) -> bool:
    """
    Whether batches of a topic are stored as their producers send them.
    """
    return bool(
        config.compression_type == "producer" and config.message_timestamp_type == "CreateTime"
    )


def checksum_of(records: Any) -> int | None:
    """
    The checksum of the records in the first batch of what a producer sends; None if it is not of
    format 2.
    """
    if records is None or len(records) < RECORDS_AT or records[16] != 2:
        return None
    end = 12 + int.from_bytes(records[8:12], "big")
    return crc32(memoryview(records)[RECORDS_AT:end])
