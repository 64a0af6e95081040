"""
``barnabas groups``: list, describe, reset offsets and delete.
"""

from __future__ import annotations

import argparse
from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerError
from barnabas.client.groups import (
    CLASSIC,
    GroupDescription,
    commit_offsets,
    committed_offsets,
    delete_group,
    describe_group,
    find_group,
    list_groups,
)
from barnabas.client.terminal.connecting import UsageError, connect, subcommands
from barnabas.client.terminal.output import add_json, note, print_json, print_table
from barnabas.client.terminal.places import PLACES, offsets_at, partitions_of
from barnabas.client.terminal.topics import bounds
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.topic_partition import TopicPartition

_TYPES: Final = ("classic", "consumer", "share", "streams")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "List, describe, reset and delete groups of any Kafka cluster."
    add = subcommands(parser)

    listing = add("list", "list groups of every type", _list)
    listing.add_argument("--type", action="append", default=[], choices=_TYPES)
    listing.add_argument(
        "--state", action="append", default=[], metavar="STATE", help="Stable, Empty, ..."
    )
    add_json(listing)

    describe = add("describe", "print a group's members, committed offsets and lag", _describe)
    describe.add_argument("group", metavar="GROUP")
    add_json(describe)

    reset = add("reset-offsets", "move the offsets of a group without active members", _reset)
    reset.description = (
        "Move the committed offsets of a group without active members. Without --execute, the"
        " command only prints the new offsets."
    )
    reset.add_argument("group", metavar="GROUP")
    reset.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:N,N]",
        help="a topic, or some of its partitions; may be repeated; default: all that the group has"
        " committed",
    )
    to = reset.add_mutually_exclusive_group(required=True)
    to.add_argument("--to", metavar="PLACE", help=PLACES)
    to.add_argument(
        "--shift-by", type=int, metavar="N", help="N offsets forward, or back if N is negative"
    )
    reset.add_argument("--execute", action="store_true", help="apply the change")
    add_json(reset)

    delete = add("delete", "delete groups without active members", _delete)
    delete.add_argument("groups", nargs="+", metavar="GROUP")


def _list(options: argparse.Namespace) -> None:
    with connect(options) as cluster:
        found = list_groups(cluster, options.type, options.state)
    if options.json:
        print_json(
            [
                {
                    "group_id": each.group_id,
                    "type": each.type,
                    "protocol_type": each.protocol_type,
                    "state": each.state,
                }
                for each in found
            ]
        )
    elif found:
        print_table(
            ("GROUP", "TYPE", "STATE", "PROTOCOL"),
            [
                (each.group_id, each.type or None, each.state or None, each.protocol_type or None)
                for each in found
            ],
        )
    else:
        note("no groups")


def _describe(options: argparse.Namespace) -> None:
    with connect(options) as cluster:
        group = describe_group(cluster, options.group)
        committed = committed_offsets(cluster, options.group, group.type)
        assigned = {each for member in group.members for each in member.partitions}
        places = sorted({*committed, *assigned})
        ends = _ends(cluster, places)
    if options.json:
        print_json(_as_json(group, committed, ends, places))
    else:
        _print_group(group, committed, ends, places)


def _ends(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, int | None]:
    """
    The end of each partition; None where the topic was deleted.
    """
    existing = cluster.existing({each.topic for each in partitions})
    there = [each for each in partitions if each.partition < existing.get(each.topic, 0)]
    found: dict[TopicPartition, int | None] = dict.fromkeys(partitions)
    if there:
        found.update(bounds(cluster, there)[1])
    return found


def _lag(end: int | None, committed: int | None) -> int | None:
    return None if end is None or committed is None else max(0, end - committed)


