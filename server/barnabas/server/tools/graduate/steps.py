"""
What is left to do after ``barnabas graduate``, as commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas.protocol.structs import NamedTuple
from barnabas.server.tools.graduate.nodes import Node, replicas_for

REASSIGNMENT: str = "reassignment.json"
KAFKA: str = "4.3"
"""The oldest release that knows the metadata of a new cluster."""


class Step(NamedTuple):
    """
    A sentence, and the commands of Apache Kafka that it asks for.
    """

    sentence: str
    commands: tuple[str, ...]


def properties_of(node: Node) -> str:
    """
    The name of the file with the options of *node*.
    """
    return f"node-{node.id}.properties"


def steps(nodes: Sequence[Node], cluster_id: str) -> Iterator[Step]:
    """
    The steps in their order.
    """
    first, *others = nodes
    server = f"--bootstrap-server {first.bootstrap}"
    yield Step(
        f"On {first.host}, where this directory is:",
        (f"kafka-server-start.sh {properties_of(first)}",),
    )
    for node in others:
        yield Step(
            f"On {node.host}, whose log.dirs is empty:",
            (
                f"kafka-storage.sh format -t {cluster_id} -c {properties_of(node)}"
                " --no-initial-controllers",
                f"kafka-server-start.sh {properties_of(node)}",
            ),
        )
    if not others:
        return
    move = f"kafka-reassign-partitions.sh {server} --reassignment-json-file {REASSIGNMENT}"
    yield Step(
        f"Give each partition {replicas_for(len(nodes))} replicas, and wait until --verify says"
        " that all are completed:",
        (f"{move} --execute", f"{move} --verify"),
    )
    yield Step(
        "Give the other nodes a vote, each from its own machine:",
        tuple(
            f"kafka-metadata-quorum.sh {server} --command-config {properties_of(node)}"
            " add-controller"
            for node in others
        ),
    )
    if replicas_for(len(nodes)) > 2:
        yield Step(
            "From now on a write has to reach two nodes before it is acknowledged:",
            (
                f"kafka-configs.sh {server} --alter --entity-type brokers --entity-default"
                " --add-config min.insync.replicas=2",
            ),
        )
