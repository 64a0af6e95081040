"""
One budget for batches that threads hold decompressed whole.

The cleaner and the recompression of produced batches need all records of a batch at a time, and a
small batch may become hundreds of MiB. The batch of one thread always fits, however large it is;
those of other threads wait while it is there and their sum is too large. Readers that need a pass
alone take the records in pieces instead (``RecordBatch.records``) and hold none of this.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_BYTES: Final = 256 * 1024 * 1024
FREE_BYTES: Final = 1024 * 1024
"""The size of a batch that is not counted, and of the pieces in which larger ones are."""


class BudgetShare:
    """
    What one batch takes of the budget.
    """

    __slots__ = ("_budget", "_free", "taken_bytes")

    def __init__(self, budget: DecompressedBudget) -> None:
        self._budget = budget
        self._free = FREE_BYTES
        self.taken_bytes = 0

    def take(self, size: int) -> None:
        """
        Count *size* bytes more; wait until they fit or the batches of all older shares are gone.
        """
        self._free -= size
        if self._free < 0:
            self._budget.wait_for(self, FREE_BYTES - self._free)
            self._free = FREE_BYTES


class DecompressedBudget:
    """
    Invariants:

    1. The shares together take less than ``most_bytes``, or the oldest of those that take something
       goes beyond it alone.
    2. A thread has one share at a time: it would wait for itself.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._changed = threading.Condition()
        self._shares: dict[BudgetShare, None] = {}  # those that take something, oldest first
        self._used_bytes = 0

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    @contextmanager
    def share(self) -> Iterator[BudgetShare]:
        """
        A share that lasts as long as the block.
        """
        share = BudgetShare(self)
        try:
            yield share
        finally:
            if share.taken_bytes:
                with self._changed:
                    self._used_bytes -= share.taken_bytes
                    del self._shares[share]
                    self._changed.notify_all()

    def wait_for(self, share: BudgetShare, size: int) -> None:
        """
        Give *share* *size* bytes more, once they fit or it is the oldest.
        """
        with self._changed:
            while self._shares and next(iter(self._shares)) is not share:
                if self._used_bytes + size <= self.most_bytes:
                    break
                self._changed.wait()
            self._shares[share] = None
            share.taken_bytes += size
            self._used_bytes += size


DECOMPRESSED: Final = DecompressedBudget()
