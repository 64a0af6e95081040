"""
Rules of all assignors of partitions.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.assignors import range_assignor, simple_assignor, uniform_assignor
from barnabas.coordination.groups.assignors.errors import PartitionAssignorError
from barnabas.coordination.groups.assignors.spec import GroupSpec
from tests.support.assignments import A, B, group, member


@pytest.fixture(params=[range_assignor, simple_assignor, uniform_assignor])
def assign(request: pytest.FixtureRequest) -> Any:
    return request.param.assign


def test_members_without_topics_lose_their_partitions(assign: Any) -> None:
    members = group(m0=member(target={A: [0]}), m1=member())

    assert {"m0": {}, "m1": {}} == assign(members, {A: 3})
    assert {} == assign(group(), {A: 3})


@pytest.mark.parametrize("members", [group(m0=member(B)), group(m0=member(B), m1=member(A))])
def test_topic_without_metadata_is_an_error(assign: Any, members: GroupSpec) -> None:
    with pytest.raises(PartitionAssignorError, match=f"topic {B}, which does not exist"):
        assign(members, {A: 3})
