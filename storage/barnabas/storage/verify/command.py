"""
``barnabas verify``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.storage.clock import Clock
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.verify.cluster import ReadTopics
    from barnabas.storage.verify.output import Output

EXIT_FINE = 0
EXIT_VIOLATIONS = 1
EXIT_USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    What can be verified.
    """
    parser.description = (
        "Check every file of log directories: batches and records, indexes, producer snapshots,"
        " checkpoints, and whether they fit each other. Works while a broker runs, and changes"
        " nothing unless it is told to. Exit 0 if all is fine, 1 if not."
    )
    parser.add_argument(
        "directories",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="a directory of log.dirs, or that of one partition; name all of a node together",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="first do what a broker does when it starts after a crash: cut off torn batches, make"
        " indexes and snapshots anew, remove what is left over. No broker may run",
    )


def run(options: argparse.Namespace, read_topics: ReadTopics) -> int:
    """
    Print what is found; the exit status is 0 if that is nothing, 1 if not, 2 if used wrongly.
    """
    # Whoever asks for --help should not wait for the engine to be loaded.
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see above
    from barnabas.storage.fs.disk import DiskFiles  # noqa: PLC0415  # see above
    from barnabas.storage.verify.output import JsonOutput, TextOutput  # noqa: PLC0415  # see above

    output = JsonOutput(sys.stdout) if options.format == "json" else TextOutput(sys.stdout)
    try:
        return _run(options, read_topics, output, files=DiskFiles(), clock=SystemClock())
    except BrokenPipeError:
        # Whoever reads has seen enough.
        sys.stderr.close()
        return EXIT_VIOLATIONS


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
        return EXIT_VIOLATIONS
    output.summary(report, verification.states)
    return EXIT_VIOLATIONS if report.errors or report.warnings else EXIT_FINE


def _repair(
    options: argparse.Namespace,
    read_topics: ReadTopics,
    output: Output,
    *,
    files: Files,
    clock: Clock,
) -> None:
    """
    Repair what needs it; directories without a violation are left as they are.
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
