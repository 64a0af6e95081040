"""
The errors of the storage engine.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol import errors as protocol_errors
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.errors import (
    CorruptCheckpoint,
    CorruptRecord,
    KafkaStorageError,
    LogDirectoryLocked,
    OffsetOutOfRange,
)


def test_errors_that_clients_see_have_kafkas_codes() -> None:
    """
    And are caught by who knows the protocol only.
    """
    path = Path("/data/t-0/0.log")

    assert ErrorCode.OFFSET_OUT_OF_RANGE == OffsetOutOfRange(9, 2, 5).code
    assert isinstance(OffsetOutOfRange(9, 2, 5), protocol_errors.OffsetOutOfRange)
    assert ErrorCode.CORRUPT_MESSAGE == CorruptRecord("", path=path, position=0).code
    assert isinstance(CorruptRecord("", path=path, position=0), protocol_errors.CorruptMessage)
    assert ErrorCode.KAFKA_STORAGE_ERROR == KafkaStorageError().code
    assert isinstance(CorruptCheckpoint("", path=path), KafkaStorageError)


def test_an_offset_out_of_range_says_what_the_range_is() -> None:
    """
    In its sentence, and for programs.
    """
    error = OffsetOutOfRange(9, 2, 5, "partition t-0")

    assert (9, 2, 5) == (error.offset, error.start, error.end)
    assert "offset 9 for partition t-0" in str(error)
    assert "upto 5" in str(error)


def test_a_locked_directory_is_named_in_kafkas_words() -> None:
    """
    They are what people search for.
    """
    error = LogDirectoryLocked(Path("/data"))

    assert Path("/data") == error.path
    assert "Failed to acquire lock on file .lock in /data" in str(error)
