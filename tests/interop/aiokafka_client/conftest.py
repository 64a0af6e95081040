"""
A broker for aiokafka's clients, and the clients themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.interop.aiokafka_client.clients import Clients
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="session")
def broker(quick_broker: BrokerProcess) -> BrokerProcess:
    return quick_broker


@pytest.fixture
async def clients(broker: BrokerProcess) -> AsyncIterator[Clients]:
    async with Clients(broker.bootstrap) as made:
        yield made
