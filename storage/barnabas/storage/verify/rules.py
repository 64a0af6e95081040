"""
What has to hold in a log directory, each with a name that does not change.

A violation is an *error* if records are lost or wrong answers are given, now or at the next start;
it is a *warning* if the next start mends it, or if it only makes something slower or is in the way.
After a crash, whatever is wrong with segments that the next start recovers is a warning.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from barnabas.protocol.structs import NamedTuple


class Severity(StrEnum):
    """
    How bad a violation is.
    """

    ERROR = "error"
    WARNING = "warning"


class Rule(NamedTuple):
    """
    Something that has to hold.
    """

    name: str
    severity: Severity
    sentence: str


RULES: Final[dict[str, Rule]] = {}
"""All rules by name, in the order of the reference page."""


def _rule(name: str, severity: Severity, sentence: str) -> Rule:
    assert name not in RULES, f"two rules are named {name}"
    rule = RULES[name] = Rule(name, severity, sentence)
    return rule


def _error(name: str, sentence: str) -> Rule:
    return _rule(name, Severity.ERROR, sentence)


def _warning(name: str, sentence: str) -> Rule:
    return _rule(name, Severity.WARNING, sentence)


# Batches.

BATCH_SIZE = _error("batch-size", "The length of a batch is not below that of its header.")
BATCH_MAGIC = _error(
    "batch-magic", "A batch is of format 2, or of the formats 0 and 1 that old brokers wrote."
)
BATCH_INCOMPLETE = _error(
    "batch-incomplete",
    "Nothing but whole batches is in a segment. What lies behind the last one is the end of a write"
    " that a crash has cut short; a start after a clean stop does not look for it.",
)
ZERO_TAIL = _error(
    "zero-tail",
    "No zeros lie behind the last batch, unless the topic has `preallocate` and its log was not"
    " closed. After a clean stop a broker does not start with them.",
)
BATCH_CRC = _error("batch-crc", "The checksum of a batch fits its bytes.")
BATCH_OFFSETS = _error(
    "batch-offsets",
    "Offsets grow from batch to batch, begin at or behind the base offset of the segment, and are"
    " at most 2147483647 above it.",
)
BATCH_CODEC = _error("batch-codec", "The codec of a batch is one of 0 to 4.")
BATCH_COMPRESSION = _error("batch-compression", "What is compressed can be decompressed.")
BATCH_TIMESTAMP = _error(
    "batch-timestamp",
    "The largest timestamp in the header of a batch of CreateTime is that of its records.",
)
BATCH_PRODUCER = _error(
    "batch-producer",
    "Records of a producer have a sequence, and markers have none.",
)
RECORD_FORMAT = _error(
    "record-format",
    "A batch has as many records as its header says, each as long as it says, and nothing else.",
)
RECORD_OFFSETS = _warning(
    "record-offsets",
    "Offsets of records grow within their batch and stay in its range, without gaps unless it was"
    " compacted. Kafka takes whatever a producer writes there.",
)
CONTROL_RECORD = _error(
    "control-record",
    "A control batch has records of a known form, and one marker if it ends a transaction.",
)

# Segments.

SEGMENT_SIZE = _error("segment-size", "A segment is not larger than 2147483647 bytes.")
SEGMENT_OVERLAP = _error(
    "segment-overlap", "A segment ends before the offset with which the next one begins."
)
SEGMENT_MISSING = _error(
    "segment-missing",
    "A segment ends where the next one begins, unless the log was compacted.",
)
OFFSET_GAP = _error(
    "offset-gap", "A batch begins where the one before it ended, unless the log was compacted."
)

# Indexes.

INDEX_MISSING = _warning(
    "index-missing",
    "A segment has an offset index and a time index. Kafka makes the first anew, the second empty.",
)
INDEX_SIZE = _error("index-size", "The size of an index is a multiple of that of its entries.")
INDEX_TRIMMED = _error(
    "index-trimmed",
    "Only the indexes of an active segment that was not closed have zeros behind their entries.",
)
OFFSET_INDEX_ORDER = _error(
    "offset-index-order", "Offsets and positions grow from entry to entry of an offset index."
)
OFFSET_INDEX_ENTRY = _error(
    "offset-index-entry",
    "An entry of an offset index has the position of a batch, and that batch's last offset.",
)
TIME_INDEX_ORDER = _error(
    "time-index-order",
    "Timestamps grow from entry to entry of a time index, and offsets do not fall.",
)
TIME_INDEX_ENTRY = _error(
    "time-index-entry",
    "An entry of a time index has the offset of a batch and its largest timestamp, and no batch up"
    " to there has a larger one.",
)
TIME_INDEX_LAST = _warning(
    "time-index-last",
    "The last entry of a time index has the largest timestamp of the segment, once it was rolled"
    " or closed. Without it retention and lookups by time go wrong.",
)

# Transactions and producers.

TXN_INDEX_ENTRY = _error(
    "txn-index-entry",
    "An entry of a transaction index belongs to an ABORT marker in its segment, and tells where the"
    " transaction began and which offset was stable behind it.",
)
TXN_INDEX_ORDER = _error(
    "txn-index-order", "Last offsets grow from entry to entry of a transaction index."
)
TXN_INDEX_COMPLETE = _error(
    "txn-index-complete",
    "There is an entry for every transaction that was aborted, unless compaction removed its data.",
)
TXN_STATE = _error(
    "txn-state",
    "While the transaction of a producer is open, all its batches belong to it.",
)
PRODUCER_SEQUENCE = _warning(
    "producer-sequence",
    "The sequences of a producer follow one another, and begin with 0 in a new epoch. A log that"
    " has forgotten a producer takes any.",
)
PRODUCER_EPOCH = _warning("producer-epoch", "The epochs of a producer do not fall.")
SNAPSHOT_FORMAT = _warning(
    "snapshot-format",
    "A snapshot of producers is whole, and its checksum fits. The next start removes one that is"
    " not and begins with the one before.",
)
SNAPSHOT_PRODUCER = _error(
    "snapshot-producer",
    "What a snapshot says of a producer is what the records up to its offset say.",
)
SNAPSHOT_STRAY = _warning(
    "snapshot-stray",
    "A snapshot is at the beginning of a segment, or from the last time the log was opened or"
    " closed.",
)
SNAPSHOT_END = _warning("snapshot-end", "No snapshot is beyond the end of its log.")

# Beside the segments of a log.

EPOCHS_FORMAT = _error("epochs-format", "`leader-epoch-checkpoint` can be read.")
EPOCHS_ORDER = _error("epochs-order", "Epochs and their start offsets grow from line to line.")
EPOCHS_MISSING = _error(
    "epochs-missing", "`leader-epoch-checkpoint` names an epoch, if there are records of one."
)
EPOCHS_BATCH = _error(
    "epochs-batch",
    "The leader epoch of a batch is that to which its offset belongs in `leader-epoch-checkpoint`.",
)
EPOCHS_END = _warning("epochs-end", "No leader epoch begins beyond the end of the log.")
PARTITION_METADATA = _error(
    "partition-metadata",
    "`partition.metadata` is there and can be read. A log without it becomes a stray at the next"
    " start, and its partition empty.",
)
ORPHAN_INDEX = _warning(
    "orphan-index", "An index belongs to a segment. The next start removes one that does not."
)
LEFTOVER = _warning(
    "leftover",
    "After a crash nothing unfinished or to be deleted is left: `.deleted`, `.cleaned`, `.swap`,"
    " `.tmp`, `-delete`. The next start removes it, or finishes it. A clean stop leaves what is to"
    " be deleted.",
)
UNKNOWN_FILE = _warning("unknown-file", "A log holds no files but those of the engine.")
METADATA_SNAPSHOT = _error(
    "metadata-snapshot",
    "A snapshot of the cluster's metadata begins with a header, ends with a footer, has offsets"
    " from 0 on without a gap, and the epoch of its name.",
)
QUORUM_STATE = _error(
    "quorum-state",
    "`quorum-state` can be read. A broker does not start without knowing the epoch of its last"
    " start.",
)

# Log directories.

META_PROPERTIES = _error(
    "meta-properties", "`meta.properties` is there and names the cluster and the node."
)
META_PROPERTIES_SAME = _error(
    "meta-properties-same",
    "All log directories are of the same cluster and node, and each has an id of its own.",
)
CLEAN_SHUTDOWN = _warning(
    "clean-shutdown", "`.kafka_cleanshutdown` is empty, or JSON with a broker epoch."
)
CHECKPOINT_FORMAT = _error(
    "checkpoint-format",
    "A checkpoint can be read and names no partition twice. Kafka takes the log directory offline.",
)
CHECKPOINT_PARTITION = _warning(
    "checkpoint-partition",
    "After a clean stop, checkpoints name only partitions that are in the log directory.",
)
RECOVERY_POINT = _error(
    "recovery-point",
    "The recovery point is not beyond the end of the log: up to there all was flushed.",
)
LOG_START_OFFSET = _error(
    "log-start-offset", "A log does not start beyond its end. If it does, all of it is deleted."
)
HIGH_WATERMARK = _error(
    "high-watermark", "The high watermark is not beyond the end of the log, or records are lost."
)
CLEANER_OFFSET = _warning(
    "cleaner-offset", "The cleaner has not come further than the end of the log."
)
DIRECTORY_NAME = _error(
    "directory-name",
    "Every directory is one of a partition. A broker does not start with another one.",
)
DUPLICATE_LOG = _error("duplicate-log", "There is one log for a partition, in all directories.")

# What the metadata of the cluster says.

TOPIC_ID = _error("topic-id", "A log has the topic id that the metadata has for its topic.")
STRAY_LOG = _warning(
    "stray-log",
    "The metadata knows every log and assigns it here. Another one is a stray: it is put aside at"
    " the next start.",
)
LOG_MISSING = _error(
    "log-missing", "Every partition that the metadata assigns to a log directory has a log there."
)

# Others.

UNREADABLE = _error("unreadable", "The operating system can read every file.")
