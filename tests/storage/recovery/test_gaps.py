"""
Gaps between segments after an unclean stop: a gap that compaction may have left cuts nothing off.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import batches
from tests.support.logs import DIRECTORY, LogHome, append, log_of, offsets


def home_with(records: int, *, per_segment: int = 6) -> LogHome:
    home, log = log_of(records, segment_bytes=per_segment * 150 + 100)
    home.stop(log)
    home.was_clean, home.recovery_point = False, 0
    return home


def bases(home: LogHome) -> list[int]:
    return sorted(int(name[:20]) for name in home.names() if name.endswith(".log"))


def drop_batches(home: LogHome, seed: int) -> list[int]:
    """
    Remove random batches from every segment but the last one as another broker's cleaner does, with
    indexes of what is left; return the offsets that stay.
    """
    chance = random.Random(seed)
    kept = []
    for base in bases(home):
        data = home.file(base, ".log")
        found = list(batches(bytes(data)))
        if base != bases(home)[-1]:
            found = [batch for batch in found if chance.random() < 0.5]
            data[:] = b"".join(bytes(batch.data) for batch in found)
            for suffix in (".index", ".timeindex"):
                home.file(base, suffix)[:] = b""
        kept += [batch.base_offset for batch in found]
    return kept


@pytest.mark.parametrize("seed", range(12))
def test_recovery_keeps_every_record_of_a_log_that_another_broker_has_compacted(seed: int) -> None:
    chance = random.Random(seed)
    home = home_with(chance.randint(8, 60), per_segment=chance.choice([1, 2, 6]))
    kept = drop_batches(home, seed)
    home.config = home.config.replaced(cleanup_policy=("delete",))
    point = chance.choice([None, 0, chance.randint(0, kept[-1])])

    log = home.open(recovery_point=point)

    assert kept == offsets(log)
    assert 0 == log.recovery_report.set_aside_segments


def test_recovery_sets_aside_what_follows_records_that_a_crash_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home = home_with(13)
    before = {name: bytes(home.file(6, name)) for name in (".log", ".index", ".timeindex")}
    del home.file(0, ".log")[450:]

    log = home.open(recovery_point=2)

    assert [0, 1, 2] == offsets(log)
    assert before[".log"] == bytes(home.file(6, ".log.set-aside"))
    assert 2 == log.recovery_report.set_aside_segments
    assert "lost the records from offset 3 to 5: an index has them" in caplog.text
    assert f"set aside as {DIRECTORY}/{6:020d}.log.set-aside" in caplog.text
    append(log, 10)
    home.clock.advance(10**9)
    log.remove_deleted_files()
    assert home.has_file(6, ".log.set-aside")
    assert [0, 1, 2, *range(3, 13)] == offsets(home.open())


@pytest.mark.parametrize("point", [None, 4, 6])
def test_a_gap_that_may_be_older_than_the_last_flush_cuts_nothing_off(point: int | None) -> None:
    home = home_with(13)
    del home.file(0, ".log")[450:]

    log = home.open(recovery_point=point)

    assert [0, 1, 2, *range(6, 13)] == offsets(log)


def test_a_second_crash_replaces_no_segment_that_was_set_aside() -> None:
    home = home_with(13)
    first = bytes(home.file(6, ".log"))
    home.file(0, ".log")[460] ^= 1
    append(home.open(), 10)
    second = bytes(home.file(6, ".log"))
    home.file(0, ".log")[460] ^= 1

    home.open()

    assert first == bytes(home.file(6, ".log.set-aside"))
    assert second == bytes(home.file(6, ".log.set-aside-1"))


def test_a_log_that_starts_behind_its_end_keeps_its_files() -> None:
    home = home_with(13)
    names = [name for name in home.names() if Path(name).suffix == ".log"]

    log = home.open(log_start_offset=20)

    assert (20, 20) == (log.log_start_offset, log.log_end_offset)
    assert {f"{name}.set-aside" for name in names} <= set(home.names())
