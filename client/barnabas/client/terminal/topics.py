"""
``barnabas topics``: list, describe, create, alter and delete.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.consumer import BEGINNING, END
from barnabas.client.errors import BrokerError
from barnabas.client.terminal.connecting import UsageError, connect, subcommands
from barnabas.client.terminal.output import add_json, note, print_json, print_table
from barnabas.client.topics import (
    ConfigSource,
    TopicConfig,
    TopicInfo,
    add_partitions,
    alter_configs,
    create_topic,
    delete_topic,
    list_topics,
    topic_configs,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.config.quantities import plain_value
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "List, describe, create, alter and delete topics of any Kafka cluster."
    add = subcommands(parser)

    listing = add("list", "list topics", _list)
    listing.add_argument("--internal", action="store_true", help="internal topics, too")
    add_json(listing)

    describe = add("describe", "print a topic's partitions, offsets and configs", _describe)
    describe.add_argument("topics", nargs="+", metavar="TOPIC")
    describe.add_argument(
        "--all-configs", action="store_true", help="configs with default values, too"
    )
    add_json(describe)

    create = add("create", "create a topic", _create)
    create.add_argument("topic", metavar="TOPIC")
    create.add_argument(
        "--partitions", type=int, default=-1, metavar="N", help="without it the broker's default"
    )
    create.add_argument(
        "--replication-factor", type=int, default=-1, metavar="N", help="replicas per partition"
    )
    _add_config(create)
    create.add_argument(
        "--if-not-exists", action="store_true", help="succeed if the topic exists already"
    )

    alter = add("alter", "change a topic's configs or add partitions", _alter)
    alter.add_argument("topic", metavar="TOPIC")
    _add_config(alter)
    alter.add_argument(
        "--unset",
        action="append",
        default=[],
        metavar="NAME",
        help="return a config to the broker's default; may be repeated",
    )
    alter.add_argument("--partitions", type=int, metavar="N", help="the new number in all")

    delete = add("delete", "delete topics and all their records", _delete)
    delete.description = (
        "Delete topics and all their records. The command asks first if its input is a terminal; in"
        " scripts and pipes it deletes at once, as Kafka's tool does."
    )
    delete.add_argument("topics", nargs="+", metavar="TOPIC")
    delete.add_argument("--yes", action="store_true", help="do not ask on a terminal")
    delete.add_argument(
        "--if-exists", action="store_true", help="succeed if a topic does not exist"
    )


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a topic config, with a unit if you like: retention.ms=7d; may be repeated",
    )


def _configs(options: argparse.Namespace) -> dict[str, str]:
    found = {}
    for each in options.config:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UsageError(f"--config {each}: write NAME=VALUE")
        found[name] = plain_value(name, value)
    return found


def _list(options: argparse.Namespace) -> None:
    with connect(options) as cluster:
        found = [
            topic for topic in list_topics(cluster) if options.internal or not topic.is_internal
        ]
    if options.json:
        print_json(
            [
                {
                    "name": topic.name,
                    "partitions": len(topic.partitions),
                    "replication_factor": topic.replication_factor,
                    "is_internal": topic.is_internal,
                }
                for topic in found
            ]
        )
    elif found:
        print_table(
            ("TOPIC", "PARTITIONS", "REPLICAS"),
            [(each.name, len(each.partitions), each.replication_factor) for each in found],
        )
    else:
        note("no topics yet; create one with: barnabas topics create NAME")


def _describe(options: argparse.Namespace) -> None:
    described: list[dict[str, Any]] = []
    with connect(options) as cluster:
        for topic in list_topics(cluster, options.topics):
            configs = [
                config
                for config in topic_configs(cluster, topic.name)
                if options.all_configs or _is_own(config)
            ]
            described.append(_description(cluster, topic, configs))
    if options.json:
        print_json(described)
        return
    for number, each in enumerate(described):
        if number:
            print()
        _print_description(each)


def _is_own(config: TopicConfig) -> bool:
    return config.source == ConfigSource.TOPIC


def _description(
    cluster: Cluster, topic: TopicInfo, configs: Iterable[TopicConfig]
) -> dict[str, Any]:
    places = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    starts, ends = bounds(cluster, places)
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "replication_factor": topic.replication_factor,
        "configs": {config.name: config.value for config in configs},
        "partitions": [
            {
                "partition": each.partition,
                "leader": each.leader,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "start_offset": starts[place],
                "end_offset": ends[place],
            }
            for each, place in zip(topic.partitions, places, strict=True)
        ],
    }


def bounds(
    cluster: Cluster, partitions: Iterable[TopicPartition], isolation: int = 0
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """
    The log start offset and the end offset of each partition.
    """
    places = list(partitions)
    starts = cluster.offsets(dict.fromkeys(places, BEGINNING))
    return starts, cluster.offsets(dict.fromkeys(places, END), isolation)


def _print_description(topic: dict[str, Any]) -> None:
    configs = ", ".join(f"{name}={value}" for name, value in topic["configs"].items())
    print(f"Topic    {topic['name']}")
    print(f"Configs  {configs or 'the defaults of the broker'}")
    print_table(
        ("PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END"),
        [
            (
                each["partition"],
                each["leader"],
                ",".join(map(str, each["replicas"])),
                ",".join(map(str, each["isr"])),
                each["start_offset"],
                each["end_offset"],
            )
            for each in topic["partitions"]
        ],
    )


def _create(options: argparse.Namespace) -> None:
    configs = _configs(options)
    with connect(options) as cluster:
        try:
            partitions, replicas = create_topic(
                cluster, options.topic, options.partitions, options.replication_factor, configs
            )
        except BrokerError as error:
            if error.code == ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists:
                note(f"topic {options.topic} exists already")
                return
            raise
    print(
        f"Created topic {options.topic} with {counted(partitions, 'partition')}"
        f" and {counted(replicas, 'replica')} of each."
    )


def _alter(options: argparse.Namespace) -> None:
    configs = _configs(options)
    if not configs and not options.unset and options.partitions is None:
        raise UsageError("nothing to alter: give --config, --unset or --partitions")
    with connect(options) as cluster:
        if configs or options.unset:
            alter_configs(cluster, options.topic, configs, options.unset)
        if options.partitions is not None:
            add_partitions(cluster, options.topic, options.partitions)
    print(f"Altered topic {options.topic}.")


def _delete(options: argparse.Namespace) -> None:
    names = ", ".join(options.topics)
    if sys.stdin.isatty() and not options.yes:
        answer = input(f"Delete {names} with all records? Type yes: ")
        if answer.strip().lower() != "yes":
            raise UsageError("nothing was deleted")
    with connect(options) as cluster:
        for name in options.topics:
            try:
                delete_topic(cluster, name)
            except BrokerError as error:
                if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and options.if_exists:
                    note(f"topic {name} does not exist")
                    continue
                raise
            print(f"Deleted topic {name}.")
