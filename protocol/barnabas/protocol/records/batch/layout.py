"""
Where the fields of a batch are, and what the broker writes over them.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from barnabas.protocol.records.crc32c import crc32c

MAGIC: Final = 2
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
LOG_OVERHEAD: Final = 12
"""Bytes before those that the length field counts: base offset and the length itself."""
SMALLEST_LENGTH: Final = 14
"""The length field of the smallest batch of any version."""
MAGIC_END: Final = 17
"""The bytes of a batch that are needed to recognize one."""

LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")


class TimestampType(IntEnum):
    """
    Who gave the records their timestamps. The names in configs are CreateTime and LogAppendTime.
    """

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


def assign(view: memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """
    Give the batch at *position* its place in the log. The checksum does not cover these fields.
    """
    _INT64.pack_into(view, position, base_offset)
    _INT32.pack_into(view, position + LEADER_EPOCH_AT, leader_epoch)


def set_max_timestamp(
    view: memoryview, position: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """
    Write the timestamp type and the largest timestamp of the batch at *position*.

    Where both say so already, nothing is touched; else the checksum is computed and attribute
    bits without a meaning are cleared (Kafka's DefaultRecordBatch.setMaxTimestamp).
    """
    (attributes,) = _INT16.unpack_from(view, position + ATTRIBUTES_AT)
    (current,) = _INT64.unpack_from(view, position + MAX_TIMESTAMP_AT)
    if current == max_timestamp and (attributes >> 3 & 1) == timestamp_type:
        return
    attributes = attributes & KNOWN_ATTRIBUTES & ~LOG_APPEND_TIME_FLAG | timestamp_type << 3
    _INT16.pack_into(view, position + ATTRIBUTES_AT, attributes)
    _INT64.pack_into(view, position + MAX_TIMESTAMP_AT, max_timestamp)
    (length,) = _INT32.unpack_from(view, position + LENGTH_AT)
    crc = crc32c(view[position + ATTRIBUTES_AT : position + LOG_OVERHEAD + length])
    _UINT32.pack_into(view, position + CRC_AT, crc)
