"""
The command ``barnabas verify``.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from barnabas.storage.config.paths import local_path
from barnabas.storage.readonly.command_line import exit_status

if TYPE_CHECKING:
    from barnabas.storage.verify.cluster import ReadTopics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options.
    """
    parser.description = (
        "Check every file of log directories: batches and records, indexes, producer snapshots,"
        " checkpoints, and that they agree with each other. Works while a broker runs, and changes"
        " nothing without --repair. Exit 0 without violations, 1 with any."
    )
    parser.add_argument(
        "directories",
        nargs="+",
        type=local_path,
        metavar="DIR",
        help="a directory of log.dirs, or that of one partition; name all of a node together",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="first do the work of a start after a crash: cut off torn batches, rebuild indexes and"
        " snapshots, remove left-overs. No broker may run",
    )


def run(options: argparse.Namespace, read_topics: ReadTopics) -> int:
    """
    Print the violations. The exit status is 0 without any, 1 with any, 2 if an option is wrong.
    """
    from barnabas.storage.verify.run import verify  # noqa: PLC0415  # --help loads no engine

    return exit_status(partial(verify, options, read_topics))
