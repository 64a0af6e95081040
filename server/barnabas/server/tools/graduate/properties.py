"""
``server.properties`` of the nodes.

Options that are set for this broker are set for each node, as far as they are Apache Kafka's: the
names are the same. Addresses, directories and the quorum are the node's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.server.config import BrokerConfig, Listener, Settings
from barnabas.server.tools.graduate.nodes import Node, replicas_for

CONTROLLER: Final = "CONTROLLER"
OWN_PREFIX: Final = "barnabas."
OTHER_NODES_DIRECTORY: Final = "/var/lib/kafka"
"""Where the other nodes keep their logs, unless ``--log-dir`` says otherwise."""

_OF_THE_NODE: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
        "security.inter.broker.protocol",
    }
)


def server_properties(
    node: Node, nodes: Sequence[Node], settings: Settings, other_directory: str
) -> dict[str, str]:
    """
    The options of *node*, of which the first in *nodes* has the directories of *settings*.

    Args:
        other_directory: the log directory of a node that is not the first.
    """
    config = settings.config()
    listeners = config.client_listeners
    replicas = replicas_for(len(nodes))
    found = {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "listeners": ",".join([*_addresses(node, listeners), f"{CONTROLLER}://{node.controller}"]),
        "advertised.listeners": ",".join(_addresses(node, listeners)),
        "controller.listener.names": CONTROLLER,
        "inter.broker.listener.name": _between_brokers(config, listeners),
        "listener.security.protocol.map": ",".join(
            [*(f"{each.name}:{each.protocol}" for each in listeners), f"{CONTROLLER}:PLAINTEXT"]
        ),
        "controller.quorum.bootstrap.servers": ",".join(each.controller for each in nodes),
    }
    if node == nodes[0]:
        # Apache Kafka is started where the file is, which may be anywhere.
        found["log.dirs"] = ",".join(str(each.absolute()) for each in config.log_directories)
        if config.metadata_log_dir:
            found["metadata.log.dir"] = str(config.metadata_directory.absolute())
        if config.given.get("broker.rack"):
            found["broker.rack"] = config.given["broker.rack"]
    else:
        found["log.dirs"] = other_directory
    return {**found, **_of_new_topics(replicas), **carried_over(settings)}


def carried_over(settings: Settings) -> dict[str, str]:
    """
    The options that are set and mean the same to each node of Apache Kafka.

    What a provider has is not among them, but the variable that names it.
    """
    given = {**settings.config().given, **settings.variables, **settings.providers}
    left_out = _OF_THE_NODE | _of_new_topics(1).keys()
    return {
        name: text
        for name, text in given.items()
        if name not in left_out and not name.startswith(OWN_PREFIX)
    }


def _of_new_topics(replicas: int) -> dict[str, str]:
    least = str(max(1, replicas - 1))
    return {
        "default.replication.factor": str(replicas),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": least,
    }


def _addresses(node: Node, listeners: Sequence[Listener]) -> Iterator[str]:
    """
    The addresses for clients. The first listener has the port of ``--node``, others keep theirs.
    """
    for number, listener in enumerate(listeners):
        port = listener.port if number else node.port
        yield f"{listener.name}://{node.url_host}:{port}"


def _between_brokers(config: BrokerConfig, listeners: Sequence[Listener]) -> str:
    names = [listener.name for listener in listeners]
    named = config.given.get("inter.broker.listener.name", "").upper()
    return named if named in names else names[0]
