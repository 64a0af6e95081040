from __future__ import annotations

import pytest

from barnabas.storage.log.log import Log
from tests.support.logs import DIRECTORY, LogHome, append, bases, log_of, offsets
from tests.support.segments import FIRST_TIMESTAMP

SECOND = 4
"""Where the second segment begins."""
DELETED = DIRECTORY.with_name("t-0.0123456789abcdef0123456789abcdef-delete")


def two_segments() -> tuple[LogHome, Log]:
    home, log = log_of(SECOND, index_interval_bytes=200, segment_index_bytes=240)
    log.roll()
    append(log, 2)
    log.flush()
    home.checkpoint(log)
    return home, log


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_index_not_trimmed_when_its_segment_was_closed_is_rebuilt(suffix: str) -> None:
    """
    The batches were flushed, and the recovery point lies behind them. The zeros at the end of the
    index would be read as entries of time 0.
    """
    home, log = two_segments()
    log.close()
    home.recovery_point = SECOND
    good = bytes(home.file(0, suffix))
    home.file(0, suffix).extend(bytes(240 - len(good)))

    log = home.open()

    first = log.segments.values()[0]
    assert FIRST_TIMESTAMP + SECOND - 1 == first.largest_record_timestamp()
    log.close()
    assert good == bytes(home.file(0, suffix))
    assert [0, 1, 2, 3, 4, 5] == offsets(home.open())


def test_closed_segment_that_was_flushed_later_is_not_recovered_again() -> None:
    home, log = two_segments()
    log.close()
    home.recovery_point = SECOND + 1
    home.file(0, ".timeindex").extend(bytes(120))

    log = home.open()

    assert 1 == log.recovery_report.recovered_segments


def test_log_marked_for_deletion_loads_despite_missing_and_damaged_files() -> None:
    home, log = two_segments()
    log.roll()
    append(log, 2)
    log.flush()
    home.checkpoint(log)
    log.close()
    home.remove(SECOND, ".index")
    home.remove(SECOND, ".snapshot")
    home.file(0, ".log")[8:12] = bytes(4)
    home.files.rename(DIRECTORY, DELETED)

    log = home.open(DELETED)

    assert [0, SECOND, SECOND + 2] == bases(log)


@pytest.mark.parametrize("was_clean", [False, True])
def test_log_marked_for_deletion_is_not_recovered(was_clean: bool) -> None:
    home, log = two_segments()
    log.close()
    home.was_clean, home.recovery_point = was_clean, 0
    del home.file(SECOND, ".log")[-1:]
    home.files.rename(DIRECTORY, DELETED)
    before = contents(home)

    log = home.open(DELETED)

    assert 0 == log.recovery_report.recovered_segments
    assert 0 == log.recovery_point == log.log_end_offset
    assert [0, SECOND] == bases(log)
    assert before == contents(home)


def contents(home: LogHome) -> dict[str, bytes]:
    """
    The batches and indexes of the log that is going to be deleted.
    """
    return {
        name: home.files.read_bytes(DELETED / name)
        for name in home.files.names(DELETED)
        if name.endswith((".log", "index"))
    }
