from __future__ import annotations

import sys

import pytest

from barnabas.testing import Broker, InvalidTopic
from tests.support.broker_process import free_port
from tests.support.commands import output_of


def test_missing_library_is_reported_with_its_install_command() -> None:
    program = (
        "import sys\n"
        "sys.modules['testcontainers'] = None\n"
        "try:\n"
        "    import barnabas.testing.containers\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert "pip install 'barnabas[testcontainers]'" in output_of(sys.executable, "-c", program)


@pytest.mark.interop
def test_topics_are_created_unless_they_exist(kafka_broker: Broker) -> None:
    from barnabas.testing.containers.topics import create_topics  # noqa: PLC0415  # an extra

    create_topics("127.0.0.1", kafka_broker.port, {"orders": 3})
    create_topics("127.0.0.1", kafka_broker.port, {"orders": 5, "payments": 1})

    assert [3, 1] == [kafka_broker.topic(name).partitions for name in ("orders", "payments")]


@pytest.mark.interop
@pytest.mark.parametrize(("name", "partitions"), [("no/name", 1), ("orders", 0)])
def test_topic_that_cannot_be_created_is_named(
    kafka_broker: Broker, name: str, partitions: int
) -> None:
    from barnabas.testing.containers.topics import create_topics  # noqa: PLC0415  # an extra

    with pytest.raises(InvalidTopic, match=f"the topic {name} cannot be created: .+"):
        create_topics("127.0.0.1", kafka_broker.port, {name: partitions})


@pytest.mark.interop
def test_broker_that_closes_the_connection_is_named(kafka_broker: Broker) -> None:
    from barnabas.testing.containers.topics import create_topics  # noqa: PLC0415  # an extra

    kafka_broker.faults.close("CreateTopics")

    with pytest.raises(ConnectionError, match="has closed the connection"):
        create_topics("127.0.0.1", kafka_broker.port, {"orders": 1})
    with pytest.raises(ConnectionError):
        create_topics("127.0.0.1", free_port(), {"orders": 1})
