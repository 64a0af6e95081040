"""
What ends a dump early.
"""

from __future__ import annotations

INVALID_RECORD = "org.apache.kafka.common.InvalidRecordException"
CORRUPT_RECORD = "org.apache.kafka.common.errors.CorruptRecordException"
KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
NO_SUCH_FILE = "java.nio.file.NoSuchFileException"
OUT_OF_BOUNDS = "java.lang.IndexOutOfBoundsException"
CORRUPT_INDEX = "org.apache.kafka.storage.internals.log.CorruptIndexException"


class DumpFailure(Exception):
    """
    The tool cannot go on.

    Apache Kafka's tool dies of an exception then, and scripts look for its first line; so that line
    is what is said here, without the stack trace that follows it there.

    Args:
        kind: the Java class of Kafka's exception.
        reason: its message; None where it has none.
    """

    def __init__(self, kind: str, reason: str | None = None) -> None:
        super().__init__(kind if reason is None else f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason
