"""
What opening a log has found out.
"""

from __future__ import annotations

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata


@struct(frozen=False)
class RecoveryReport:
    """
    What had to be done to open a log.
    """

    recovered_segments: int = 0
    recovered_bytes: int = 0
    """Of the segments that were recovered, what is good."""
    truncated_bytes: int = 0
    """What was cut off because it is no batch, or not whole, or does not fit its checksum."""
    deleted_segments: int = 0
    """Segments behind one that had lost something."""
    split_segments: int = 0


class LoadedLogOffsets(NamedTuple):
    """
    A log that was opened: where it starts, is on the disk up to, and ends.
    """

    log_start_offset: int
    recovery_point: int
    next_offset_metadata: LogOffsetMetadata
