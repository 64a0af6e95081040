from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import batches
from barnabas.protocol.records.record import Record
from barnabas.server.cli import main
from barnabas.storage.errors import KafkaError
from barnabas.storage.log.log import Log
from barnabas.storage.log.offsets_by_time import MAX_TIMESTAMP
from tests.support.cleaning import clean, pairs
from tests.support.legacy_logs import LegacyWriter
from tests.support.legacy_messages import Legacy, legacy_message, legacy_wrapper
from tests.support.logs import DIRECTORY, NAME, LogHome, append, bases, offsets, read_records
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.some import some
from tests.support.verifying import verified

MAGIC = pytest.mark.parametrize("magic", [0, 1])


def old_home(*segments: tuple[int, bytes], **config: Any) -> LogHome:
    home = LogHome(**{"index_interval_bytes": 300, **config})
    home.files.make_directory(DIRECTORY)
    for base_offset, content in segments:
        home.files.open(DIRECTORY / NAME.format(base_offset, ".log")).append(content)
    return home


def random_home(magic: int, seed: int = 1, **config: Any) -> LogHome:
    writer = LegacyWriter(Random(seed), magic=magic)
    segments = [(writer.next_offset, writer.segment(60)) for _ in range(3)]
    return old_home(*segments, **config)


def every_record(home: LogHome) -> list[Record]:
    names = sorted(name for name in home.names() if name.endswith(".log"))
    return [
        record
        for name in names
        for batch in batches(bytes(home.files.nodes[DIRECTORY / name].data))
        for record in batch.records()
    ]


def first_since(records: list[Record], time: int) -> tuple[int, int] | None:
    """
    Timestamp and offset of the first record that is as late as *time*.
    """
    return next(((r.timestamp, r.offset) for r in records if r.timestamp >= time), None)


@MAGIC
@pytest.mark.parametrize("clean_stop", [True, False])
def test_old_format_log_is_readable_and_takes_new_records(magic: int, clean_stop: bool) -> None:
    home = random_home(magic)
    expected = every_record(home)
    home.was_clean = clean_stop

    log = home.open()

    assert expected == read_records(log)
    assert expected[-1].offset + 1 == log.log_end_offset
    append(log, 3)
    home.stop(log)
    assert set() == found_in(home)
    assert [record.offset for record in expected] == offsets(home.open())[:-3]


@MAGIC
def test_old_format_offsets_are_found_through_the_index(magic: int) -> None:
    home = random_home(magic)
    log = home.open()

    for record in some(every_record(home)):
        segment = log.segments.floor_segment(record.offset)
        assert segment is not None
        assert segment.offset_index.entries > 3
        found = segment.translate_offset(record.offset)
        assert found is not None
        (batch, *_) = segment.log.batches(found.position)
        assert found.offset == batch.base_offset <= record.offset <= batch.last_offset
        assert found.size == batch.size


def test_old_format_timestamps_are_found() -> None:
    home = random_home(1)
    log = home.open()
    records = every_record(home)
    plain = [record for record in records if record.timestamp >= 0]

    for time in range(FIRST_TIMESTAMP, max(record.timestamp for record in plain), 37):
        found = log.fetch_offset_by_timestamp(time)
        assert found is not None
        assert found.timestamp >= time
        assert found.leader_epoch is None
        assert found[:2] in [(record.timestamp, record.offset) for record in records]
        earlier = first_since(records, time)
        assert earlier is not None
        assert found.offset >= earlier[1]
    latest = log.fetch_offset_by_timestamp(MAX_TIMESTAMP)
    assert latest is not None
    assert max(record.timestamp for record in records) == latest.timestamp


def test_old_messages_without_timestamps_are_as_old_as_their_segment() -> None:
    home = random_home(0)
    log = home.open()

    assert log.fetch_offset_by_timestamp(home.clock.now_ms() + 1) is None
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) is None
    assert [-1] * 3 == [segment.max_timestamp_so_far() for segment in log.segments.values()]


@MAGIC
def test_torn_old_message_is_truncated_after_a_crash(magic: int) -> None:
    whole = legacy_message(magic, 0, b"a", b"1")
    torn = bytearray(legacy_message(magic, 1, b"b", b"2"))
    torn[-1] ^= 1
    home = old_home((0, whole + bytes(torn)))
    home.was_clean = False

    log = home.open()

    assert [0] == offsets(log)
    assert len(whole) == log.active_segment.size


@MAGIC
def test_old_format_log_is_truncated_at_a_whole_wrapper(magic: int) -> None:
    inner = [Legacy(at + 1 - magic, b"k", b"x") for at in range(3)]
    wrapper = legacy_wrapper(magic, CompressionType.LZ4, inner, offset=3)
    home = old_home((0, legacy_message(magic, 0, b"a", b"1") + wrapper))
    log = home.open()

    log.truncate_to(2)

    assert 2 == log.log_end_offset
    assert [0] == offsets(log)


