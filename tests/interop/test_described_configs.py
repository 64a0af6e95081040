"""
The options of a broker, as DescribeConfigs tells of them, beside those of an Apache Kafka.

Their sentences are our own. Names that only Kafka tells of are of things that are not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess, free_port
from tests.support.config_requests import BROKER, GROUP, METRICS, VERSIONS, describe
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.prove

DESCRIBE_CONFIGS: Final = 32
DEFAULT: Final = 5
"""
The source of a value that nobody has given.
"""

GIVEN: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # Some that have synonyms, a range, or a unit of their own.
    "log.retention.minutes": "77",
    "log.roll.hours": "5",
    "log.cleanup.policy": "compact,delete",
    "log.message.timestamp.type": "LogAppendTime",
    "compression.type": "zstd",
    "log.flush.interval.messages": "1000",
    "unclean.leader.election.enable": "true",
    "broker.rack": "here",
}
"""
What both brokers are started with.
"""

OF_ONE_BROKER: Final = frozenset(
    {"listeners", "advertised.listeners", "controller.quorum.voters", "log.dirs"}
)
"""
Options whose values are ports and directories.
"""

DIFFERENCES: Final[Mapping[str, frozenset[str]]] = {
    # Defaults with which one node needs no settings.
    "log.dir": frozenset({"default"}),
    "listeners": frozenset({"default", "read_only"}),
    "node.id": frozenset({"default"}),
    "group.initial.rebalance.delay.ms": frozenset({"default"}),
    "metadata.max.idle.interval.ms": frozenset({"default"}),
    "offsets.topic.replication.factor": frozenset({"default"}),
    "share.coordinator.state.topic.min.isr": frozenset({"default"}),
    "share.coordinator.state.topic.replication.factor": frozenset({"default"}),
    "transaction.state.log.min.isr": frozenset({"default"}),
    "transaction.state.log.replication.factor": frozenset({"default"}),
    "process.roles": frozenset({"default"}),
    "controller.listener.names": frozenset({"default"}),
    # A running broker does not listen anywhere else.
    "listener.security.protocol.map": frozenset({"read_only"}),
}
"""
What is not the same, on purpose.
"""

Described = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothBrokers]:
    with BothBrokers.side_by_side(tmp_path_factory.mktemp("brokers"), GIVEN) as both:
        # Apache Kafka has these too; they name ports.
        both.barnabas.settings["advertised.listeners"] = f"PLAINTEXT://{both.barnabas.bootstrap}"
        both.barnabas.settings["controller.quorum.voters"] = f"1@127.0.0.1:{free_port()}"
        yield both.start()


def described(broker: BrokerProcess, resource_type: int, name: str) -> Described:
    """
    The options of a resource by name, and what is said of each.
    """

    async def ask() -> Any:
        async with await WireClient.open(broker.port) as client:
            request = describe(resource_type, name)
            return await client.ask(request, VERSIONS[DESCRIBE_CONFIGS])

    [result] = asyncio.run(ask()).results
    assert 0 == result.error_code, result
    found = {}
    for config in result.configs:
        synonyms = [(each.name, each.value, each.source) for each in config.synonyms]
        is_default = config.config_source == DEFAULT
        value = config.value if config.name not in OF_ONE_BROKER else "its own"
        found[config.name] = {
            "type": config.config_type,
            "read_only": config.read_only,
            "is_sensitive": config.is_sensitive,
            "source": config.config_source,
            "value": "the default" if is_default else value,
            "default": (value if is_default else None, [s for s in synonyms if s[2] == DEFAULT]),
            "synonyms": [s[0::2] for s in synonyms if s[2] != DEFAULT],
        }
    return found


@pytest.mark.parametrize(
    ("resource_type", "name"), [(BROKER, "1"), (BROKER, ""), (GROUP, "g"), (METRICS, "m")]
)
def test_options_are_described_as_by_kafka(
    both: BothBrokers, resource_type: int, name: str
) -> None:
    """
    Types, values, where these come from, defaults, and what must not be shown or changed.
    """
    kafkas, ours = (described(broker, resource_type, name) for broker in both)

    only_ours = ours.keys() - kafkas.keys()
    assert not [option for option in only_ours if not option.startswith("barnabas.")]
    if name == "1":
        assert len(ours) > 100
        expected = dict(DIFFERENCES)
    else:
        assert kafkas.keys() == ours.keys()
        expected = {}
    found = {
        option: frozenset(fact for fact in told if told[fact] != kafkas[option][fact])
        for option, told in ours.items()
        if option in kafkas
    }
    assert expected == {option: facts for option, facts in found.items() if facts}, {
        option: (kafkas[option], ours[option]) for option in found if found[option]
    }
