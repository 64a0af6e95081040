"""
Transactions whose records are about as large as ``max.message.bytes`` allows: each can end.
"""

from __future__ import annotations

import asyncio

import pytest

from barnabas.coordination.transactions.records import encode_key, encode_value
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.transactions.shard import END_BYTES
from barnabas.storage.topic_partition import TopicPartition
from tests.support.config_requests import SET, change
from tests.support.config_requests import TOPIC as TOPIC_CONFIG
from tests.support.server import running
from tests.support.transactional_client import FIRST, ID, SECOND, TOPIC, Client, prepare

PARTITIONS = 40


def record_size() -> int:
    """
    The size of the batch with an ongoing transaction of all partitions.
    """
    ongoing = Transaction(
        producer_id=1000,
        previous_producer_id=1000,
        producer_epoch=1,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset(TopicPartition(TOPIC, index) for index in range(PARTITIONS)),
        start_ms=1_700_000_000_000,
        updated_ms=1_700_000_000_000,
    )
    record = SimpleRecord(1, encode_key(ID), encode_value(ongoing, 1))
    return len(build_batch([record]))


@pytest.mark.parametrize("protocol", [FIRST, SECOND])
async def test_every_transaction_that_may_begin_can_be_aborted(protocol: int) -> None:
    begun, refused = 0, 0
    async with running() as broker:
        await prepare(broker, PARTITIONS)
        async with await broker.client() as wire:
            for more in range(0, 2 * END_BYTES + 40, 2):
                most = record_size() + more
                answer = await wire.ask(
                    change(
                        TOPIC_CONFIG, "__transaction_state", ("max.message.bytes", SET, str(most))
                    ),
                    1,
                )
                assert 0 == answer.responses[0].error_code
                client = Client(wire, protocol)
                assert ErrorCode.NONE is await client.init()
                codes = set(await client.add(*range(PARTITIONS)))
                if codes == {ErrorCode.NONE}:
                    begun += 1
                else:
                    assert codes == {ErrorCode.UNKNOWN_SERVER_ERROR}
                    refused += 1
                # A successor aborts the transaction.
                await until_initialized(Client(wire, protocol))

    assert begun > 3
    assert refused > 3


async def until_initialized(successor: Client) -> None:
    for _ in range(100):
        code = await successor.init()
        if code is ErrorCode.NONE:
            return
        assert code is ErrorCode.CONCURRENT_TRANSACTIONS
        await asyncio.sleep(0.01)
    raise AssertionError("the transaction does not end")
