"""
A broker for confluent-kafka's clients, which are librdkafka's, and the clients themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import running_broker
from tests.interop.librdkafka_client.clients import Clients
from tests.support.broker_process import BrokerProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """
    A broker whose groups begin at once and whose limits of time are short enough to wait for.
    """
    with running_broker(
        tmp_path_factory.mktemp("broker"),
        num__partitions="2",
        # Some records are of 1970: retention has to leave them alone for as long as a test takes.
        log__initial__task__delay__ms=str(24 * 3600 * 1000),
        group__initial__rebalance__delay__ms="0",
        group__min__session__timeout__ms="1000",
        transaction__abort__timed__out__transaction__cleanup__interval__ms="200",
    ) as broker:
        yield broker


@pytest.fixture
def clients(broker: BrokerProcess) -> Iterator[Clients]:
    """
    Makes clients and closes them after the test.
    """
    with Clients(broker.bootstrap) as made:
        yield made


@pytest.fixture(scope="session")
def admin(broker: BrokerProcess) -> AdminClient:
    """
    The admin client.
    """
    return AdminClient({"bootstrap.servers": broker.bootstrap})
