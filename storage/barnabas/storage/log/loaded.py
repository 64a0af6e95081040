"""
The results of opening a log.
"""

from __future__ import annotations

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata


@struct(frozen=False)
class RecoveryReport:
    """
    The repairs that opening a log has made.
    """

    recovered_segments: int = 0
    recovered_bytes: int = 0
    """Valid batches of the segments that were recovered."""
    truncated_bytes: int = 0
    """Bytes that were cut off: no batch, not a whole one, or one with a wrong checksum."""
    set_aside_segments: int = 0
    """Segments behind lost records, or below the start of the log. Their files are kept."""
    split_segments: int = 0

    def add(self, other: RecoveryReport) -> None:
        """
        Add the repairs of another log.
        """
        self.recovered_segments += other.recovered_segments
        self.recovered_bytes += other.recovered_bytes
        self.truncated_bytes += other.truncated_bytes
        self.set_aside_segments += other.set_aside_segments
        self.split_segments += other.split_segments


class LoadedLogOffsets(NamedTuple):
    """
    The offsets of a log that was opened: its start, its recovery point and its end.
    """

    log_start_offset: int
    recovery_point: int
    next_offset_metadata: LogOffsetMetadata
