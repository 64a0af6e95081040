"""
Which access control entries are added and removed.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.coordination.cluster.acl_changes import creation, deletion
from barnabas.coordination.cluster.image import Versioned
from barnabas.coordination.security.acl.acls import Acls
from barnabas.coordination.security.acl.bindings import AclBinding, AclBindingFilter
from barnabas.coordination.steps import finished
from barnabas.protocol.errors import InvalidRequest, PolicyViolation
from barnabas.server.requests.answer_room import AnswerRoom
from barnabas.server.requests.errors import CloseConnection

ANY = 1
EVERY = AclBindingFilter(ANY, None, ANY, None, None, ANY, ANY)


def entry(name: str = "t", principal: str = "User:a", operation: int = 3) -> AclBinding:
    return AclBinding(2, name, 3, principal, "*", operation, 3)


def acls_of(*entries: AclBinding) -> Acls:
    acls = Acls()
    for number, each in enumerate(entries):
        acls.add(UUID(int=number), each)
    return acls


def ignore(_entry: AclBinding) -> None:
    pass


def test_acl_is_created_once_and_an_invalid_one_does_not_block_others() -> None:
    made: list[Versioned] = []
    wanted = [entry("there"), entry("new"), entry("new"), entry(principal="a"), entry(operation=1)]

    outcomes = finished(creation(acls_of(entry("there")), wanted, made))

    assert [None, None, None, InvalidRequest, InvalidRequest] == [
        None if each is None else type(each) for each in outcomes
    ]
    assert 1 == len(made)


def test_overlapping_acl_filters_each_report_their_matches_and_delete_once() -> None:
    made: list[Versioned] = []
    acls = acls_of(entry("t"), entry("u"))
    of_t = EVERY._replace(resource_name="t")
    unknown = EVERY._replace(operation=99)

    both, one, wrong = finished(deletion(acls, [EVERY, of_t, unknown], made, ignore))

    assert [entry("t"), entry("u")] == both
    assert [entry("t")] == one
    assert isinstance(wrong, InvalidRequest)
    assert 2 == len(made)


def test_response_to_delete_acls_that_would_be_too_large_is_refused() -> None:
    # Each filter repeats every entry it matches.
    room = AnswerRoom(100_000)
    acls = acls_of(*(entry(f"t{number}") for number in range(20)))

    with pytest.raises(CloseConnection, match="would take more than"):
        finished(deletion(acls, [EVERY] * 20, [], lambda _: room.take(1)))


def test_number_of_acl_filters_is_limited() -> None:
    with pytest.raises(PolicyViolation):
        finished(deletion(acls_of(entry()), [EVERY] * 10_001, [], ignore))
