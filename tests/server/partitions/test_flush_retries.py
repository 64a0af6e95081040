"""
A second attempt of a producer whose first one was stored, while its fsync found no descriptor.
"""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.testing import Broker
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from tests.support.server import batch, produce_request
from tests.support.wire_client import WireClient

PATIENCE_S = 10


class Disk(FailingFiles, CrashableFiles):
    """
    A disk that fails, and can lose power.
    """


async def produce(broker: Broker, acks: int, *, timeout_ms: int = 30_000) -> int:
    """
    Send the same idempotent batch; return the error code of the answer.
    """
    records = batch("one", producer_id=7, producer_epoch=0, base_sequence=0)
    async with await WireClient.open(broker.port) as client:
        request = produce_request("orders", records, acks=acks, timeout_ms=timeout_ms)
        answer: Any = await asyncio.wait_for(client.ask(request, 9), PATIENCE_S)
    return int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("acks", [1, -1])
def test_second_attempt_is_flushed_before_it_is_acknowledged(acks: int) -> None:
    disk = Disk()
    with Broker(disk=disk) as broker:
        orders = broker.topic("orders").create(config={"flush.messages": 1}).append(["zero"])
        disk.fail(errno=errno.EMFILE, only={"sync"}, forever=True)
        assert ErrorCode.NONE != asyncio.run(produce(broker, acks))
        assert ErrorCode.NONE != asyncio.run(produce(broker, acks)), "it is not flushed either"
        disk.heal()
        assert ErrorCode.NONE == asyncio.run(produce(broker, acks))

        broker.power_loss(keep="nothing")
        broker.start()
        assert [b"zero", b"one"] == [record.value for record in orders.records()]
