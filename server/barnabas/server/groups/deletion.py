"""
DeleteGroups, across the partitions that the groups belong to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from barnabas.server.groups.shard import GroupShard
from barnabas.server.scheduling.turns import settle

GROUPS_AT_ONCE: Final = 200
"""
The most groups of a partition that are deleted with one batch.
"""


class GroupDeletion:
    """
    The deletion of groups, whose ``answer`` is there once it is committed in all partitions.
    """

    __slots__ = ("_group_ids", "_missing", "_results", "answer")

    def __init__(self, group_ids: Sequence[str]) -> None:
        self.answer: asyncio.Future[DeleteGroupsResponse] = (
            asyncio.get_running_loop().create_future()
        )
        self._group_ids = group_ids
        self._results: dict[str, DeletableGroupResult] = {}
        self._missing = 0

    async def begin(
        self,
        shard_of: Callable[[str], GroupShard],
        failed: Mapping[str, ErrorCode] | None = None,
    ) -> None:
        """
        Delete the groups that can be deleted.

        Args:
            shard_of: returns the shard of a group, or raises ``KafkaError``.
            failed: groups that stay, with the reason.
        """
        failed = failed or {}
        by_shard: dict[GroupShard, list[str]] = {}
        for group_id in self._group_ids:
            await checkpoint()
            self._put(group_id, failed.get(group_id, ErrorCode.NONE))
            if group_id in failed:
                continue
            try:
                shard = shard_of(group_id)
                shard.check()
            except KafkaError as error:
                self._put(group_id, error.code)
            else:
                by_shard.setdefault(shard, []).append(group_id)
        # As in Kafka the deletions in a partition are one batch, unless they are too many.
        pieces = [
            (shard, ids[start : start + GROUPS_AT_ONCE])
            for shard, ids in by_shard.items()
            for start in range(0, len(ids), GROUPS_AT_ONCE)
        ]
        self._missing = len(pieces)
        for shard, ids in pieces:
            try:
                changes, outcome = shard.state.deleting.delete_groups(ids)
            except KafkaError as error:  # the shard has resigned between two steps
                self._settled(dict.fromkeys(ids, ErrorCode.NONE), error.code)
            else:
                shard.write(changes, partial(self._settled, dict(outcome)))
            await checkpoint()
        if not pieces:
            self._answer()

    def _settled(self, outcome: dict[str, ErrorCode], error: ErrorCode | None) -> None:
        for group_id, code in outcome.items():
            if code is not ErrorCode.NONE:
                self._put(group_id, code)
            elif error is not None:
                self._put(group_id, error)
        self._missing -= 1
        if not self._missing:
            self._answer()

    def _put(self, group_id: str, code: ErrorCode) -> None:
        self._results[group_id] = DeletableGroupResult(group_id=group_id, error_code=code)

    def _answer(self) -> None:
        settle(self.answer, DeleteGroupsResponse(results=list(self._results.values())))
