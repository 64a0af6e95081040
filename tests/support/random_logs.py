"""
Logs with something of everything that a compacted topic may hold, the same for the same seed.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import (
    build_batch_with_offsets,
    seal_batch,
)
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import Header, Record, encode_records
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.interface import Files
from barnabas.storage.log.log import Log
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.state import ProducerStateManagerConfig
from tests.support.logs import new_log
from tests.support.segments import FIRST_TIMESTAMP

HEADERS = (
    (),
    (),
    (),
    (Header("h", b"x"),),
    (Header("empty", b""), Header("null", None)),
    (Header("é", b"not ASCII"),),
)


class RandomLog:
    """
    Writes one log.

    A third of the batches come from idempotent producers, a third from transactional ones; of the
    rest, some are such as Kafka takes but never writes itself.
    """

    def __init__(
        self,
        seed: int,
        directory: Path,
        files: Files,
        clock: Clock,
        *,
        codec: CompressionType = CompressionType.LZ4,
    ) -> None:
        """
        Args:
            codec: of the batches that are compressed. Of the codecs, it is LZ4 that comes out of
                all libraries in the same bytes.
        """
        self.random = random = Random(seed)
        self.directory = directory
        self._files = files
        self._clock = clock
        self.keys = random.choice((3, 20, 200))
        self.configs = {
            "internal.segment.bytes": str(random.choice((18_000, 20_000, 40_000))),
            "index.interval.bytes": str(random.choice((0, 100, 4096))),
            "segment.index.bytes": str(random.choice((64, 1024, 10_485_760))),
            "message.timestamp.type": random.choice(("CreateTime", "CreateTime", "LogAppendTime")),
            "max.message.bytes": "100000",
            "delete.retention.ms": str(random.choice((0, 1000, 86_400_000, 2**63 - 1))),
        }
        self._sequences: dict[int, int] = {}
        self._timestamp = FIRST_TIMESTAMP
        self._epoch = 0
        self._codecs = random.choice(([CompressionType.NONE], [CompressionType.NONE, codec]))

    def open(self, policy: str) -> Log:
        """
        Open the log; what has no key is taken only if the *policy* is not to compact.
        """
        config = LogConfig.parse({**self.configs, "cleanup.policy": policy})
        never_expires = ProducerStateManagerConfig(2**31 - 1, False)
        return new_log(
            self.directory,
            config,
            files=self._files,
            clock=self._clock,
            producer_config=never_expires,
        )

    def write(self, appends: int) -> None:
        log = self.open("delete")
        open_transactions: set[int] = set()
        for _ in range(appends):
            self._timestamp += self.random.choice((0, 1, 50, -300, 5000))
            choice = self.random.random()
            if choice < 0.3:
                self._append(log, self._batch(producer_id=self.random.randint(100, 102)))
            elif choice < 0.6:
                self._transact(log, open_transactions)
            elif choice < 0.66:
                self._append(log, self._strange_batch())
            elif choice < 0.7:
                log.roll()
            else:
                self._append(log, self._batch())
        for producer_id in open_transactions:
            self._end(log, producer_id)
        log.roll()
        self._append(log, self._batch())
        log.flush(force_flush_active_segment=True)
        log.close()

    def _transact(self, log: Log, open_transactions: set[int]) -> None:
        producer_id = self.random.randint(200, 203)
        if producer_id in open_transactions and self.random.random() < 0.4:
            open_transactions.remove(producer_id)
            self._end(log, producer_id)
        elif self.random.random() < 0.1:
            # A marker of a transaction without data.
            self._end(log, producer_id + 100)
        else:
            open_transactions.add(producer_id)
            self._append(log, self._batch(producer_id=producer_id, is_transactional=True))

    def _end(self, log: Log, producer_id: int) -> None:
        kind = self.random.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        marker = EndTransactionMarker(kind, 0).batch(
            self._timestamp, producer_id=producer_id, producer_epoch=0
        )
        log.append_as_leader(
            memoryview(marker), self._epoch, origin=AppendOrigin.COORDINATOR, transaction_version=0
        )
        log.update_high_watermark(log.log_end_offset)

    def _append(self, log: Log, batch: bytearray) -> None:
        self._epoch += self.random.random() < 0.05
        log.append_as_leader(memoryview(batch), self._epoch)
        log.update_high_watermark(log.log_end_offset)

    def _record(self, offset: int) -> Record:
        random = self.random
        key = b"" if random.random() < 0.02 else b"key-%d" % random.randrange(self.keys)
        value = random.randbytes(random.choice((0, 1, 10, 63, 64, 200)))
        return Record(
            offset,
            self._timestamp + random.choice((0, 0, 1, 70, -200, 10_000)),
            None if random.random() < 0.03 else key,
            None if random.random() < 0.15 else value,
            random.choice(HEADERS),
        )

    def _batch(self, *, producer_id: int = -1, is_transactional: bool = False) -> bytearray:
        count = self.random.choice((1, 1, 1, 2, 5, 30))
        records = [self._record(offset) for offset in range(count)]
        if self.random.random() < 0.02:
            # More than some buffers hold.
            records[-1] = records[-1]._replace(value=self.random.randbytes(9000))
        if self.random.random() < 0.05:
            records = [record._replace(timestamp=-1) for record in records]
        sequence = -1
        if producer_id >= 0:
            sequence = self._sequences.get(producer_id, 2**31 - 20)
            self._sequences[producer_id] = (sequence + count) % 2**31
        return build_batch_with_offsets(
            records,
            base_offset=0,
            compression=self.random.choice(self._codecs),
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )

    def _strange_batch(self) -> bytearray:
        """
        What Kafka takes without a change, and would itself have written in another way.
        """
        count = self.random.choice((1, 3))
        records = [self._record(offset) for offset in range(count)]
        base_timestamp = records[0].timestamp - self.random.choice((0, 1000))
        payload = bytearray(encode_records(records, 0, base_timestamp))
        return seal_batch(
            strange_record(payload, self.random.randrange(3)),
            count,
            base_offset=0,
            last_offset_delta=count - 1,
            base_timestamp=base_timestamp,
            max_timestamp=base_timestamp,
            delete_horizon_ms=base_timestamp if self.random.random() < 0.3 else None,
        )


def strange_record(payload: bytearray, how: int) -> bytearray:
    """
    Change the first of some short records to what has the same meaning: with attributes, or with
    an offset delta or a key length that takes a byte too many.
    """
    at = 1 if payload[0] < 0x80 else 2
    if how == 0 or at == 2:
        payload[at] = 0x55
        return payload
    if payload[0] >= 0x7E:
        return payload
    # One byte more: two units of a zig-zag number.
    payload[0] += 2
    at += 1
    while payload[at] >= 0x80:
        at += 1
    at += how
    payload[at : at + 1] = bytes((payload[at] | 0x80, 0))
    return payload
