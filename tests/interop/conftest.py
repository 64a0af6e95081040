"""
A running broker and the client libraries that talk to it.

``BARNABAS_INTEROP_BROKER=apache`` runs the same tests against Apache Kafka: what fails there says
nothing about Barnabas.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.aio import AioKafka
from tests.interop.clients.base import Client
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.java import Java
from tests.interop.clients.kafka_python import KafkaPython
from tests.interop.tools.toolbox import Toolbox
from tests.support.apache_kafka import ApacheKafka, PrerequisiteMissing
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import Barnabas, BrokerProcess

if TYPE_CHECKING:
    import docker

CLIENTS = ("kafka-python", "confluent-kafka", "aiokafka", "Java")

_LITTLE_WAITING = {"group.initial.rebalance.delay.ms": "500"}
"""
Members join within milliseconds here; three seconds of waiting for more would be spent in vain.
"""

IMPATIENT = {
    "group.min.session.timeout.ms": "1000",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "2000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.streams.num.standby.replicas": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
"""
Settings of a broker that gives up dead members and their transactions quickly.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Everything beside this file needs real clients.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.interop)


def new_broker(
    directory: Path,
    settings: Mapping[str, str] | None = None,
    *,
    secured: Sequence[str] = (),
    **more: str,
) -> BrokerProcess:
    """
    A broker with further settings; ``with`` starts and closes it.

    Args:
        more: settings with dots as double underscores.
    """
    given = {name.replace("__", "."): value for name, value in more.items()}
    kind = ApacheKafka if os.environ.get("BARNABAS_INTEROP_BROKER") == "apache" else Barnabas
    return kind(directory, settings=_LITTLE_WAITING | dict(settings or {}) | given, secured=secured)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """
    One broker for all tests; a test may restart it.
    """
    with new_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def quick_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """
    A broker whose groups begin at once and whose limits of time are short enough to wait for.
    """
    with new_broker(
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
def impatient_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """
    A broker for one test alone, which gives up dead members and their transactions quickly.
    """
    with new_broker(tmp_path / "broker", IMPATIENT) as broker:
        yield broker


@pytest.fixture(scope="module")
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BothBrokers]:
    """
    Apache Kafka and Barnabas side by side, with the `SETTINGS` of the module, if it has any.
    """
    settings = getattr(request.module, "SETTINGS", {})
    with BothBrokers.side_by_side(tmp_path_factory.mktemp("brokers"), settings) as brokers:
        yield brokers.start()


@pytest.fixture(autouse=True)
def _log_of_the_broker(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    Show what the broker said during a test, which pytest prints if the test fails.
    """
    if "broker" not in request.fixturenames:
        yield
        return
    broker: BrokerProcess = request.getfixturevalue("broker")
    already = len(broker.log_text())
    yield
    print(broker.log_text()[already:][-8000:])


@pytest.fixture(scope="session")
def client_named() -> Callable[[str], Client]:
    """
    The adapter of a client library by its name; skips the test if it cannot be had here.
    """
    kinds = {"kafka-python": KafkaPython, "confluent-kafka": Confluent, "aiokafka": AioKafka}
    return cache(lambda name: kinds[name]() if name in kinds else Java())


@pytest.fixture(scope="session")
def toolbox() -> Iterator[Toolbox]:
    """
    Apache Kafka's command-line tools, or a skipped test where there is no Java to run them.
    """
    running = Toolbox()
    yield running
    running.close()


@pytest.fixture(scope="session")
def engine() -> docker.DockerClient:
    """
    A Docker engine, or a skipped test.
    """
    from tests.support.docker_image import docker_engine  # noqa: PLC0415  # few tests need it

    return docker_engine()


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient) -> str:
    from tests.support.docker_image import build_image  # noqa: PLC0415  # few tests need it

    return build_image(engine)


@pytest.fixture(scope="session")
def plain_image(engine: docker.DockerClient) -> str:
    from tests.support.docker_image import build_image  # noqa: PLC0415  # few tests need it

    return build_image(engine, is_compiled=False)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, client_named: Callable[[str], Client]) -> Client:
    return client_named(request.param)


_numbers = itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    readable = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return f"{readable[:80]}-{next(_numbers)}"


def needs_program(name: str) -> None:
    if shutil.which(name) is None:
        raise PrerequisiteMissing(f"no {name} on the path")
