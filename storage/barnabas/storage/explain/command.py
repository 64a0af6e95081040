"""
The command ``barnabas explain``.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage.config.paths import local_path
from barnabas.storage.readonly.command_line import exit_status

if TYPE_CHECKING:
    from barnabas.storage.explain.known import ReadCluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the questions.
    """
    parser.description = (
        "Explain a log: how a lookup finds a record, why each segment was rolled, why it still"
        " exists, which rule deletes it and when, and which records are deleted before a group"
        " has read them. Reads the files, with or without a running"
        " broker, and changes nothing."
    )
    parser.add_argument(
        "target",
        metavar="TOPIC[-PARTITION]",
        help="a topic, or one partition: orders-0, or its directory: data/orders-0",
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
    what.add_argument(
        "--groups",
        action="store_true",
        help="what retention will delete before the groups have read it",
    )
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
        type=local_path,
        metavar="DIR",
        help="the log directory; may be repeated. Default: those of the configuration",
    )
    parser.add_argument(
        "--config", type=local_path, metavar="FILE", help="the server.properties of the broker"
    )


def run(options: argparse.Namespace, read_cluster: ReadCluster) -> int:
    """
    Print the explanation. The exit status is 0, or 1 if there is no answer, or 2 if an option is
    wrong.
    """
    from barnabas.storage.explain.run import explain  # noqa: PLC0415  # --help loads no engine

    # No topic has a slash in its name: this is the directory of a partition.
    directory, slash, name = options.target.rstrip("/").rpartition("/")
    if slash:
        options.target = name
        options.data_dirs = options.data_dirs or [Path(directory or "/")]

    return exit_status(partial(explain, options, read_cluster))