def _as_json(
    group: GroupDescription,
    committed: dict[TopicPartition, int],
    ends: dict[TopicPartition, int | None],
    places: list[TopicPartition],
) -> dict[str, object]:
    return {
        "group_id": group.group_id,
        "type": group.type,
        "state": group.state,
        "coordinator": group.coordinator,
        "assignor": group.assignor,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [str(each) for each in member.partitions],
                "tasks": list(member.tasks),
            }
            for member in group.members
        ],
        "offsets": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed": committed.get(each),
                "end": ends[each],
                "lag": _lag(ends[each], committed.get(each)),
            }
            for each in places
        ],
    }


def _print_group(
    group: GroupDescription,
    committed: dict[TopicPartition, int],
    ends: dict[TopicPartition, int | None],
    places: list[TopicPartition],
) -> None:
    print(f"Group        {group.group_id}")
    print(f"Type         {group.type}, {group.state}")
    print(f"Coordinator  {group.coordinator}")
    owners = {each: member.client_id for member in group.members for each in member.partitions}
    if group.members:
        print()
        print_table(
            ("MEMBER", "CLIENT", "HOST", "INSTANCE", "ASSIGNED"),
            [
                (
                    member.member_id,
                    member.client_id,
                    member.host,
                    member.instance_id,
                    ", ".join([*map(str, member.partitions), *member.tasks]) or None,
                )
                for member in group.members
            ],
        )
    if places:
        print()
        print_table(
            ("PARTITION", "COMMITTED", "END", "LAG", "CLIENT"),
            [
                (
                    str(each),
                    committed.get(each),
                    ends[each],
                    _lag(ends[each], committed.get(each)),
                    owners.get(each),
                )
                for each in places
            ],
        )


def _reset(options: argparse.Namespace) -> None:
    with connect(options) as cluster:
        kind = _type_of(cluster, options) or CLASSIC
        committed = committed_offsets(cluster, options.group, kind)
        partitions = _chosen(cluster, options.topic) if options.topic else sorted(committed)
        if not partitions:
            raise UsageError(f"group {options.group} has no committed offsets: give --topic")
        starts, ends = bounds(cluster, partitions)
        if options.to is not None:
            planned = offsets_at(cluster, options.to, starts, ends)
        else:
            planned = _shifted(committed, options.shift_by, starts, ends)
        if options.execute:
            commit_offsets(cluster, options.group, kind, planned)
    if options.json:
        print_json(
            [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "committed": committed.get(each),
                    "new": planned[each],
                }
                for each in planned
            ]
        )
    else:
        print_table(
            ("PARTITION", "COMMITTED", "NEW"),
            [(str(each), committed.get(each), planned[each]) for each in planned],
        )
    if not options.execute:
        note("nothing has changed yet; --execute applies these offsets")


def _type_of(cluster: Cluster, options: argparse.Namespace) -> str | None:
    """
    The type of the group. A group that does not exist yet begins with the commit, as in Kafka's
    tool.
    """
    try:
        return find_group(cluster, options.group).type
    except BrokerError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND and options.topic:
            return None
        raise


def _chosen(cluster: Cluster, topics: list[str]) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for each in topics:
        topic, colon, numbers = each.rpartition(":")
        if not colon:
            topic, numbers = each, ""
        try:
            wanted = [int(number) for number in numbers.split(",")] if colon else None
        except ValueError:
            raise UsageError(f"--topic {each}: write TOPIC or TOPIC:0,1,2") from None
        found += partitions_of(cluster, topic, wanted)
    return sorted(dict.fromkeys(found))


def _shifted(
    committed: dict[TopicPartition, int],
    by: int,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> dict[TopicPartition, int]:
    found = {}
    for each, start in starts.items():
        if each not in committed:
            raise UsageError(f"{each} has no committed offset to shift; use --to")
        found[each] = min(max(start, committed[each] + by), ends[each])
    return found


def _delete(options: argparse.Namespace) -> None:
    with connect(options) as cluster:
        for group_id in options.groups:
            delete_group(cluster, group_id)
            print(f"Deleted group {group_id}.")
