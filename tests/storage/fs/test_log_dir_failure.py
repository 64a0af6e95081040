from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel

A, B = Path("/a"), Path("/b")


def test_failure_of_a_directory_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    channel = LogDirFailureChannel()

    with caplog.at_level(logging.ERROR):
        channel.maybe_add_offline_log_dir(A, "cannot write", OSError("first"))
        channel.maybe_add_offline_log_dir(A, "cannot read", OSError("second"))
        channel.maybe_add_offline_log_dir(B, "cannot sync", OSError("third"))

    assert channel.reported.is_set()
    assert [A, B] == channel.take_news()
    assert [] == channel.take_news()
    assert not channel.reported.is_set()
    assert ["cannot write: first", "cannot sync: third"] == [
        record.message for record in caplog.records
    ]


@pytest.mark.parametrize(
    ("level", "error", "cause", "with_trace"),
    [
        (logging.INFO, KafkaStorageError("Cannot sync /a/x: broken"), OSError("broken"), False),
        (logging.DEBUG, KafkaStorageError("Cannot sync /a/x: broken"), OSError("broken"), True),
        (logging.INFO, KafkaStorageError("It is not what it should be"), None, True),
        (logging.INFO, ValueError("unforeseen"), None, True),
    ],
)
def test_disk_error_is_logged_in_one_sentence_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
    level: int,
    error: Exception,
    cause: Exception | None,
    with_trace: bool,
) -> None:
    error.__cause__ = cause

    with caplog.at_level(level, logger="barnabas.storage.fs.log_dir_failure"):
        LogDirFailureChannel().maybe_add_offline_log_dir(A, "Failed to use /a", error)

    [record] = caplog.records
    assert f"Failed to use /a: {error}" == record.message
    assert with_trace is bool(record.exc_info)


def test_handled_failure_releases_the_frames_of_its_exceptions() -> None:
    """
    The frames hold open files.
    """
    channel = LogDirFailureChannel()
    try:
        try:
            raise OSError("broken")
        except OSError as cause:
            raise KafkaStorageError("cannot write") from cause
    except KafkaStorageError as error:
        failure = error
    channel.maybe_add_offline_log_dir(A, "cannot write", failure)

    channel.take_news()

    assert failure.__cause__ is not None
    assert (None, None) == (failure.__traceback__, failure.__cause__.__traceback__)


def test_failed_directory_stays_offline_with_its_first_error_as_the_cause() -> None:
    channel = LogDirFailureChannel()
    error = OSError("broken")
    channel.check_online(A)

    channel.maybe_add_offline_log_dir(A, "cannot write", error)
    channel.take_news()

    assert channel.has_offline_log_dir(A)
    assert not channel.has_offline_log_dir(B)
    channel.check_online(B)
    with pytest.raises(KafkaStorageError, match="/a is offline") as refusal:
        channel.check_online(A)
    assert error is refusal.value.__cause__
