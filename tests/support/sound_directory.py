"""
A log directory with something of everything, in which nothing is wrong.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from barnabas.protocol.compression import CompressionType
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.log.log import Log
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.state_files.checkpoints import OffsetCheckpointFile
from barnabas.storage.state_files.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    write_meta_properties,
)
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.verify.cluster import KnownTopic
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.cleaning import clean, put
from tests.support.clock import StillClock
from tests.support.log_manager import load, open_manager
from tests.support.logs import append, end_transaction, produce
from tests.support.segments import FIRST_TIMESTAMP

ROOT = Path("/data")
TOPIC_IDS = {
    "plain": UUID(int=1001),
    "sequences": UUID(int=1002),
    "transactions": UUID(int=1003),
    "packed": UUID(int=1004),
    "compacted": UUID(int=1005),
    "empty": UUID(int=1006),
}

NODE_ID, DIRECTORY_ID = 1, UUID(int=5001)
TOPICS = {
    topic: KnownTopic(topic_id, {}, {0: {NODE_ID: DIRECTORY_ID}})
    for topic, topic_id in TOPIC_IDS.items()
}
"""What the metadata of the cluster says."""


def _log(manager: LogManager, topic: str, **more: str) -> Log:
    texts = {
        "internal.segment.bytes": "1000",
        "index.interval.bytes": "150",
        "segment.index.bytes": "240",
        **{name.replace("_", "."): text for name, text in more.items()},
    }
    log = manager.get_or_create_log(
        TopicPartition(topic, 0), topic_id=TOPIC_IDS[topic], config=LogConfig.parse(texts)
    )
    log.assign_epoch_start_offset(0, 0)
    return log


def _fill_plain(log: Log) -> None:
    append(log, 9)
    log.assign_epoch_start_offset(2, log.log_end_offset)
    append(log, 8, leader_epoch=2)
    # Times that do not grow.
    for timestamp in (FIRST_TIMESTAMP + 90, FIRST_TIMESTAMP + 3, FIRST_TIMESTAMP + 95):
        append(log, timestamp=timestamp, leader_epoch=2)


def _fill_sequences(log: Log) -> None:
    for at in range(12):
        produce(
            log,
            b"a" * 30,
            b"b" * 30,
            producer_id=40 + at % 3,
            producer_epoch=at // 9,
            base_sequence=at // 3 * 2 if at < 9 else 0,
            timestamp=FIRST_TIMESTAMP + at,
        )


def _fill_transactions(log: Log) -> None:
    for at in range(4):
        for producer_id in (71, 72):
            produce(
                log,
                b"v" * 50,
                producer_id=producer_id,
                producer_epoch=3,
                base_sequence=at,
                is_transactional=True,
                timestamp=FIRST_TIMESTAMP + at,
            )
        end_transaction(log, 71, 3, commit=at % 2 == 0, coordinator_epoch=5)
        if at < 3:
            end_transaction(log, 72, 3, commit=at == 1, coordinator_epoch=6)
        log.update_high_watermark(log.log_end_offset)


def _fill_packed(log: Log) -> None:
    for at, compression in enumerate((CompressionType.GZIP, CompressionType.LZ4) * 5):
        produce(
            log,
            *(b"%d" % number * 20 for number in range(20)),
            compression=compression,
            timestamp=FIRST_TIMESTAMP + at,
        )


def _fill_compacted(log: Log, clock: StillClock) -> int:
    """
    Returns:
        Where the log begins to be dirty.
    """
    for at in range(14):
        pairs = [(b"k%d" % (number % 5), b"v" * 40) for number in (at, at + 1)]
        pairs.append((b"only%d" % at, b"w"))
        put(
            log,
            *pairs,
            producer_id=90 + at % 2,
            producer_epoch=0,
            base_sequence=at // 2 * 3,
            timestamp=FIRST_TIMESTAMP + 10 * at,
        )
    put(log, (b"k1", None), (b"k2", b"x"))
    return clean(log, clock)[0]


def sound_directory() -> MemoryFiles:
    """
    The directory ``ROOT`` of a broker that was stopped cleanly.
    """
    clock = StillClock(FIRST_TIMESTAMP)
    files = MemoryFiles(clock.now_ms)
    files.make_directory(ROOT)
    meta = MetaProperties(cluster_id="4L6g3nShT-eMCtK", node_id=NODE_ID, directory_id=DIRECTORY_ID)
    write_meta_properties(files, ROOT / META_PROPERTIES, meta, clock.now_ms())
    manager = load(open_manager(files, [ROOT], clock=clock, transaction_verification=False))
    _fill_plain(_log(manager, "plain"))
    _fill_sequences(_log(manager, "sequences"))
    _fill_transactions(_log(manager, "transactions"))
    _fill_packed(_log(manager, "packed"))
    clean_up_to = _fill_compacted(_log(manager, "compacted", cleanup_policy="compact"), clock)
    _log(manager, "empty")
    assert manager.shutdown(broker_epoch=7)
    cleaned = OffsetCheckpointFile(files, ROOT / CLEANER_CHECKPOINT)
    cleaned.write({TopicPartition("compacted", 0): clean_up_to})
    for path in [path for path in files.nodes if path.name.endswith(".deleted")]:
        files.remove(path)
    return files
