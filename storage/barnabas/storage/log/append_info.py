"""
The result of an append.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from barnabas.protocol.records.batch import NO_TIMESTAMP
from barnabas.storage.segment.offset_metadata import UNKNOWN_OFFSET


class LogAppendInfo:
    """
    The result of an append, which is filled in on the way.

    Attributes:
        max_timestamp: the largest timestamp of a record, in ms.
        log_append_time: when the records were appended, in ms, if the topic's timestamps are that.
            Of a batch that was there already, its largest timestamp, whatever the topic's are.
        valid_bytes: how many of the bytes that came are whole batches.
        is_duplicate: nothing was written: the batch is in the log already, at these offsets.
        flush_due: ``flush.messages`` asks for a flush before the append is acknowledged.
    """

    __slots__ = (
        "first_offset",
        "flush_due",
        "is_duplicate",
        "last_offset",
        "log_append_time",
        "log_start_offset",
        "max_timestamp",
        "valid_bytes",
    )

    def __init__(self, log_start_offset: int = UNKNOWN_OFFSET) -> None:
        self.first_offset = UNKNOWN_OFFSET
        self.last_offset = UNKNOWN_OFFSET
        self.max_timestamp = NO_TIMESTAMP
        self.log_append_time = NO_TIMESTAMP
        self.log_start_offset = log_start_offset
        self.valid_bytes = 0
        self.is_duplicate = False
        self.flush_due = False
