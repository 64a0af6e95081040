"""
Units of bytes and of ms, and the largest numbers of Java's types, which Kafka's files, requests and
options have.
"""

from __future__ import annotations

from typing import Final

KiB: Final = 1024
MiB: Final = 1024**2
GiB: Final = 1024**3
SECONDS: Final = 1_000
MINUTES: Final = 60_000
HOURS: Final = 3_600_000
DAYS: Final = 86_400_000
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
