"""
Checking a produced batch, and giving it its place in the log (Kafka's LogValidator).

::

    producer's codec   codec of the topic   result
    none               none                 its header is changed where it lies
    some               the same             likewise, if the offset deltas are 0, 1, 2, ...
    some or none       another one          it is rebuilt

Every record is checked in any case. Of the header, base offset and leader epoch are set; the
largest timestamp is that of the records, or the time of the append.

The examination comes before the numbers, and depends only on the batch and the configuration. It
may take a second, for a batch that becomes 256 MiB, so that a thread of its own can do it::

    batch -- examine ------------------> Examined -- assign offsets --> the batch to append
                | takes long                ^
                +--> BatchTakesLong ... examine in a thread
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.compression import (
    LARGEST_BYTES,
    LARGEST_RATIO,
    CompressionType,
    DecompressedTooLarge,
    decompress_chunks,
)
from barnabas.protocol.errors import InvalidRecord, MessageTooLarge, UnknownServerError
from barnabas.protocol.records import rules as record_rules
from barnabas.protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    RecordBatch,
    TimestampType,
    assign,
    read_batch,
    set_max_timestamp,
)
from barnabas.protocol.records.rules import RecordRules
from barnabas.protocol.records.scan import ENDLESS_LENGTH, RecordScan, scan_by_rules
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import (
    BatchTakesLong,
    RecordError,
    RecordValidationError,
    RejectedRecords,
    RejectedTimestamps,
)
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.batch_rebuild import rebuild_batch
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.threads.turns import ThreadTurns, offered
from barnabas.storage.units import KiB, MiB

_LOG_APPEND_TIME_BIT = 3

_CLIENT: Final = AppendOrigin.CLIENT

EXAMINED_AT_ONCE_BYTES: Final = 4 * MiB
"""
The largest decompressed batch that is examined at once: some 20 ms on the event loop.
"""
REBUILT_AT_ONCE_BYTES: Final = 256 * KiB
"""
The same for a batch that is compressed again, which takes longer.
"""


class Examined:
    """
    A batch whose records are good, for one configuration of its topic.

    Attributes:
        batch: the batch that is to be appended: the producer's, or one built from its records.
        max_timestamp: the largest of a record, in ms.
    """

    __slots__ = ("batch", "config", "max_timestamp", "record_count")

    def __init__(
        self, batch: RecordBatch, config: LogConfig, record_count: int, max_timestamp: int
    ) -> None:
        self.batch = batch
        self.config = config
        self.record_count = record_count
        self.max_timestamp = max_timestamp


class LogValidator:
    """
    Checks batches by one configuration of a topic.

    The log that owns it holds its lock: the rules are changed in place for each batch.
    """

    __slots__ = ("_config", "_partition", "_rules", "_target", "_timestamp_type")

    def __init__(self, topic_partition: object, config: LogConfig) -> None:
        self._partition = topic_partition
        self._config = config
        self._target = config.target_compression
        self._timestamp_type = config.timestamp_type
        self._rules = RecordRules(
            keys_required=config.compact,
            create_time=config.timestamp_type is TimestampType.CREATE_TIME,
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
        )

    def examine(
        self,
        batch: RecordBatch,
        *,
        origin: AppendOrigin,
        now_ms: int,
        at_once: bool = False,
        turns: ThreadTurns | None = None,
    ) -> Examined:
        """
        Check *batch*, and build another one of its records where it cannot be stored as it is.

        Args:
            at_once: do not, if that takes long.
            turns: offered to other threads.

        Raises:
            BatchTakesLong: that is so.
            InvalidRecord: the batch contradicts itself, or is none that its origin may write.
            RecordValidationError: some of its records are not acceptable.
            MessageTooLarge: the rebuilt batch would be larger than ``max.message.bytes``.
            UnknownServerError: the batch cannot be decompressed, or cannot be rebuilt, or has other
                offsets inside than its records' numbers; or the length of a
                record that is not compressed is no number.
        """
        if origin is _CLIENT:
            self._validate_batch(batch)
        attributes = batch.attributes
        source = attributes & COMPRESSION_MASK
        target = source if self._target is None else self._target
        # Markers are so small that they are never compressed.
        in_place = source == target or (source == 0 and attributes & CONTROL_FLAG != 0)
        most_bytes = LARGEST_BYTES
        if at_once:
            most_bytes = EXAMINED_AT_ONCE_BYTES if in_place else REBUILT_AT_ONCE_BYTES
            if not in_place and batch.batch_length > most_bytes:
                raise BatchTakesLong

        exact = not in_place or not source
        scan = self._scan(batch, source, now_ms, exact=exact, most_bytes=most_bytes, turns=turns)
        if in_place and source and not scan.consecutive:
            # Kafka finds out too late that it has to rebuild the batch, and fails.
            raise UnknownServerError("The records of a compressed batch are not numbered in turn.")
        if not in_place or (target and not scan.consecutive):
            batch = self._rebuild(batch, scan, CompressionType(target), turns)
        return Examined(batch, self._config, scan.count, scan.max_timestamp)

    def assign_offsets(
        self, examined: Examined, info: LogAppendInfo, *, leader_epoch: int, now_ms: int
    ) -> memoryview:
        """
        Number the records of a batch from the first offset of *info* on.

        Args:
            info: gets the last offset and the timestamps.

        Returns:
            The batch as it may be appended.

        Raises:
            BatchTakesLong: it was examined for another configuration, and takes long.
        """
        if examined.config is not self._config:
            raise BatchTakesLong
        batch = examined.batch
        last_offset = info.last_offset = info.first_offset + examined.record_count - 1
        timestamp_type = self._timestamp_type
        if timestamp_type:
            max_timestamp = info.log_append_time = now_ms
        else:
            max_timestamp = examined.max_timestamp
        info.max_timestamp = max_timestamp
        view, position = batch.buffer, batch.position
        assign(view, position, last_offset - batch.last_offset_delta, leader_epoch)
        if (
            batch.max_timestamp != max_timestamp
            or batch.attributes >> _LOG_APPEND_TIME_BIT & 1 != timestamp_type
        ):
            set_max_timestamp(view, position, timestamp_type, max_timestamp)
        size = LOG_OVERHEAD + batch.batch_length
        return view if size == len(view) else view[position : position + size]

    def _rebuild(
        self,
        batch: RecordBatch,
        scan: RecordScan,
        target: CompressionType,
        turns: ThreadTurns | None,
    ) -> RecordBatch:
        if target is CompressionType.NONE:
            # Known before it takes any memory.
            self._check_size(HEADER_SIZE + scan.size)
        level = self._config.compression_level(target)
        rebuilt = rebuild_batch(batch, scan, codec=target, level=level, turns=turns)
        self._check_size(len(rebuilt))
        return read_batch(memoryview(rebuilt))

    def _validate_batch(self, batch: RecordBatch) -> None:
        """
        Check the header of a batch of a client.
        """
        count = batch.record_count
        count_from_offsets = batch.last_offset_delta + 1
        if count_from_offsets <= 0:
            raise InvalidRecord(
                f"Batch has an invalid offset range: [{batch.base_offset}, {batch.last_offset}] in "
                f"topic partition {self._partition}"
            )
        if count <= 0:
            raise InvalidRecord(
                f"Invalid reported count for record batch: {count} in topic partition "
                f"{self._partition}"
            )
        if count_from_offsets != count:
            raise InvalidRecord(
                f"Inconsistent batch offset range [{batch.base_offset}, {batch.last_offset}] and "
                f"count of records {count} in topic partition {self._partition}"
            )
        if batch.attributes & CONTROL_FLAG:
            raise InvalidRecord(
                "Clients are not allowed to write control records in topic partition "
                f"{self._partition}"
            )
        if batch.base_sequence < 0 and batch.producer_id >= 0:
            raise InvalidRecord(
                f"Invalid sequence number {batch.base_sequence} in record batch with producerId "
                f"{batch.producer_id} in topic partition {self._partition}"
            )

    def _scan(
        self,
        batch: RecordBatch,
        source: int,
        now_ms: int,
        *,
        exact: bool,
        most_bytes: int,
        turns: ThreadTurns | None,
    ) -> RecordScan:
        """
        Walk the records.

        Args:
            exact: whether the inside of a record is looked at. Kafka does so where it may need it.
        """
        self._rules.now_ms = now_ms
        log_append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME_FLAG else None
        scan = scan_by_rules(
            batch.record_count, batch.base_timestamp, log_append_time, self._rules, exact
        )
        if source == 0:
            # Spelled out, as properties of a batch are not compiled.
            begin, end = batch.position + HEADER_SIZE, batch.position + batch.batch_length
            scan.walk(batch.buffer[begin : end + LOG_OVERHEAD])
        elif batch.record_count > 0:
            self._walk_compressed(batch, scan, most_bytes, turns)
        if scan.malformed == ENDLESS_LENGTH and source == 0:
            # Kafka checks this inside of a record, and in decompressed bytes.
            raise UnknownServerError("The length of a record does not end.")
        if scan.malformed:
            raise InvalidRecord(
                f"Found invalid records in topic partition {self._partition}: {scan.malformed}"
            )
        if scan.errors:
            raise self._rejection(batch, scan.errors, now_ms, exact)
        return scan

    def _walk_compressed(
        self, batch: RecordBatch, scan: RecordScan, most_bytes: int, turns: ThreadTurns | None
    ) -> None:
        allowed = self._config.barnabas_max_decompressed_bytes
        chunks = decompress_chunks(
            batch.compression, batch.payload, most_bytes=min(allowed, most_bytes)
        )
        try:
            scan.walk_chunks(chunks if turns is None else offered(chunks, turns))
        except DecompressedTooLarge as error:
            if most_bytes < allowed:
                raise BatchTakesLong from None
            raise UnknownServerError(
                f"{error}. A batch may become 64 MiB, or {LARGEST_RATIO} times its size, but not"
                f" more than barnabas.max.decompressed.bytes ({allowed})"
            ) from None

    def _rejection(
        self,
        batch: RecordBatch,
        errors: Sequence[record_rules.RejectedRecord],
        now_ms: int,
        exact: bool,
    ) -> RecordValidationError:
        found = [
            RecordError(error.batch_index, self._sentence(batch, error, now_ms, exact))
            for error in errors
        ]
        if all(error.lacks_key for error in errors):
            return RejectedRecords(found)
        return RejectedTimestamps(found)

    def _sentence(
        self, batch: RecordBatch, error: record_rules.RejectedRecord, now_ms: int, exact: bool
    ) -> str:
        if error.lacks_key:
            return (
                "Compacted topic cannot accept message without key in topic partition "
                f"{self._partition}"
            )
        offset = batch.base_offset + error.offset_delta
        if error.wrong_type:
            # Kafka prints the object that it has read: without its key and value if it need not
            # look inside.
            kind, least = ("DefaultRecord", 0) if exact else ("PartialDefaultRecord", -1)
            return (
                f"Invalid timestamp type in message {kind}(offset={offset}, "
                f"timestamp={error.timestamp}, key={max(error.key_size, least)} bytes, "
                f"value={max(error.value_size, least)} bytes). Producer should not set timestamp "
                "type to LogAppendTime."
            )
        earliest = now_ms - self._config.message_timestamp_before_max_ms
        latest = now_ms + self._config.message_timestamp_after_max_ms
        return (
            f"Timestamp {error.timestamp} of message with offset {offset} is out of range. The "
            f"timestamp should be within [{earliest}, {latest}]"
        )

    def _check_size(self, size: int) -> None:
        most = self._config.max_message_bytes
        if size > most:
            raise MessageTooLarge(
                f"Message batch size is {size} bytes in append to partition {self._partition} "
                f"which exceeds the maximum configured size of {most}."
            )
