"""
A place in a log: an offset, its segment and its byte.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

UNKNOWN_OFFSET: Final = -1
UNKNOWN_FILE_POSITION: Final = -1


class LogOffsetMetadata:
    """
    An offset and, where it is known, in which segment and at which byte of it its batch begins.

    Never changed: threads that append and threads that read share it.
    """

    __slots__ = ("message_offset", "relative_position_in_segment", "segment_base_offset")

    def __init__(
        self,
        message_offset: int,
        segment_base_offset: int = UNKNOWN_OFFSET,
        relative_position_in_segment: int = UNKNOWN_FILE_POSITION,
    ) -> None:
        self.message_offset = message_offset
        self.segment_base_offset = segment_base_offset
        self.relative_position_in_segment = relative_position_in_segment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogOffsetMetadata) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"LogOffsetMetadata{self._fields()}"

    def _fields(self) -> tuple[int, int, int]:
        return self.message_offset, self.segment_base_offset, self.relative_position_in_segment

    @property
    def message_offset_only(self) -> bool:
        return (
            self.segment_base_offset == UNKNOWN_OFFSET
            and self.relative_position_in_segment == UNKNOWN_FILE_POSITION
        )
