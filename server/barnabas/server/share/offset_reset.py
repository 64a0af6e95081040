"""
Where a group begins that has not consumed a partition yet (``share.auto.offset.reset``).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import OffsetNotAvailable
from barnabas.storage.units import DAYS, HOURS, MINUTES, SECONDS

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_DURATION: Final = re.compile(
    r"by_duration:\+?p(?:([0-9]+)d)?(?:t(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9.]+)s)?)?"
)
_UNITS_MS: Final = (DAYS, HOURS, MINUTES, SECONDS)


def duration_ms(reset: str) -> int:
    """
    The ms of ``by_duration:PnDTnHnMn.nS``.

    Raises:
        ValueError: *reset* is no such text, in small letters.
    """
    found = _DURATION.fullmatch(reset)
    if found is None:
        raise ValueError(f"{reset} is no duration")
    parts = zip(found.groups("0"), _UNITS_MS, strict=True)
    return int(sum(Decimal(text) * unit for text, unit in parts))


def reads_files(reset: str) -> bool:
    """
    Whether ``first_offset`` may wait for the disk.
    """
    return reset not in (EARLIEST, LATEST)


def first_offset(partition: Partition, reset: str, now_ms: int) -> int:
    """
    The offset at which a group begins now.

    Raises:
        OffsetNotAvailable: no record is as young as the duration says.
        KafkaStorageError: the disk failed.
    """
    log = partition.log
    if reset == EARLIEST:
        return log.log_start_offset
    if reset == LATEST:
        return log.high_watermark
    found = log.fetch_offset_by_timestamp(now_ms - duration_ms(reset))
    if found is None:
        raise OffsetNotAvailable(f"{partition.topic}-{partition.index} has no record that young")
    return found.offset
