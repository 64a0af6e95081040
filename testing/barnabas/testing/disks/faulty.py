"""
A disk in memory with all that can go wrong with one.
"""

from __future__ import annotations

from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles


class FaultyFiles(FailingFiles, CrashableFiles):
    """
    A disk that fails, is slow, rots, and keeps what was synced over a loss of power.
    """
