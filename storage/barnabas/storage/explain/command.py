"""
The command ``barnabas explain``.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage.readonly.command_line import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    exit_status,
    local_directory,
)

if TYPE_CHECKING:
    from barnabas.storage.clock import Clock
    from barnabas.storage.explain.known import Cluster
    from barnabas.storage.explain.logs import ReadOnlyLogs
    from barnabas.storage.explain.report import PartitionReport
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.state_files.file_names import TopicPartition

ATTEMPTS = 10
"""The number of attempts to read a log whose broker removes files meanwhile."""

ReadCluster = Callable[[argparse.Namespace, "Files", "Clock"], "Cluster"]
"""
Reads the settings of the broker; raises ``ConfigError`` if one of them is wrong.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the questions.
    """
    parser.description = (
        "Explain a log: how a lookup finds a record, why each segment was rolled, why it still"
        " exists, which rule deletes it and when. Reads the files, with or without a running"
        " broker, and changes nothing."
    )
    parser.add_argument(
        "target", metavar="TOPIC[-PARTITION]", help="a topic, or one partition: orders-0"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--offset", type=int, metavar="N", help="one record of the partition")
    what.add_argument(
        "--timestamp",
        metavar="TIME",
        help="the first record that is not older; TIME as for --at",
    )
    what.add_argument("--segment", type=int, metavar="N", help="the segment with this base offset")
    what.add_argument("--all", action="store_true", help="all segments, however many there are")
    parser.add_argument(
        "--at",
        metavar="TIME",
        help="answer for this time instead of now: 2026-01-31T12:00:00Z, or ms since 1970",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="assignments",
        metavar="NAME=VALUE",
        help="answer for this setting of the topic or the broker; may be repeated",
    )
    add_log_directories(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text")


def add_log_directories(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options that ``ReadCluster`` reads.
    """
    parser.add_argument(
        "--data-dir",
        action="append",
        default=[],
        dest="data_dirs",
        type=local_directory,
        metavar="DIR",
        help="the log directory; may be repeated. Default: those of the configuration",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the server.properties of the broker"
    )


def run(options: argparse.Namespace, read_cluster: ReadCluster) -> int:
    """
    Print the explanation. The exit status is 0, or 1 if there is no answer, or 2 if an option is
    wrong.
    """
    return exit_status(partial(_run, options, read_cluster))


def _run(options: argparse.Namespace, read_cluster: ReadCluster) -> int:
    # --help does not load the engine.
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see above
    from barnabas.storage.config.option_values import ConfigError  # noqa: PLC0415  # see above
    from barnabas.storage.explain.known import ExplainError  # noqa: PLC0415  # see above
    from barnabas.storage.fs.disk import DiskFiles  # noqa: PLC0415  # see above

    allow_many_files()
    # The engine logs changes that stay in memory.
    logging.getLogger("barnabas").addHandler(logging.NullHandler())
    clock = SystemClock()
    try:
        cluster = read_cluster(options, DiskFiles(), clock)
        print(explained(options, cluster, DiskFiles(), clock), end="")
    except ConfigError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    except ExplainError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_DONE


def allow_many_files() -> None:
    """
    Raise the limit of descriptors: a log with thousands of segments has as many indexes.
    """
    import resource  # noqa: PLC0415  # see _run

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def explained(options: argparse.Namespace, cluster: Cluster, files: Files, clock: Clock) -> str:
    """
    The explanation that *options* ask for.

    Raises:
        ExplainError: there is no answer.
        ConfigError: a time is malformed.
    """
    from barnabas.storage.explain.as_json import as_json  # noqa: PLC0415  # see _run
    from barnabas.storage.explain.as_text import (  # noqa: PLC0415  # see _run
        as_text,
        settings_text,
        summary_text,
    )
    from barnabas.storage.explain.logs import ReadOnlyLogs  # noqa: PLC0415  # see _run

    logs = ReadOnlyLogs(cluster, files, clock)
    now_ms = clock.now_ms() if options.at is None else moment_of(options.at)
    reports = _reports(options, cluster, logs, now_ms)
    if options.format == "json":
        return as_json(reports)
    if len(reports) == 1:
        return as_text(reports[0], all_segments=options.all)
    return "\n".join([*map(summary_text, reports), settings_text(reports[0])])


def _reports(
    options: argparse.Namespace, cluster: Cluster, logs: ReadOnlyLogs, now_ms: int
) -> list[PartitionReport]:
    from barnabas.storage.explain import report  # noqa: PLC0415  # see _run
    from barnabas.storage.explain.known import ExplainError  # noqa: PLC0415  # see _run

    partitions = logs.find(options.target)
    asks = [
        (report.report_on_segment, options.segment),
        (report.report_on_offset, options.offset),
        (
            report.report_on_time,
            None if options.timestamp is None else moment_of(options.timestamp),
        ),
    ]
    asked = [(ask, value) for ask, value in asks if value is not None]
    if asked and len(partitions) > 1:
        there = ", ".join(map(str, partitions[:10])) + (", ..." if len(partitions) > 10 else "")
        raise ExplainError(f"{options.target} has several partitions; name one of {there}")

    def explain(partition: TopicPartition) -> PartitionReport:
        found = report.report_on(logs.open(partition), cluster.times, now_ms)
        for ask, value in asked:
            found = ask(found, value)
        return found

    return [patiently(partial(explain, partition)) for partition in partitions]


def patiently(explain: Callable[[], PartitionReport]) -> PartitionReport:
    """
    Repeat *explain*, up to ten times, while a broker changes files in the middle of it.

    Raises:
        FilesChanged: it did so each time.
    """
    from barnabas.storage.explain.known import FilesChanged  # noqa: PLC0415  # see _run

    for _ in range(ATTEMPTS - 1):
        with suppress(FilesChanged):
            return explain()
    return explain()


def moment_of(text: str) -> int:
    """
    The ms since 1970 of *text*.

    Raises:
        ConfigError: *text* is not a time.
    """
    from barnabas.storage.config.option_values import ConfigError  # noqa: PLC0415  # see _run
    from barnabas.storage.explain.units import parse_moment  # noqa: PLC0415  # see _run

    try:
        return parse_moment(text)
    except ValueError as error:
        raise ConfigError(str(error)) from error
