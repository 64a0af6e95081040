"""
The invariants of a log directory. Their names do not change.

A violation is an *error* if records are lost or answers are wrong, now or after the next start. It
is a *warning* if the next start repairs it, or if it only costs time or space. After a crash, every
violation in a segment that the next start recovers is a warning.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Final

from barnabas.protocol.structs import NamedTuple


class Severity(StrEnum):
    """
    The severity of a violation.
    """

    ERROR = "error"
    WARNING = "warning"


class Invariant(NamedTuple):
    """
    A rule that every log directory keeps, with its name and its sentence in the documentation.
    """

    name: str
    severity: Severity
    sentence: str


INVARIANTS: Final[dict[str, Invariant]] = {}
"""All invariants by name, in the order of the reference page."""


def _invariant(severity: Severity, name: str, sentence: str) -> Invariant:
    assert name not in INVARIANTS, f"two invariants are named {name}"
    invariant = INVARIANTS[name] = Invariant(name, severity, sentence)
    return invariant


_error: Final = partial(_invariant, Severity.ERROR)
_warning: Final = partial(_invariant, Severity.WARNING)

# Batches.

BATCH_SIZE = _error("batch-size", "The length of a batch is not less than that of its header.")
BATCH_MAGIC = _error(
    "batch-magic", "The format of a batch is 2, or 0 or 1, which old brokers wrote."
)
BATCH_INCOMPLETE = _error(
    "batch-incomplete",
    "A segment has whole batches only. Bytes behind the last one are the beginning of a write that"
    " a crash has cut short; a start after a clean stop does not look for them.",
)
ZERO_TAIL = _error(
    "zero-tail",
    "No zeros are behind the last batch, unless the topic has `preallocate` and its log was not"
    " closed. After a clean stop a broker does not start with them.",
)
BATCH_CRC = _error("batch-crc", "The checksum of a batch is that of its bytes.")
BATCH_OFFSETS = _error(
    "batch-offsets",
    "Offsets grow from batch to batch, are not below the base offset of the segment, and are at"
    " most 2147483647 above it.",
)
BATCH_CODEC = _error("batch-codec", "The codec of a batch is one of 0 to 4.")
BATCH_COMPRESSION = _error(
    "batch-compression", "The records of a compressed batch can be decompressed."
)
BATCH_TIMESTAMP = _error(
    "batch-timestamp",
    "The largest timestamp in the header of a batch of CreateTime is that of its records.",
)
BATCH_PRODUCER = _error(
    "batch-producer",
    "A batch of an idempotent producer has a sequence, and a marker has none.",
)
RECORD_FORMAT = _error(
    "record-format",
    "The number of records in a batch and the length of each are right, and no bytes follow.",
)
RECORD_OFFSETS = _warning(
    "record-offsets",
    "Offsets of records grow within their batch and stay in its range, without gaps unless it was"
    " compacted. Kafka accepts any offsets from a producer.",
)
CONTROL_RECORD = _error(
    "control-record",
    "A control batch has records of a known form, and one marker if it ends a transaction.",
)

# Segments.

SEGMENT_SIZE = _error("segment-size", "A segment is not larger than 2147483647 bytes.")
SEGMENT_OVERLAP = _error(
    "segment-overlap", "A segment ends before the base offset of the next one."
)
SEGMENT_MISSING = _error(
    "segment-missing",
    "A segment ends directly before the base offset of the next one, unless the log was compacted.",
)
OFFSET_GAP = _error(
    "offset-gap",
    "A batch begins at the offset behind the batch before, unless the log was compacted.",
)

# Indexes.

INDEX_MISSING = _warning(
    "index-missing",
    "A segment has an offset index and a time index. Kafka makes new ones, the second empty.",
)
INDEX_SIZE = _error("index-size", "The size of an index is a multiple of the size of an entry.")
INDEX_TRIMMED = _error(
    "index-trimmed",
    "Only an index of an active segment that was not closed has zeros behind its entries.",
)
OFFSET_INDEX_ORDER = _error(
    "offset-index-order", "Offsets and positions grow from entry to entry of an offset index."
)
OFFSET_INDEX_ENTRY = _error(
    "offset-index-entry",
    "An entry of an offset index has the position and the last offset of a batch.",
)
TIME_INDEX_ORDER = _error(
    "time-index-order",
    "Timestamps grow from entry to entry of a time index, and offsets do not fall.",
)
TIME_INDEX_ENTRY = _error(
    "time-index-entry",
    "An entry of a time index has the last offset and the largest timestamp of a batch, and no"
    " earlier batch has a larger one.",
)
TIME_INDEX_LAST = _warning(
    "time-index-last",
    "The last entry of a time index has the largest timestamp of the segment, after a roll or a"
    " close. Without it retention and lookups by time are wrong.",
)

# Transactions and producers.

TXN_INDEX_ENTRY = _error(
    "txn-index-entry",
    "An entry of a transaction index belongs to an ABORT marker in its segment. It has the first"
    " offset of the transaction and the last stable offset behind the marker.",
)
TXN_INDEX_ORDER = _error(
    "txn-index-order", "Last offsets grow from entry to entry of a transaction index."
)
TXN_INDEX_COMPLETE = _error(
    "txn-index-complete",
    "Every aborted transaction has an entry, unless compaction removed its data.",
)
TXN_STATE = _error(
    "txn-state",
    "All batches of a producer belong to its open transaction.",
)
PRODUCER_SEQUENCE = _warning(
    "producer-sequence",
    "The sequences of a producer follow one another, and begin with 0 in a new epoch. A log that"
    " has forgotten a producer accepts any.",
)
PRODUCER_EPOCH = _warning("producer-epoch", "The epochs of a producer do not fall.")
SNAPSHOT_FORMAT = _warning(
    "snapshot-format",
    "A snapshot of producers is whole, and its checksum is right. The next start removes a corrupt"
    " one and uses the snapshot before.",
)
SNAPSHOT_PRODUCER = _error(
    "snapshot-producer",
    "A snapshot has the state of each producer after the records below its offset.",
)
SNAPSHOT_STRAY = _warning(
    "snapshot-stray",
    "The offset of a snapshot is the base offset of a segment, or the end of the log when it was"
    " last opened or closed.",
)
SNAPSHOT_END = _warning("snapshot-end", "No snapshot is behind the end of its log.")

# The other files of a log.

EPOCHS_FORMAT = _error("epochs-format", "`leader-epoch-checkpoint` can be read.")
EPOCHS_ORDER = _error("epochs-order", "Epochs and their start offsets grow from line to line.")
EPOCHS_MISSING = _error(
    "epochs-missing", "`leader-epoch-checkpoint` has an entry if a record has a leader epoch."
)
EPOCHS_BATCH = _error(
    "epochs-batch",
    "The leader epoch of a batch is that of its offset in `leader-epoch-checkpoint`.",
)
EPOCHS_END = _warning("epochs-end", "No leader epoch begins behind the end of the log.")
PARTITION_METADATA = _error(
    "partition-metadata",
    "`partition.metadata` exists and can be read. Without it, the next start takes the log for a"
    " stray, and the partition is empty.",
)
ORPHAN_INDEX = _warning(
    "orphan-index", "An index belongs to a segment. The next start removes others."
)
LEFTOVER = _warning(
    "leftover",
    "No unfinished or deleted files are left: `.deleted`, `.cleaned`, `.swap`, `.tmp`, `-delete`."
    " The next start after a crash removes or finishes them. A clean stop leaves the deleted ones.",
)
UNKNOWN_FILE = _warning(
    "unknown-file", "A log directory of a partition has files of the engine only."
)
METADATA_SNAPSHOT = _error(
    "metadata-snapshot",
    "A snapshot of the cluster's metadata begins with a header, ends with a footer, has offsets"
    " from 0 on without a gap, and the epoch of its name.",
)
QUORUM_STATE = _error(
    "quorum-state",
    "`quorum-state` can be read. A broker does not start without the epoch of its last start.",
)

# Log directories.

META_PROPERTIES = _error(
    "meta-properties", "`meta.properties` exists and has the ids of the cluster and the node."
)
META_PROPERTIES_SAME = _error(
    "meta-properties-same",
    "All log directories have the same cluster and node, and each has its own directory id.",
)
CLEAN_SHUTDOWN = _warning(
    "clean-shutdown", "`.kafka_cleanshutdown` is empty, or JSON with a broker epoch."
)
CHECKPOINT_FORMAT = _error(
    "checkpoint-format",
    "A checkpoint can be read and has no partition twice. Kafka takes the log directory offline.",
)
CHECKPOINT_PARTITION = _warning(
    "checkpoint-partition",
    "After a clean stop, checkpoints have only partitions that are in the log directory.",
)
RECOVERY_POINT = _error(
    "recovery-point",
    "The recovery point is not behind the end of the log: all records below it were flushed.",
)
LOG_START_OFFSET = _error(
    "log-start-offset",
    "The log start offset is not behind the end of the log. A start deletes such a log.",
)
HIGH_WATERMARK = _error(
    "high-watermark",
    "The high watermark is not behind the end of the log; otherwise records are lost.",
)
CLEANER_OFFSET = _warning(
    "cleaner-offset", "The checkpoint of the cleaner is not behind the end of the log."
)
DIRECTORY_NAME = _error(
    "directory-name",
    "Every directory is that of a partition. A broker does not start with others.",
)
DUPLICATE_LOG = _error("duplicate-log", "A partition has one log in all directories together.")

# The metadata of the cluster.

TOPIC_ID = _error("topic-id", "The topic id of a log is that of its topic in the metadata.")
STRAY_LOG = _warning(
    "stray-log",
    "The metadata assigns every log to its node. The next start renames others to `-stray`.",
)
LOG_MISSING = _error(
    "log-missing", "Every partition that the metadata assigns to a log directory has a log there."
)

# Others.

UNREADABLE = _error("unreadable", "The operating system can read every file.")
