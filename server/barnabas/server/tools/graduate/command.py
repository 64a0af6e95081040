"""
The command line of ``barnabas graduate``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.structs import NamedTuple
from barnabas.server.cluster.errors import ForeignQuorum
from barnabas.server.cluster.image import MetadataImage
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.config import BrokerConfig
from barnabas.server.config.command_line import add_config_options, settings_from
from barnabas.server.tools.graduate.nodes import Node, parse_nodes
from barnabas.server.tools.graduate.properties import (
    CONTROLLER,
    OTHER_NODES_DIRECTORY,
    carried_over,
    server_properties,
)
from barnabas.server.tools.graduate.reassignment import reassignment
from barnabas.server.tools.graduate.steps import REASSIGNMENT, properties_of, steps
from barnabas.storage.clock import SystemClock
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.directories.directory import LOCK_FILE
from barnabas.storage.explain.units import counted
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.failure import LogDirFailureChannel
from barnabas.storage.properties import format_properties
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, parse_meta_properties

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


class CannotGraduate(Exception):
    """
    The directory is not ready. The sentence says why, and what to do.
    """


class Home(NamedTuple):
    """
    The node as it is.
    """

    cluster_id: str
    nodes: Sequence[Node]
    image: MetadataImage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options of the command.
    """
    parser.description = (
        "Prepare the directory of a stopped broker for a cluster of Apache Kafka: record in its"
        " metadata where its controller is, write a server.properties for each node and a plan that"
        " gives each partition its replicas, and print the commands to run next. The directory"
        " still opens in Barnabas, until another node has a vote."
    )
    add_config_options(parser)
    parser.add_argument(
        "--node",
        action="append",
        default=[],
        dest="nodes",
        required=True,
        metavar="HOST[:PORT[:PORT]]",
        help="a node of the cluster, with its ports for clients and for controllers (9092, 9093);"
        " the first one has this directory; repeat it for each",
    )
    parser.add_argument(
        "--log-dir",
        default=OTHER_NODES_DIRECTORY,
        metavar="DIR",
        help=f"the log directory of the other nodes, {OTHER_NODES_DIRECTORY} by default",
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="a directory for the files"
    )


def run(options: argparse.Namespace) -> int:
    """
    Run the command and return the exit status: 0 done, 1 failed, 2 used wrongly.
    """
    try:
        config = settings_from(options).config()
        home = graduate(config, options.nodes, options.output, options.log_dir)
    except ConfigError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (CannotGraduate, KafkaError, OSError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED
    print("\n".join(_report(home, config, options.output)))
    return 0


def graduate(
    config: BrokerConfig, given_nodes: Sequence[str], output: Path, other_directory: str
) -> Home:
    """
    Record the controller in the metadata, and write the files for the nodes into *output*.

    The voter is recorded last: before that nothing has changed but the epoch, as after a start.

    Raises:
        ConfigError: a node is malformed.
        CannotGraduate: the directory or *output* is not ready.
        KafkaError: the metadata cannot be read or written.
        OSError: *output* cannot be written.
    """
    files, clock = DiskFiles(), SystemClock()
    directories = list(dict.fromkeys([*config.log_directories, config.metadata_directory]))
    with ExitStack() as locks:
        for directory in directories:
            if not (directory / META_PROPERTIES).exists():
                raise CannotGraduate(
                    f"{directory} is no log directory of a broker: it has no {META_PROPERTIES}"
                )
            lock = files.lock(directory / LOCK_FILE)
            if lock is None:
                raise CannotGraduate(f"a broker runs on {directory}: stop it first")
            locks.callback(lock.release)
        path = config.metadata_directory / META_PROPERTIES
        meta = parse_meta_properties(path.read_bytes(), path)
        if meta.node_id is None or meta.cluster_id is None or meta.directory_id is None:
            raise CannotGraduate(f"{path} lacks an id: start the broker once, and stop it")
        nodes = parse_nodes(given_nodes, meta.node_id)
        if output.exists() and any(output.iterdir()):
            raise CannotGraduate(f"{output} is not empty: name a directory that is")
        log = MetadataLog.open(
            config.metadata_directory,
            node_id=meta.node_id,
            config=config,
            files=files,
            clock=clock,
            failures=LogDirFailureChannel(),
        )
        try:
            log.lead()
            _write(output, nodes, config, log.image, other_directory)
            first = nodes[0]
            log.keep_voter(meta.directory_id, CONTROLLER, first.host, first.controller_port)
        except ForeignQuorum as error:
            raise CannotGraduate(f"this is part of a cluster already: {error}") from None
        finally:
            log.close()
        return Home(meta.cluster_id, nodes, log.image)


def _write(
    output: Path,
    nodes: Sequence[Node],
    config: BrokerConfig,
    image: MetadataImage,
    other_directory: str,
) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for node in nodes:
        text = format_properties(server_properties(node, nodes, config, other_directory))
        text = text.replace("\\:", ":")  # which Java escapes, and reads without it
        (output / properties_of(node)).write_text(text, encoding="latin-1")
    (output / REASSIGNMENT).write_text(reassignment(image, nodes))


def _report(home: Home, config: BrokerConfig, output: Path) -> Iterator[str]:
    topics = home.image.topics_by_name.values()
    partitions = sum(len(topic.partitions) for topic in topics)
    first = home.nodes[0]
    yield (
        f"Node {first.id} of cluster {home.cluster_id}: {counted(len(topics), 'topic')},"
        f" {counted(partitions, 'partition')}."
    )
    yield f"Its metadata say that its controller is at {first.controller} (kraft.version 1)."
    written = [*map(properties_of, home.nodes), REASSIGNMENT]
    yield f"Written to {output}: {', '.join(written)}."
    carried = sorted(carried_over(config.given))
    if carried:
        yield f"Options that were set here are in all of them: {', '.join(carried)}."
    if not all(listener.is_plaintext for listener in config.client_listeners):
        yield (
            "Controllers speak without TLS or SASL in these files: keep their port inside, or"
            " change listener.security.protocol.map before the first start."
        )
    yield ""
    yield "Keep a copy of the directory (barnabas backup). Then, in this order:"
    for number, (sentence, commands) in enumerate(steps(home.nodes, home.cluster_id), 1):
        yield f"{number}. {sentence}"
        yield from (f"   {command}" for command in commands)
