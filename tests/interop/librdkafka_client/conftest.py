"""
A broker for confluent-kafka's clients, which are librdkafka's, and the clients themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.librdkafka_client.clients import Clients
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="session")
def broker(quick_broker: BrokerProcess) -> BrokerProcess:
    return quick_broker


@pytest.fixture
def clients(broker: BrokerProcess) -> Iterator[Clients]:
    with Clients(broker.bootstrap) as made:
        yield made


@pytest.fixture(scope="session")
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})
