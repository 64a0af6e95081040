"""
What can go wrong between a log directory and its rows.

::

    PipelineError
    ├── InvalidOption            an option of the source has a value of no sense
    ├── UnknownTopic             the directories hold no such topic or partition
    ├── DataLoss                 offsets that were asked for are not there any more
    └── CorruptBatch             bytes of a segment are no batch, or its records no records
        ├── OldFormat                a batch of message format 0 or 1
        └── TooManyBytes             a batch that decompresses to more than is allowed

A missing directory is a ``FileNotFoundError``. All are pickled on their way from a worker of Spark
to the driver, so that each keeps its arguments as they were given.
"""

from __future__ import annotations


class PipelineError(Exception):
    """
    Base of all errors of the pipeline.
    """


class InvalidOption(PipelineError, ValueError):
    """
    An option of the source has a value of no sense.
    """


class UnknownTopic(PipelineError, LookupError):
    """
    The directories hold no such topic or partition.
    """


class DataLoss(PipelineError):
    """
    Offsets that were asked for are not there any more, or not there any longer.
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
