"""
All operations of the control of a broker in a test.
"""

from __future__ import annotations

from typing import Final

from barnabas.testing.control import disks, faults, groups, lifecycle, topics

OPERATIONS: Final = (
    *lifecycle.OPERATIONS,
    *faults.OPERATIONS,
    *topics.OPERATIONS,
    *groups.OPERATIONS,
    *disks.OPERATIONS,
)
