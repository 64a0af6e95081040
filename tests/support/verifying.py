"""
Verifying, for tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.storage.clock import Clock
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.verify.cluster import ReadTopics, Topics
from barnabas.storage.verify.report import Report, Violation
from barnabas.storage.verify.verification import Verification
from tests.support.clock import StillClock


def no_topics(_root: LogRoot) -> Topics | None:
    """
    No metadata of the cluster.
    """
    return None


def verified(
    paths: Sequence[Path],
    read_topics: ReadTopics = no_topics,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
) -> tuple[list[Violation], Verification]:
    """
    What is told of *paths*, and who has told it.
    """
    violations: list[Violation] = []
    verification = Verification(
        files or DiskFiles(),
        clock or StillClock(),
        Report(violations.append),
        read_topics=read_topics,
    )
    verification.run(paths)
    return violations, verification
