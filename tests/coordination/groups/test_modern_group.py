"""
Groups of the later protocols beside classic requests, and in logs of other writers.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.describing import describe
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.coordination.groups.records import decode_record
from barnabas.protocol.errors import ErrorCode, GroupIdNotFound, UnknownMemberId
from tests.support.consumer_groups import ConsumerCoordination
from tests.support.coordination import GROUP, Coordination
from tests.support.share_groups import ShareCoordination
from tests.support.streams_groups import StreamsCoordination

Stored = tuple[bytes, bytes | None]


@pytest.fixture
def records() -> list[Stored]:
    """
    The records of a consumer group with the member *m*.
    """
    c = ConsumerCoordination()
    c.enter("m", ["t"])
    return c.log


def test_modern_group_does_not_exist_for_classic_requests() -> None:
    c = StreamsCoordination()
    c.enter("m")

    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == c.join().now.error_code
    assert ErrorCode.UNKNOWN_MEMBER_ID == c.sync("m", 3).now.error_code
    with pytest.raises(UnknownMemberId):
        c.heartbeat("m", 3)
    with pytest.raises(UnknownMemberId):
        c.leave("m")
    described = describe(c.state.groups, GROUP, 6)
    assert ("Dead", 69) == (described.group_state, described.error_code)
    assert f"Group {GROUP} is not a classic group." == described.error_message
    assert 0 == describe(c.state.groups, GROUP, 5).error_code


def test_empty_share_group_cannot_become_classic() -> None:
    # A share group has state in another coordinator.
    c = ShareCoordination()
    c.enter("m", ["t"])
    c.beat("m", -1)

    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == c.join().now.error_code


def test_share_group_has_no_committed_offsets() -> None:
    c = ShareCoordination()
    c.enter("m", ["t"])
    c.beat("m", -1)

    with pytest.raises(GroupIdNotFound):
        c.commit_offsets({("t", 0): 5})


def test_offsets_may_be_loaded_before_their_group(records: list[Stored]) -> None:
    # Compaction may reorder them; the simple group made for the offsets is replaced.
    c = ConsumerCoordination()
    c.commit_offsets({("t", 0): 1})
    c.log.extend(records)
    c.restart()

    assert ["m"] == list(c.consumers.members)
    assert 1 == len(list(c.state.offsets.committed))


def test_leftover_tombstones_change_nothing(records: list[Stored]) -> None:
    # Their group is deleted, or a classic one by now.
    c = Coordination()
    c.stable(1)
    c.log.extend((key, None) for key, _ in records)
    c.restart()

    assert 1 == len(c.group.members)


def test_two_groups_of_one_id_are_refused(records: list[Stored]) -> None:
    # No writer makes such a log; choosing one could lose either.
    c = Coordination()
    c.stable(1)
    c.log.extend(records)

    with pytest.raises(ValueError, match="ModernRecord"):
        c.restart()


def test_every_group_record_type_has_a_role() -> None:
    # All types of Kafka 4.3.1 except the classic ones.
    types = [3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23]
    found = [decode_record(t.to_bytes(2, "big") + b"\0\1g\0\1m", None) for t in types]

    assert types == [r.key.api.key for r in found if isinstance(r, ModernRecord)]
    assert set(Role) == {record.role for record in found if isinstance(record, ModernRecord)}
