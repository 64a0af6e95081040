from __future__ import annotations

import pytest

from barnabas.protocol.records.batch import batches
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.index import txn_index
from barnabas.storage.log import reads
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.segment.fetch_data import FetchDataInfo
from tests.support.limits import stated
from tests.support.logs import begin_transaction, end_transaction, log_of

TRANSACTIONS = 100
MOST = 7
LEAST_BYTES = 500


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(reads, "MOST_ABORTED", MOST)
    monkeypatch.setattr(reads, "LEAST_BYTES", LEAST_BYTES)
    _, log = log_of(0, index_interval_bytes=0, segment_bytes=4000)
    for producer_id in range(TRANSACTIONS):
        begin_transaction(log, producer_id)
        end_transaction(log, producer_id, commit=False)
    log.update_high_watermark(log.log_end_offset)
    return log


def committed(log: Log, offset: int, max_length: int, *, nowait: bool = False) -> FetchDataInfo:
    return log.read(offset, max_length, FetchIsolation.TXN_COMMITTED, True, nowait=nowait)


def test_read_finds_fewer_bytes_where_very_many_transactions_were_aborted(log: Log) -> None:
    offset, seen = 0, []
    while offset < log.log_end_offset:
        found = committed(log, offset, 1_000_000)
        assert found.records is not None
        read = list(batches(found.records.read()))
        aborted = found.aborted_transactions
        assert aborted is not None
        assert len(aborted) <= MOST
        assert {each.producer_id for each in read} <= {each.producer_id for each in aborted}
        seen += [each.base_offset for each in read]
        offset = read[-1].last_offset + 1

    assert list(range(2 * TRANSACTIONS)) == seen


def test_limit_is_the_documented_one() -> None:
    assert stated("aborted-transactions") == reads.MOST_ABORTED


def test_read_of_few_bytes_has_all_aborted_transactions(log: Log) -> None:
    found = committed(log, 0, LEAST_BYTES)

    assert found.records is not None
    assert LEAST_BYTES == found.records.size
    assert found.aborted_transactions


def test_read_of_committed_records_does_not_search_long_on_the_event_loop(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(txn_index, "ENTRIES_AT_ONCE", MOST - 2)

    assert committed(log, 0, 100, nowait=True).records is not None
    with pytest.raises(WouldBlock):
        committed(log, 0, 1_000_000, nowait=True)
