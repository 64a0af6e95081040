"""
What can go wrong between a log directory and its rows.

::

    PipelineError
    ├── UnknownTopic             the directories hold no such topic or partition
    ├── DataLoss                 offsets that were asked for are not there any more
    ├── MissingDirectory         a worker does not have a log directory
    ├── CorruptBatch             bytes of a segment are no batch, or its records no records
    │   ├── OldFormat                a batch of message format 0 or 1
    │   └── TooManyBytes             a batch that decompresses to more than is allowed
    ├── FarTimestamp             a record has a time that Spark cannot hold
    ├── MissingTransactionIndex  aborted records cannot be told from committed ones
    └── TransactionsLost         a broker has aborted what was to be committed

    ClientError              errors of barnabas.client; these come from a pipeline too:
    ├── InvalidOption            an option of the source is unknown or cannot be used
    ├── BrokerError              a broker refuses a request
    │   └── RowError                 a row cannot be written
    └── Disconnected             a broker cannot be reached, or the connection was lost
        └── NotABroker               another program answers at the address

A directory that is missing when a read is planned is a ``FileNotFoundError``. All are pickled on
their way from a worker of Spark to the driver, so that each keeps its arguments as they were given.
"""

from __future__ import annotations

from barnabas.client.errors import (
    BrokerError,
    ClientError,
    Disconnected,
    InvalidOption,
    NotABroker,
)

__all__ = [
    "BrokerError",
    "ClientError",
    "CorruptBatch",
    "DataLoss",
    "Disconnected",
    "FarTimestamp",
    "InvalidOption",
    "MissingDirectory",
    "MissingTransactionIndex",
    "NotABroker",
    "OldFormat",
    "PipelineError",
    "RowError",
    "TooManyBytes",
    "TransactionsLost",
    "UnknownTopic",
]


class PipelineError(Exception):
    """
    Base of all errors of the pipeline.
    """


class UnknownTopic(PipelineError, LookupError):
    """
    The directories hold no such topic or partition.
    """


class DataLoss(PipelineError):
    """
    Offsets that were asked for are not there any more, or not there any longer.
    """


class MissingDirectory(PipelineError):
    """
    A machine does not have a log directory that was there when the read was planned.
    """


class CorruptBatch(PipelineError):
    """
    What is at *position* of the file *path* is no batch.

    Args:
        offset: the base offset that the batch claims, or the one that should be there.
    """

    def __init__(self, path: str, position: int, offset: int, reason: str) -> None:
        super().__init__(path, position, offset, reason)
        self.path, self.position, self.offset, self.reason = path, position, offset, reason

    def __str__(self) -> str:
        return f"{self.path}: at byte {self.position} (offset {self.offset}): {self.reason}"


class OldFormat(CorruptBatch):
    """
    A batch of message format 0 or 1, which Kafka 4 does not keep any more.
    """


class TooManyBytes(CorruptBatch):
    """
    A batch that decompresses to more than ``maxBatchBytes``.
    """


class RowError(BrokerError):
    """
    A row cannot be written: the sentence names it.
    """


class FarTimestamp(PipelineError):
    """
    A record has a timestamp that Spark and Arrow, which count in us, cannot hold.
    """

    def __init__(self, topic: str, partition: int, offset: int, timestamp_ms: int) -> None:
        super().__init__(topic, partition, offset, timestamp_ms)
        self.topic, self.partition, self.offset = topic, partition, offset
        self.timestamp_ms = timestamp_ms

    def __str__(self) -> str:
        return (
            f"Offset {self.offset} of {self.topic}-{self.partition} has the timestamp"
            f" {self.timestamp_ms} ms, which Spark cannot hold; its producer may count in ns. Where"
            " the column farTimestamp is read as well, it has these times, and timestamp is null."
        )


class MissingTransactionIndex(PipelineError):
    """
    A transaction was aborted, and the index *path* of its segment does not have it.

    Args:
        first_offset: of its records that would be rows.
        marker_offset: of its ABORT marker.
    """

    def __init__(self, path: str, first_offset: int, marker_offset: int) -> None:
        super().__init__(path, first_offset, marker_offset)
        self.path, self.first_offset, self.marker_offset = path, first_offset, marker_offset

    def __str__(self) -> str:
        return (
            f"{self.path} is missing or incomplete: the transaction with offset"
            f" {self.first_offset} was aborted at offset {self.marker_offset}, and read_committed"
            " would return its records. Copy all files of the log directory, not only *.log; or"
            " delete the .index files of the copy and start a broker on it, which rebuilds them."
        )


class TransactionsLost(PipelineError):
    """
    A broker has aborted transactions that were to be committed.
    """
