"""
One run of ``barnabas verify``.
"""

from __future__ import annotations

import argparse
import sys

from barnabas.storage.clock import SystemClock
from barnabas.storage.errors import KafkaError, LogDirectoryLocked
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.readonly.command_line import EXIT_DONE, EXIT_FAILED, EXIT_USAGE
from barnabas.storage.verify.cluster import ReadTopics
from barnabas.storage.verify.output import JsonOutput, TextOutput
from barnabas.storage.verify.repair import repair
from barnabas.storage.verify.report import VerifyReport
from barnabas.storage.verify.verification import Verification


def verify(options: argparse.Namespace, read_topics: ReadTopics) -> int:
    """
    Print the violations, after a repair if it is asked for, and return the exit status.
    """
    json = options.format == "json"
    output = JsonOutput(sys.stdout) if json else TextOutput(sys.stdout)
    files, clock = DiskFiles(), SystemClock()
    report = VerifyReport(output.violation)
    verification = Verification(files, clock, report, read_topics=read_topics)
    try:
        if options.repair:
            # Directories without a violation are not changed.
            before = VerifyReport(lambda _: None)
            Verification(files, clock, before, read_topics=read_topics).run(options.directories)
            if before.errors or before.warnings:
                repair(
                    options.directories,
                    files=files,
                    clock=clock,
                    read_topics=read_topics,
                    tell=output.change,
                )
        verification.run(options.directories)
    except (NotADirectoryError, ValueError, LogDirectoryLocked) as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KafkaError as error:
        print(f"barnabas: {error}", file=sys.stderr)
        return EXIT_FAILED
    output.summary(report, verification.states)
    return EXIT_FAILED if report.errors or report.warnings else EXIT_DONE
