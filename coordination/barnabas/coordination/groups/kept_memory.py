"""
The room for groups and their offsets, beside that for members (``member_memory``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.coordination.cluster.topic_names import MAX_NAME_LENGTH
from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.groups.groups import GROUP_BYTES, Groups
from barnabas.coordination.groups.offsets.offsets import (
    OFFSET_BYTES,
    PENDING_BYTES,
    PRODUCER_BYTES,
    TOPIC_BYTES,
    OffsetStore,
)
from barnabas.coordination.groups.records import CoordinatorRecord, OffsetRecord
from barnabas.coordination.text_memory import MOST_BYTES_OF_A_CHARACTER, text_bytes
from barnabas.protocol.codec.primitives import MAX_STRING_BYTES

_MOST_OF_A_TEXT: Final = MOST_BYTES_OF_A_CHARACTER * (MAX_STRING_BYTES + 8)
_MOST_OF_A_GROUP: Final = GROUP_BYTES + _MOST_OF_A_TEXT + PRODUCER_BYTES
_MOST_OF_AN_OFFSET: Final = OFFSET_BYTES + PENDING_BYTES + TOPIC_BYTES + MAX_NAME_LENGTH


class KeptState:
    """
    The groups and offsets of one partition, and the budget of all.

    What is there already may always change: a group commits on in the partitions that it knows.
    """

    def __init__(
        self, memory: MemoryBudget, groups: Groups, offsets: OffsetStore, *, most_metadata: int
    ) -> None:
        """
        Args:
            most_metadata: ``offset.metadata.max.bytes``.
        """
        self._memory = memory
        self._groups = groups
        self._offsets = offsets
        self._most_of_an_offset = _MOST_OF_AN_OFFSET + MOST_BYTES_OF_A_CHARACTER * (
            most_metadata + 8
        )

    def check_room(self, records: Sequence[CoordinatorRecord], producer_id: int) -> None:
        """
        See whether there is room for the groups and offsets that records make.

        Args:
            producer_id: of the transaction that the records belong to, or -1.

        Raises:
            CoordinatorNotAvailable: there is none.
        """
        # The records that make a group are all of one group.
        most = _MOST_OF_A_GROUP + len(records) * self._most_of_an_offset
        if not self._memory.has_room(most):
            self._memory.check_room(self._growth(records, producer_id))

    def _growth(self, records: Sequence[CoordinatorRecord], producer_id: int) -> int:
        new = {
            each.group_id
            for each in records
            if each.value is not None and self._groups.get(each.group_id) is None
        }
        of_groups = sum(GROUP_BYTES + text_bytes(group_id) for group_id in new)
        offsets = (each for each in records if isinstance(each, OffsetRecord))
        return of_groups + self._offsets.growth(offsets, producer_id)
