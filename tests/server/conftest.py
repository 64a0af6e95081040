"""
The broker of a server test, and its event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import uvloop

from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]

UVLOOP: LoopFactories = {"uvloop": uvloop.new_event_loop}
BOTH: LoopFactories = {**UVLOOP, "asyncio": asyncio.new_event_loop}

# What talks to transports directly has to work on both loops: uvloop is not there on every system.
ON_BOTH = {"test_connection.py"}


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> LoopFactories:
    return BOTH if item.path.name in ON_BOTH else UVLOOP


@pytest.fixture
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[TestBroker]:
    """
    A broker in memory, whose clock stands still unless ``pytest.mark.broker`` says otherwise.
    """
    mark = request.node.get_closest_marker("broker")
    given = dict(mark.kwargs) if mark else {}
    topics, clock = given.pop("topics", {}), given.pop("clock", None)
    async with running(None, clock, **given) as broker:
        for name, partitions in topics.items():
            await broker.create(name, partitions)
        yield broker


@pytest.fixture
async def client(broker: TestBroker) -> AsyncIterator[WireClient]:
    async with await broker.client() as client:
        yield client
