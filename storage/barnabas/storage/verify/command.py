"""
The command ``barnabas verify``.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
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
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.verify.cluster import ReadTopics
    from barnabas.storage.verify.output import Output


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
        type=local_directory,
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
    # --help does not load the engine.
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see above
    from barnabas.storage.fs.disk import DiskFiles  # noqa: PLC0415  # see above
    from barnabas.storage.verify.output import JsonOutput, TextOutput  # noqa: PLC0415  # see above

    output = JsonOutput(sys.stdout) if options.format == "json" else TextOutput(sys.stdout)
    return exit_status(
        partial(_run, options, read_topics, output, files=DiskFiles(), clock=SystemClock())
    )


def _run(
    options: argparse.Namespace,
    read_topics: ReadTopics,
    output: Output,
    *,
    files: Files,
    clock: Clock,
) -> int:
    from barnabas.storage.errors import KafkaError, LogDirectoryLocked  # noqa: PLC0415  # as in run
    from barnabas.storage.verify.report import Report  # noqa: PLC0415  # as in run
    from barnabas.storage.verify.verification import Verification  # noqa: PLC0415  # as in run

    report = Report(output.violation)
    verification = Verification(files, clock, report, read_topics=read_topics)
    try:
        if options.repair:
            _repair(options, read_topics, output, files=files, clock=clock)
        verification.run(options.directories)
    except (NotADirectoryError, ValueError, LogDirectoryLocked) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KafkaError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED
    output.summary(report, verification.states)
    return EXIT_FAILED if report.errors or report.warnings else EXIT_DONE


def _repair(
    options: argparse.Namespace,
    read_topics: ReadTopics,
    output: Output,
    *,
    files: Files,
    clock: Clock,
) -> None:
    """
    Repair the directories, unless they have no violation.
    """
    from barnabas.storage.verify.repair import repair  # noqa: PLC0415  # as in run
    from barnabas.storage.verify.report import Report  # noqa: PLC0415  # as in run
    from barnabas.storage.verify.verification import Verification  # noqa: PLC0415  # as in run

    report = Report(lambda _: None)
    Verification(files, clock, report, read_topics=read_topics).run(options.directories)
    if report.errors or report.warnings:
        repair(
            options.directories,
            files=files,
            clock=clock,
            read_topics=read_topics,
            tell=output.change,
        )
