"""
A broker that has stopped holds nothing: no file of its logs, no connection, no memory of requests,
and nothing waits.

Descriptors and mappings are counted as the kernel lists them (Linux); a disk in memory lists the
files that were not closed.

Legitimate exceptions:

* An answer may still refer to a mapped index or an open file when its log closes; both end with the
  last reference. The garbage collector runs before something counts as leaked.
* A file that was removed stays open for reads that have begun (Kafka's readers keep the channel of
  a ``FileRecords`` likewise), also where the removal failed and a logged traceback refers to it.
* A read-only broker shares its directories with a running one: its files are not checked, and files
  that were opened read-only on a disk in memory are not counted for the other.
* A test may open files of the broker itself: those that were open when the broker started are not
  counted.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DESCRIPTORS = "/proc/self/fd"
MAPPINGS = "/proc/self/maps"


class Resources:
    """
    What a broker holds.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        files: Any,
        directories: Iterable[Path],
        *,
        is_owner: bool,
    ) -> None:
        """
        Args:
            files: the disk of the broker.
            is_owner: whether its directories are locked for it, so that no other broker of this
                process opens files there.
            directories: its log directories.
        """
        self._report = report
        self._files = files
        self._directories = [os.path.realpath(each) + "/" for each in directories]
        self._is_checked = is_owner
        self._before = self._open_files()

    def check(self, broker: Any) -> None:
        """
        Report what a stopped broker holds.
        """
        connections = broker.connections
        if hasattr(connections, "resources"):  # a test may put something else in its place
            memory = connections.resources.request_memory
            self._expect_none("bytes of requests are held", memory.used_bytes)
            self._expect_none("connections hold memory of requests", len(memory.holders))
            self._expect_none("connections are open", len(connections))
        self._expect_none("fetches wait", len(broker.fetches.waiting))
        if self._open_files() - self._before:
            gc.collect()
            left = self._open_files() - self._before
            if left:
                named = ", ".join(sorted(left)[:5])
                self._report(f"{len(left)} files are open after the stop: {named}")

    def _expect_none(self, what: str, count: int) -> None:
        if count:
            self._report(f"after the stop {count} {what}")

    def _open_files(self) -> set[str]:
        if not self._is_checked:
            return set()
        in_use = getattr(self._files, "in_use", None)
        if in_use is not None:
            ours = (each for each in tuple(in_use) if not getattr(each, "_read_only", False))
            paths = ((str(each.path), id(each)) for each in ours)
            return {f"{path}#{number}" for path, number in paths if not is_removed(path)}
        return {*self._descriptors(), *self._mappings()}

    def _descriptors(self) -> Iterable[str]:
        for name in os.listdir(DESCRIPTORS) if os.path.isdir(DESCRIPTORS) else ():
            try:
                target = os.readlink(f"{DESCRIPTORS}/{name}")
            except OSError:  # that of the listing itself
                continue
            if self._is_ours(target):
                yield f"{target} (descriptor {name})"

    def _mappings(self) -> Iterable[str]:
        if not os.path.exists(MAPPINGS):
            return
        with open(MAPPINGS, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                _, slash, path = line.rstrip("\n").partition("/")
                if slash and self._is_ours(f"/{path}"):
                    yield f"/{path} (mapped)"

    def _is_ours(self, path: str) -> bool:
        return not is_removed(path) and any(map(path.startswith, self._directories))


def is_removed(path: str) -> bool:
    """
    Whether a file, as the kernel names it, is removed or about to be.
    """
    return path.endswith((" (deleted)", ".deleted")) or "-delete/" in path
