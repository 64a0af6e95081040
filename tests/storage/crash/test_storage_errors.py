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
)


def test_errors_that_clients_see_have_kafkas_codes() -> None:
    """
    And are caught by who knows the protocol only.
    """
    path = Path("/data/t-0/0.log")

    assert ErrorCode.CORRUPT_MESSAGE == CorruptRecord("", path=path, position=0).code
    assert isinstance(CorruptRecord("", path=path, position=0), protocol_errors.CorruptMessage)
    assert ErrorCode.KAFKA_STORAGE_ERROR == KafkaStorageError().code
    assert isinstance(CorruptCheckpoint("", path=path), KafkaStorageError)


def test_a_locked_directory_is_named_in_kafkas_words() -> None:
    """
    They are what people search for.
    """
    error = LogDirectoryLocked(Path("/data"))

    assert Path("/data") == error.path
    assert "Failed to acquire lock on file .lock in /data" in str(error)
