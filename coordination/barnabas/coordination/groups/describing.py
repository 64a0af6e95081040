"""
A group as DescribeGroups and ListGroups show it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.groups import Group, Groups
from barnabas.protocol.errors import ErrorCode, GroupIdNotFound
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.protocol.messages.list_groups import ListedGroup

GROUP_ID_NOT_FOUND_SINCE: Final = 6


_OTHER_NAMES: Final = {"notready": "not_ready"}
"""
States by the names that Kafka looks for, if those are not the ones that its clients send.
"""


def listed(group: Group) -> ListedGroup:
    """
    A group as ListGroups shows it.
    """
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.listed_protocol_type,
        group_state=group.state_name,
        group_type=group.type.value,
    )


def is_listed(group: Group, states: Collection[str], types: Collection[str]) -> bool:
    """
    Whether a group is in one of the states and of one of the types, all in lower case. An empty
    collection means any; an unknown name matches no group.
    """
    state = group.state_name.lower()
    is_wanted = state in states or _OTHER_NAMES.get(state) in states
    return (not states or is_wanted) and (not types or group.type.value in types)


def describe(groups: Groups, group_id: str, version: int) -> DescribedGroup:
    """
    A classic group and its members.

    To this API every other group is dead; since v6 that is an error, too (KIP-1043). The protocol
    and the metadata of the members are shown in a stable group only.
    """
    try:
        group = groups.find(group_id, ClassicGroup)
    except GroupIdNotFound as error:
        tells = version >= GROUP_ID_NOT_FOUND_SINCE
        return described_error(
            group_id,
            error.code if tells else ErrorCode.NONE,
            message=str(error) if tells else None,
            state=GroupState.DEAD.value,
        )
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.listed_protocol_type,
        protocol_data=group.protocol_name or "" if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def described_error(
    group_id: str, error: ErrorCode, *, message: str | None = None, state: str = ""
) -> DescribedGroup:
    """
    A group that cannot be described.
    """
    return DescribedGroup(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=[],
    )
