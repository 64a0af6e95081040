"""
The memory that transactional ids take is bounded, over all partitions of ``__transaction_state``.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.transactions.records import encode_key, encode_value
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.coordination.transactions.transactional_ids import TransactionalIds, TransactionRecord
from barnabas.protocol.errors import CoordinatorNotAvailable, ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.server.config import BrokerConfig
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.limits import stated
from tests.support.server import running
from tests.support.traced import memory_taken_by
from tests.support.transactional_client import SECOND, Client, prepare

S = TransactionState


def of(state: TransactionState, partitions: int = 0) -> Transaction:
    return Transaction(
        producer_id=2**33,
        producer_epoch=5,
        timeout_ms=60_000,
        state=state,
        partitions=frozenset(TopicPartition(f"topic{n % 7}", n) for n in range(partitions)),
        start_ms=2**41,
        updated_ms=2**41,
    )


def record(transactional_id: str, transaction: Transaction | None) -> TransactionRecord:
    return TransactionRecord(transactional_id, transaction, 1)


class Ids:
    def __init__(self, limit_bytes: int) -> None:
        self.memory = MemoryBudget("Transactional ids", limit_bytes)
        self.state = TransactionalIds(self.memory)

    def write(self, transactional_id: str, transaction: Transaction | None) -> None:
        made = record(transactional_id, transaction)
        self.state.check_room(CoordinatorResult(records=[made]))
        self.state.apply(made, 0, -1)

    def fill(self) -> list[str]:
        for number in range(100):
            try:
                self.write(f"id{number}", of(S.EMPTY))
            except CoordinatorNotAvailable:
                break
        return [*self.state.transactions]


def test_transactional_id_limit_matches_the_documentation() -> None:
    assert stated("transactional-ids") == BrokerConfig().barnabas_max_coordinator_bytes


def test_transactional_ids_beyond_the_memory_budget_are_refused() -> None:
    ids = Ids(20_000)
    taken = ids.fill()
    assert 20 < len(taken) < 100

    ids.write("id0", of(S.ONGOING))
    with pytest.raises(CoordinatorNotAvailable, match="Transactional ids have taken the"):
        ids.write("id0", of(S.ONGOING, 5))
    ids.write("id1", None)
    ids.write("id0", of(S.ONGOING, 3))
    ids.write("id0", of(S.PREPARE_COMMIT, 3))
    ids.write("id0", of(S.COMPLETE_COMMIT))

    assert len(taken) - 1 == len(ids.state.transactions)
    ids.write("id1", of(S.EMPTY))


def test_memory_of_expired_transactional_ids_is_released() -> None:
    ids = Ids(20_000)
    for transactional_id in ids.fill():
        ids.write(transactional_id, None)

    assert 0 == ids.memory.used_bytes


@pytest.mark.parametrize("partitions", [0, 1, 10, 100])
def test_counted_memory_is_within_a_fifth_of_the_actual(partitions: int) -> None:
    ids = Ids(2**30)
    value = encode_value(of(S.ONGOING, partitions), 1)
    keys = [encode_key(f"application-{number:08d}") for number in range(500)]

    def replay() -> None:
        for key in keys:
            ids.state.replay_record(key, value, 0)

    taken = memory_taken_by(replay)

    assert taken * 0.8 < ids.memory.used_bytes < taken * 1.2, taken / len(keys)


async def test_producers_beyond_the_memory_budget_are_told_to_retry() -> None:
    options = {"transaction_state_log_num_partitions": "1", "offsets_topic_num_partitions": "1"}
    async with (
        running(MemoryFiles(), barnabas_max_coordinator_bytes="20000", **options) as broker,
        await broker.client() as wire,
    ):
        await prepare(broker, 1)

        async def init(transactional_id: str) -> ErrorCode:
            request = InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=60_000
            )
            return ErrorCode((await wire.ask(request, 5)).error_code)

        await Client(wire, SECOND).init()
        codes = [await init(f"id{number}") for number in range(50)]

        assert {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE} == {*codes}
        assert ErrorCode.NONE == await init("id0")
