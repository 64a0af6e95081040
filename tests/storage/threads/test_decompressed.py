from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch, read_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.log.batch_rebuild import rebuild_batch
from barnabas.storage.log.log import Log
from barnabas.storage.threads.decompressed import (
    DECOMPRESSED,
    FREE_BYTES,
    MOST_BYTES,
    DecompressedBudget,
)
from barnabas.storage.threads.turns import ThreadTurns
from tests.support.cleaning import clean, put
from tests.support.clock import StillClock
from tests.support.limits import stated
from tests.support.logs import LogHome

MIB: Final = 1 << 20
LARGE: Final = 4 * MIB
PATIENCE_S: Final = 20.0


@contextmanager
def started(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """
    A thread that does *work* once the test starts it, and has ended after the block.
    """
    thread = threading.Thread(target=work)
    yield thread
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_decompressed_budget_matches_the_documentation() -> None:
    assert stated("decompressed-at-once") == MOST_BYTES == DECOMPRESSED.most_bytes


def test_share_waits_until_it_fits_and_the_oldest_does_not() -> None:
    budget = DecompressedBudget(10 * MIB)
    done = threading.Event()

    def later() -> None:
        with budget.share() as share:
            share.take(4 * MIB)
            done.set()

    with started(later) as thread:
        with budget.share() as first:
            first.take(8 * MIB)
            thread.start()
            waited = not done.wait(0.1)
            first.take(8 * MIB)
            used = budget.used_bytes
        assert done.wait(PATIENCE_S)

    assert waited
    assert used > budget.most_bytes
    assert 0 == budget.used_bytes


def test_shares_that_fit_do_not_wait() -> None:
    budget = DecompressedBudget(10 * MIB)
    done = threading.Event()

    def other() -> None:
        with budget.share() as share:
            share.take(4 * MIB)
            done.set()

    with started(other) as thread, budget.share() as first:
        first.take(4 * MIB)
        thread.start()
        assert done.wait(PATIENCE_S)


def test_share_above_the_budget_is_served_alone() -> None:
    budget = DecompressedBudget(MIB)
    with budget.share() as share:
        share.take(100 * MIB)

        assert 100 * MIB == budget.used_bytes
    assert 0 == budget.used_bytes


def test_small_batches_are_not_counted() -> None:
    budget = DecompressedBudget(MIB)
    with budget.share() as share:
        share.take(FREE_BYTES)

        assert 0 == budget.used_bytes


def compacted() -> Log:
    """
    A log with a compressed batch that becomes large.
    """
    log = LogHome(cleanup_policy=("compact",)).open()
    put(log, (b"k", bytes(LARGE)), (b"k", b"v"), compression=CompressionType.GZIP)
    log.roll()
    return log


def cleaning() -> Callable[[], object]:
    log = compacted()
    return lambda: clean(log, StillClock())


def rebuilding() -> Callable[[], object]:
    records = [SimpleRecord(1, b"k", bytes(LARGE))]
    batch = read_batch(memoryview(build_batch(records, compression=CompressionType.GZIP)))
    scan = batch.scan()
    return lambda: rebuild_batch(
        batch, scan, codec=CompressionType.ZSTD, level=None, turns=ThreadTurns()
    )


@pytest.mark.parametrize("prepare", [cleaning, rebuilding])
def test_large_batch_waits_for_others(
    prepare: Callable[[], Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DECOMPRESSED, "most_bytes", 3 * MIB)
    done = threading.Event()
    work = prepare()

    def other() -> None:
        work()
        done.set()

    with started(other) as thread:
        with DECOMPRESSED.share() as share:
            share.take(2 * MIB)
            thread.start()
            waited = not done.wait(1.0)
        assert done.wait(PATIENCE_S)

    assert waited
    assert 0 == DECOMPRESSED.used_bytes
