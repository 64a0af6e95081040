"""
The answer to DeleteGroups, from what the partitions of the groups say.
"""

from __future__ import annotations

from barnabas.protocol.errors import CoordinatorNotAvailable, ErrorCode
from barnabas.server.groups.deletion import GroupDeletion
from barnabas.server.groups.shard import GroupShard


def no_shard(group_id: str) -> GroupShard:
    raise CoordinatorNotAvailable(group_id)


async def test_a_group_that_stays_does_not_keep_others_from_an_answer() -> None:
    deletion = GroupDeletion(["stays", "other"])

    await deletion.begin(no_shard, {"stays": ErrorCode.UNKNOWN_SERVER_ERROR})

    assert [
        ("stays", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("other", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ] == [(each.group_id, each.error_code) for each in (await deletion.answer).results]