@MAGIC
def test_old_format_segment_with_offsets_too_far_apart_is_split(magic: int) -> None:
    """
    Cleaners of that time did not check the distance of offsets from the base.
    """
    far = 2**31 + 5
    inner = [Legacy(far + 2 if magic == 0 else 0, b"k", b"x")]
    content = (
        legacy_message(magic, 0, b"a", b"1")
        + legacy_message(magic, far, b"b", b"2")
        + legacy_wrapper(magic, CompressionType.GZIP, inner, offset=far + 2)
    )
    home = old_home((0, content), cleanup_policy=("compact",))
    home.was_clean = False

    log = home.open()

    assert [0, far] == bases(log)
    assert [0, far, far + 2] == offsets(log)


# Cleaning.


def compacted(*segments: tuple[int, bytes]) -> tuple[LogHome, Log]:
    home = old_home(*segments, cleanup_policy=("compact",))
    log = home.open()
    log.roll()
    return home, log


@MAGIC
def test_cleaning_converts_retained_old_messages_to_batches(magic: int) -> None:
    base = 2 * (1 - magic)
    inner = [Legacy(base + at, b"%d" % at, b"old", 7) for at in range(3)]
    content = (
        legacy_message(magic, 0, b"a", b"1", timestamp=5)
        + legacy_message(magic, 1, None, b"no key", timestamp=6)
        + legacy_wrapper(magic, CompressionType.LZ4, inner, offset=4, timestamp=7)
        + legacy_message(magic, 5, b"1", b"new", timestamp=8)
        + legacy_message(magic, 6, b"a", None, timestamp=9)
    )
    home, log = compacted((0, content))

    clean(log, home.clock)

    assert [(2, b"0", b"old"), (4, b"2", b"old"), (5, b"1", b"new"), (6, b"a", None)] == pairs(log)
    kept = list(batches(bytes(home.file(0, ".log"))))
    assert [2] * 3 == [batch.magic for batch in kept]
    assert [CompressionType.LZ4, 0, 0] == [batch.compression for batch in kept]
    horizon = home.clock.now_ms() + home.config.delete_retention_ms
    assert [None, None, horizon] == [batch.delete_horizon_ms for batch in kept]
    assert [(2, 4), (5, 5), (6, 6)] == [(batch.base_offset, batch.last_offset) for batch in kept]


@MAGIC
@pytest.mark.parametrize("stays", [True, False])
def test_old_format_tombstones_expire_by_the_age_of_their_segment(magic: int, stays: bool) -> None:
    """
    By its modification time: delete.retention.ms before that of the last clean segment.
    """
    home, log = compacted(
        (0, legacy_message(magic, 0, b"a", None) + legacy_message(magic, 1, b"b", b"1")),
        (2, legacy_message(magic, 2, b"c", b"2")),
        (3, legacy_message(magic, 3, b"b", b"3")),
    )
    first, second, *_ = log.segments.values()
    first.set_last_modified(1_000_000)
    second.set_last_modified(1_000_000 + home.config.delete_retention_ms - stays)

    clean(log, home.clock, first_dirty_offset=3)

    expected = [(2, b"c", b"2"), (3, b"b", b"3")]
    assert ([(0, b"a", None), *expected] if stays else expected) == pairs(log)


def test_old_format_cannot_mark_the_end_of_a_cleaning() -> None:
    """
    That takes an empty batch, which old formats do not have. The log stays unchanged, as in Kafka.
    """
    home, log = compacted((0, legacy_message(1, 0, b"a", b"1") + legacy_message(1, 1, None, b"x")))

    with pytest.raises(KafkaError, match="Empty batches"):
        clean(log, home.clock)

    assert [(0, b"a", b"1"), (1, None, b"x")] == pairs(log)


# Tools.


def found_in(home: LogHome) -> set[str]:
    """
    The rules that the log breaks; what is around it is not there.
    """
    violations, _ = verified([DIRECTORY.parent], files=home.files, clock=home.clock)
    return {violation.rule for violation in violations} - {"meta-properties", "partition-metadata"}


@MAGIC
def test_verify_finds_damage_in_old_format_logs(magic: int) -> None:
    inner = [Legacy(at, b"k", b"x") for at in (0, 2, 1)]
    whole = legacy_message(magic, 0, b"a", b"1")
    broken = {
        "batch-crc": whole[:-1] + b"?",
        "batch-compression": legacy_message(magic, 0, None, b"no stream", attributes=1),
        "batch-codec": legacy_message(magic, 0, None, b"zstd", attributes=4),
        "record-format": legacy_message(magic, 0, None, None, attributes=1),
        "record-offsets": legacy_wrapper(magic, CompressionType.GZIP, inner, offset=1),
    }

    for rule, data in some(broken.items()):
        assert rule in found_in(old_home((0, data))), rule


@MAGIC
def test_explain_names_the_old_message_format(
    magic: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    message = legacy_message(magic, 0, b"a", None, timestamp=5)
    (directory / NAME.format(0, ".log")).write_bytes(message)

    assert 0 == main(["explain", "t-0", "--data-dir", str(tmp_path), "--offset", "0"])

    told = " ".join(capsys.readouterr().out.split())
    assert f"in message format {magic}, which has no leader epoch" in told
    assert "It is a tombstone of an old format." in told
