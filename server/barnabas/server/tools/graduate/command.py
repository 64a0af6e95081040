"""
The command line of ``barnabas graduate``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from barnabas.protocol.errors import KafkaError
from barnabas.server.config import BrokerConfig
from barnabas.server.config.command_line import add_config_options, settings_from
from barnabas.server.tools.graduate.preparation import CannotGraduate, Home, graduate
from barnabas.server.tools.graduate.properties import OTHER_NODES_DIRECTORY, carried_over
from barnabas.server.tools.graduate.steps import KAFKA, REASSIGNMENT, properties_of, steps
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.config.paths import local_path
from barnabas.storage.units import counted

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2


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
        "--output", type=local_path, required=True, metavar="DIR", help="a directory for the files"
    )


def run(options: argparse.Namespace) -> int:
    """
    Run the command and return the exit status: 0 done, 1 failed, 2 used wrongly.
    """
    try:
        settings = settings_from(options)
        config = settings.config()
        home = graduate(settings, options.nodes, options.output, options.log_dir)
    except ConfigError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (CannotGraduate, KafkaError, OSError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED
    print("\n".join(_report(home, config, options.output, carried_over(settings))))
    return 0


def _report(
    home: Home, config: BrokerConfig, output: Path, carried: Iterable[str]
) -> Iterator[str]:
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
    if names := ", ".join(sorted(carried)):
        yield f"Options that were set here are in all of them: {names}."
    if not all(listener.is_plaintext for listener in config.client_listeners):
        yield (
            "Controllers speak without TLS or SASL in these files: keep their port inside, or"
            " change listener.security.protocol.map before the first start."
        )
    yield ""
    programs = f"Java 17, Apache Kafka {KAFKA} with its bin in the PATH"
    yield f"Each machine needs {programs}, and its file;"
    yield f"{first.host} needs all of them. Each command is run where the files are."
    yield "Keep a copy of the directory (barnabas backup). Then, in this order:"
    for number, (sentence, commands) in enumerate(steps(home.nodes, home.cluster_id), 1):
        yield f"{number}. {sentence}"
        yield from (f"   {command}" for command in commands)
