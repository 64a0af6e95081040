"""
A disk in memory that records what is done to it, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from barnabas.testing.disks.crashable import READING
from barnabas.testing.disks.memory import MemoryFiles


class RecordingFiles(MemoryFiles):
    """
    A file system that remembers what changed it: ``write 0.log @150 +75``, ``sync 0.log``.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self.operations: list[str] = []

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action in READING:
            return
        detail = f" @{position} +{len(data)}" if action == "write" else ""
        self.operations.append(f"{action} {path.name}{detail}")


def contents(files: MemoryFiles) -> dict[Path, bytes]:
    """
    Copy all files, to compare them with what is left of them later.
    """
    return {path: bytes(node.data) for path, node in files.nodes.items()}
