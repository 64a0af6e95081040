"""
One run of ``barnabas explain``.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from functools import partial

from barnabas.protocol.structs import replace
from barnabas.storage.clock import Clock, SystemClock
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.errors import KafkaError
from barnabas.storage.explain.as_json import as_json
from barnabas.storage.explain.as_text import as_text, settings_text, summary_text
from barnabas.storage.explain.groups import TopicGroups, groups_of
from barnabas.storage.explain.known import ClusterSettings, ExplainError, ReadCluster
from barnabas.storage.explain.logs import ReadOnlyLogs, patiently
from barnabas.storage.explain.report import (
    PartitionReport,
    report_on,
    report_on_offset,
    report_on_segment,
    report_on_time,
)
from barnabas.storage.explain.units import parse_moment
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.command_line import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    allow_many_files,
)
from barnabas.storage.topic_partition import TopicPartition


def explain(options: argparse.Namespace, read_cluster: ReadCluster) -> int:
    """
    Print the explanation and return the exit status.
    """
    allow_many_files()
    # The engine logs changes that stay in memory.
    logging.getLogger("barnabas").addHandler(logging.NullHandler())
    files, clock = DiskFiles(), SystemClock()
    try:
        print(explained(options, read_cluster(options, files, clock), files, clock), end="")
    except (ConfigError, ExplainError, KafkaError) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED
    return EXIT_DONE


def explained(
    options: argparse.Namespace, cluster: ClusterSettings, files: Files, clock: Clock
) -> str:
    """
    The explanation that *options* ask for.

    Raises:
        ExplainError: there is no answer.
        ConfigError: a time is malformed.
    """
    logs = ReadOnlyLogs(cluster, files, clock)
    now_ms = clock.now_ms() if options.at is None else parse_moment(options.at)
    reports = _reports(options, cluster, logs, now_ms)
    if options.format == "json":
        return as_json(reports)
    if len(reports) == 1:
        return as_text(reports[0], all_segments=options.all)
    return "\n".join([*map(summary_text, reports), settings_text(reports[0])])


def _reports(
    options: argparse.Namespace, cluster: ClusterSettings, logs: ReadOnlyLogs, now_ms: int
) -> list[PartitionReport]:
    partitions = logs.find(options.target)
    time = None if options.timestamp is None else parse_moment(options.timestamp)
    asks: list[tuple[Callable[..., PartitionReport], int | None]] = [
        (report_on_segment, options.segment),
        (report_on_offset, options.offset),
        (report_on_time, time),
    ]
    asked = [(ask, value) for ask, value in asks if value is not None]
    if asked and len(partitions) > 1:
        there = ", ".join(map(str, partitions[:10])) + (", ..." if len(partitions) > 10 else "")
        raise ExplainError(f"{options.target} has several partitions; name one of {there}")

    groups: TopicGroups | None = None
    if options.groups:
        first = partial(logs.open, partitions[0])
        groups = patiently(lambda: TopicGroups(logs, first(), now_ms))

    def explain_one(partition: TopicPartition) -> PartitionReport:
        opened = logs.open(partition)
        found = report_on(opened, cluster.times, now_ms)
        for ask, value in asked:
            found = ask(found, value)
        for each in found.segments:
            found.ending(each)  # now: if files change meanwhile, all is read once more
        if groups is not None:
            found = replace(found, groups=groups_of(opened, groups, cluster.times, now_ms))
        return found

    return [patiently(partial(explain_one, partition)) for partition in partitions]
