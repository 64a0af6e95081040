"""
The replay of a coordinator's log.
"""

from __future__ import annotations

from barnabas.coordination.coordinator_runtime.loading import Loader
from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.transactions.records import encode_key, encode_value
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.coordination.transactions.transactional_ids import TransactionalIds
from barnabas.protocol.records.batch import RecordBatch, batches, build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord


class Recorded:
    def __init__(self) -> None:
        self.applied: list[str] = []

    def replay(self, batch: RecordBatch) -> None:
        self.applied.append("marker")

    def replay_record(self, key: bytes | None, value: bytes | None, record_offset: int) -> None:
        assert key is not None
        assert value is not None
        self.applied.append(f"{key.decode()}{value.decode()}@{record_offset}")


def records(*pairs: tuple[bytes, bytes | None], base_offset: int = 0) -> RecordBatch:
    made = [SimpleRecord(0, key, value) for key, value in pairs]
    (batch,) = batches(build_batch(made, base_offset=base_offset))
    return batch


def marker() -> RecordBatch:
    made = EndTransactionMarker(ControlRecordType.COMMIT, 0).batch(
        0, producer_id=7, producer_epoch=0
    )
    (batch,) = batches(made)
    return batch


def test_only_the_last_record_of_each_key_is_applied_in_offset_order() -> None:
    state = Recorded()
    loader = Loader(state)

    loader.add(records((b"a", b"1"), (b"b", b"1"), (b"a", b"2")))
    loader.add(records((b"c", b"1"), (b"a", b"3"), base_offset=3))
    loader.finish()

    assert ["b1@1", "c1@3", "a3@4"] == state.applied


def test_marker_is_applied_after_the_records_before_it() -> None:
    state = Recorded()
    loader = Loader(state)

    loader.add(records((b"a", b"1")))
    loader.add(marker())
    loader.add(records((b"a", b"2"), base_offset=2))
    loader.finish()

    assert ["a1@0", "marker", "a2@2"] == state.applied


def test_tombstone_removes_a_transactional_id_loaded_before() -> None:
    transaction = Transaction(
        producer_id=1,
        producer_epoch=0,
        timeout_ms=1000,
        state=TransactionState.EMPTY,
        updated_ms=0,
    )
    playback = TransactionalIds(MemoryBudget("Transactional ids", 2**20))
    loader = Loader(playback)

    loader.add(records((encode_key("t"), encode_value(transaction, 1))))
    loader.add(marker())
    assert {"t": transaction} == playback.transactions
    loader.add(records((encode_key("t"), None), base_offset=2))
    loader.finish()

    assert {} == playback.transactions
