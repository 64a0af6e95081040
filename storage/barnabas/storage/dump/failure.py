"""
The exceptions with which Apache Kafka's tool ends early.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.compression.types import UnknownCompression
from barnabas.protocol.errors import (
    BufferUnderflow,
    CorruptMessage,
    IllegalArgument,
    InvalidRecord,
    KafkaError,
    NullValue,
    OutOfBounds,
)
from barnabas.storage.errors import CorruptIndex

ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"
NO_SUCH_FILE: Final = "java.nio.file.NoSuchFileException"
ACCESS_DENIED: Final = "java.nio.file.AccessDeniedException"
NUMBER_FORMAT: Final = "java.lang.NumberFormatException"
KAFKA_EXCEPTION: Final = "org.apache.kafka.common.KafkaException"
INVALID_RECORD: Final = "org.apache.kafka.common.InvalidRecordException"
CORRUPT_RECORD: Final = "org.apache.kafka.common.errors.CorruptRecordException"

_JAVA_NAMES: Final[tuple[tuple[type[KafkaError], str], ...]] = (
    (OutOfBounds, "java.lang.IndexOutOfBoundsException"),
    (BufferUnderflow, "java.nio.BufferUnderflowException"),
    (NullValue, "java.lang.NullPointerException"),
    (IllegalArgument, ILLEGAL_ARGUMENT),
    (UnknownCompression, ILLEGAL_ARGUMENT),
    (InvalidRecord, INVALID_RECORD),
    (CorruptMessage, CORRUPT_RECORD),
    (CorruptIndex, "org.apache.kafka.storage.internals.log.CorruptIndexException"),
    (KafkaError, KAFKA_EXCEPTION),
)
"""The first class that fits an error of the engine has the name of Kafka's exception beside it."""
_WITHOUT_MESSAGE: Final = (OutOfBounds, BufferUnderflow, NullValue)


class DumpFailure(Exception):
    """
    The dump ends here.

    Kafka's tool prints the stack trace of an exception. Scripts look for its first line, so this
    tool prints that line.

    Args:
        kind: the Java class of Kafka's exception.
        reason: its message; None if it has none.
    """

    def __init__(self, kind: str, reason: str | None = None) -> None:
        super().__init__(kind if reason is None else f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason

    @property
    def hint(self) -> str | None:
        """
        The failure in words, if it is one of the arguments; None for damage in a file.
        """
        if self.kind == NO_SUCH_FILE:
            return f"{self.reason} does not exist"
        if self.kind == ACCESS_DENIED:
            return f"this user may not read {self.reason}"
        if self.kind == NUMBER_FORMAT:
            return "name a file of a log as it lies there, such as 00000000000000000000.log"
        if self.kind.startswith("joptsimple."):
            return f"{self.reason}; barnabas dump-log --help lists the options"
        return None

    @classmethod
    def of(cls, error: KafkaError) -> DumpFailure:
        """
        Kafka's exception where the engine raises *error*, whose text is that of Kafka.
        """
        kind = next(name for kind, name in _JAVA_NAMES if isinstance(error, kind))
        return cls(kind, None if isinstance(error, _WITHOUT_MESSAGE) else str(error))
