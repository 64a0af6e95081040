"""
What can go wrong between a log directory and its rows.

::

    PipelineError
    ├── InvalidOption            an option of the source has a value of no sense
    ├── UnknownTopic             the directories hold no such topic or partition
    ├── DataLoss                 offsets that were asked for are not there any more
    ├── CorruptBatch             bytes of a segment are no batch, or its records no records
    │   ├── OldFormat                a batch of message format 0 or 1
    │   └── TooManyBytes             a batch that decompresses to more than is allowed
    ├── BrokerError              a broker refuses a request
    │   └── RowError                 a row cannot be written
    ├── TransactionsLost         a broker has aborted what was to be committed
    └── Disconnected             a broker cannot be reached, or the connection was lost
        └── NotABroker               something else answers there

A missing directory is a ``FileNotFoundError``. All are pickled on their way from a worker of Spark
to the driver, so that each keeps its arguments as they were given.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode


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


class BrokerError(PipelineError):
    """
    A broker refuses a request.

    Args:
        code: the number of the error on the wire.
    """

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(code, sentence)
        self.code, self.sentence = code, sentence

    @classmethod
    def of(cls, code: int, what: str) -> BrokerError:
        """
        The error with a sentence that begins with *what*, and ends with the name of the code.
        """
        try:
            known = ErrorCode(code)
        except ValueError:
            return cls(code, f"{what}: error {code}.")
        return cls(code, f"{what}: {known.name}. {known.sentence}")

    def __str__(self) -> str:
        return self.sentence


class RowError(BrokerError):
    """
    A row cannot be written: the sentence names it.
    """


class TransactionsLost(PipelineError):
    """
    A broker has aborted transactions that were to be committed.
    """


class Disconnected(PipelineError):
    """
    A broker cannot be reached, or the connection to it was lost.
    """


class NotABroker(Disconnected):
    """
    Something answers that is no broker; so it will when it is asked again.
    """
