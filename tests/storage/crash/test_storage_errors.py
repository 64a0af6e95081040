from __future__ import annotations

from pathlib import Path

from barnabas.protocol import errors as protocol_errors
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.errors import (
    CorruptCheckpoint,
    CorruptRecord,
    KafkaStorageError,
)


def test_client_visible_storage_errors_have_kafkas_codes() -> None:
    path = Path("/data/t-0/0.log")

    assert ErrorCode.CORRUPT_MESSAGE == CorruptRecord("", path=path, position=0).code
    assert isinstance(CorruptRecord("", path=path, position=0), protocol_errors.CorruptMessage)
    assert ErrorCode.KAFKA_STORAGE_ERROR == KafkaStorageError().code
    assert isinstance(CorruptCheckpoint("", path=path), KafkaStorageError)
