"""
Run the verifier in tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.storage.clock import Clock
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.verify.cluster import KnownTopics, ReadTopics
from barnabas.storage.verify.context import LogContext
from barnabas.storage.verify.partition import PartitionCheck
from barnabas.storage.verify.report import VerifyReport, Violation
from barnabas.storage.verify.verification import Verification
from tests.support.clock import StillClock
from tests.support.segments import DIRECTORY


def no_topics(_root: LogRoot) -> KnownTopics | None:
    return None


def log_violations(
    files: Files, context: LogContext, directory: Path = DIRECTORY
) -> list[Violation]:
    """
    What is wrong in one log, but for the topic id and the epochs, which most tests leave out.
    """
    violations: list[Violation] = []
    partition = PartitionDirectory(directory, files)
    PartitionCheck(partition, context, VerifyReport(violations.append), StillClock()).run()
    ignored = ("partition-metadata", "epochs-missing")
    return [each for each in violations if each.rule not in ignored]


def verified(
    paths: Sequence[Path],
    read_topics: ReadTopics = no_topics,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
) -> tuple[list[Violation], Verification]:
    """
    The findings about *paths*, and their source.
    """
    violations: list[Violation] = []
    verification = Verification(
        files or DiskFiles(),
        clock or StillClock(),
        VerifyReport(violations.append),
        read_topics=read_topics,
    )
    verification.run(paths)
    return violations, verification
