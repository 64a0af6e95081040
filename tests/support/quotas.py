"""
Quotas of a broker in a test, and clients that are throttled by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.testing.manual_clock import ManualClock
from tests.support.cluster_requests import new_quotas
from tests.support.server import TestBroker

T = TypeVar("T")

ANYBODY: Mapping[str, str | None] = {"client-id": None}
"""
The default of all client ids.
"""


async def set_quotas(
    broker: TestBroker, entity: Mapping[str, str | None], **values: float | None
) -> None:
    """
    Set the quotas of *entity* by key; ``None`` removes one.
    """
    async with await broker.client("admin") as client:
        answer = await client.ask(new_quotas((dict(entity), list(values.items()))), 1)
        assert [0] == [entry.error_code for entry in answer.entries], answer


def clock_of(broker: TestBroker) -> ManualClock:
    clock = broker.clock
    assert isinstance(clock, ManualClock)
    return clock


async def waits(broker: TestBroker, work: Coroutine[Any, Any, T], seconds: float) -> T:
    """
    Await *work*, and check that it completes after *seconds* of the broker's clock, not before.
    """
    task = asyncio.ensure_future(work)
    await clock_of(broker).pass_time(seconds - 0.05)
    for _ in range(3):  # whatever it has sent has arrived before these
        async with await broker.client("another") as client:
            await client.ask(ApiVersionsRequest(), 0)
    assert not task.done(), "it has to wait"
    await clock_of(broker).pass_time(0.06)
    async with asyncio.timeout(10):
        return await task
