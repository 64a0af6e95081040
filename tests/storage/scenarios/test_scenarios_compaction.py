"""
What stays of a compacted log, and under which names.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.records.batch import HEADER_SIZE
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from tests.support.cleaning import clean, pairs, put
from tests.support.logs import LogHome, bases, end_transaction, offsets, read_batches

DAY_MS = 86_400_000
A, B, C = b"a", b"b", b"c"


def compacted(**config: Any) -> tuple[LogHome, Log]:
    home = LogHome(cleanup_policy=("compact",), **config)
    return home, home.open()


@pytest.mark.scenario(72)
def test_only_the_last_record_of_a_key_is_retained() -> None:
    home, log = compacted()
    for key, value in ((A, b"1"), (B, b"1"), (A, b"2")):
        put(log, (key, value))
    log.roll()
    put(log, (C, b"1"))

    end, _ = clean(log, home.clock)

    assert (3, 4) == (end, log.log_end_offset)
    assert [0, 3] == bases(log)
    assert [(1, B, b"1"), (2, A, b"2"), (3, C, b"1")] == pairs(log)
    first = log.read(0, 1000, FetchIsolation.HIGH_WATERMARK, True)
    assert 1 == first.fetch_offset_metadata.message_offset


@pytest.mark.scenario(73)
def test_tombstone_is_readable_until_its_delete_horizon() -> None:
    home, log = compacted()
    put(log, (A, b"1"), (B, None), (C, b"2"))
    put(log, (A, b"3"))
    log.roll()

    clean(log, home.clock)
    assert [(1, B, None), (2, C, b"2"), (3, A, b"3")] == pairs(log)
    horizon_ms = home.clock.now_ms() + DAY_MS
    assert horizon_ms == read_batches(log)[0].delete_horizon_ms

    home.clock.advance(DAY_MS - 1)
    put(log, (b"x", b"1"))
    log.roll()
    clean(log, home.clock, first_dirty_offset=4)
    assert [1, 2, 3, 4] == offsets(log)

    home.clock.advance(1)
    put(log, (b"x", b"2"))
    log.roll()
    clean(log, home.clock, first_dirty_offset=5)
    assert [2, 3, 5] == offsets(log)


@pytest.mark.scenario(74)
def test_producer_with_only_superseded_records_continues_after_a_restart() -> None:
    home, log = compacted()
    producer = {"producer_id": 4000, "producer_epoch": 3}
    put(log, (A, b"1"), (B, b"1"), **producer, base_sequence=0)
    put(log, (A, b"2"), (B, b"2"))
    log.roll()

    clean(log, home.clock)
    header = read_batches(log)[0]
    assert (HEADER_SIZE, 0, 0, 1) == (
        header.size,
        header.record_count,
        header.base_offset,
        header.last_offset,
    )

    home.stop(log)
    for name in [name for name in home.names() if name.endswith(".snapshot")]:
        home.remove(int(name[:20]), ".snapshot")
    log = home.open(had_clean_shutdown=False, recovery_point=0)
    info = put(log, (A, b"3"), **producer, base_sequence=2)
    assert 4 == info.first_offset


@pytest.mark.scenario(78)
def test_aborted_transaction_leaves_its_marker_until_the_delete_horizon() -> None:
    home, log = compacted()
    producer = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    put(log, (A, b"old"))
    put(log, (A, b"aborted"), (B, b"aborted"), base_sequence=0, **producer)
    end_transaction(log, 7, commit=False)
    log.update_high_watermark(log.log_end_offset)
    # Later data of the producer: its marker is not the last that is known of it.
    put(log, (C, b"1"), producer_id=7, producer_epoch=0, base_sequence=2)
    log.roll()

    clean(log, home.clock)
    assert [(0, A, b"old"), (4, C, b"1")] == [pair for pair in pairs(log) if pair[0] != 3]
    marker = next(batch for batch in read_batches(log) if batch.is_control)
    assert (3, None) == (marker.base_offset, marker.delete_horizon_ms)
    assert [7] == [txn.producer_id for txn in log.collect_aborted_transactions(0, 100)]

    clean_next(home, log)
    marker = next(batch for batch in read_batches(log) if batch.is_control)
    assert home.clock.now_ms() + DAY_MS == marker.delete_horizon_ms
    assert [] == log.collect_aborted_transactions(0, 100)

    home.clock.advance(DAY_MS)
    clean_next(home, log)
    assert [0, 4] == offsets(log)[:2]
    assert not any(batch.is_control for batch in read_batches(log))


def clean_next(home: LogHome, log: Log) -> None:
    """
    Another round, with a little more that is dirty.
    """
    dirty = log.log_end_offset
    put(log, (b"more", b"%d" % dirty))
    log.roll()
    clean(log, home.clock, first_dirty_offset=dirty)
