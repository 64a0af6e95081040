"""
Requests that have come before are answered without being read again.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from barnabas.server.metrics import Counter
from barnabas.server.requests.context import Parts
from barnabas.server.requests.repeated_requests import (
    MOST_BYTES,
    MOST_REQUESTS,
    RepeatedRequests,
)
from tests.support.unconnected import unconnected

HEADER_BYTES = 8
NO_PARTS = cast(Parts, None)


class Echo:
    """
    A question whose answer is a word, or none.
    """

    def __init__(self, word: bytes | None) -> None:
        self._word = word

    def answer(self, correlation_id: bytes, parts: Parts) -> bytes | None:
        return None if self._word is None else correlation_id + self._word


def frame(body: bytes, correlation_id: bytes = b"0001", api: bytes = b"\0\2\0\x09") -> memoryview:
    return memoryview(bytearray(api + correlation_id + body))


class Asked:
    """
    ``RepeatedRequests``, and who has asked.
    """

    def __init__(self) -> None:
        self.repeated = RepeatedRequests()
        self.peer = unconnected()
        self.peer.client_id = "somebody else"
        self.requests = Counter()

    def note(self, request: memoryview, word: bytes | None, client_id: str | None = "a") -> None:
        self.repeated.note(request, client_id, self.requests, Echo(word))

    def answer(self, request: memoryview) -> Any:
        return self.repeated.answer(request, self.peer, NO_PARTS)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_a_request_that_differs_only_in_its_correlation_id_has_come_before(asked: Asked) -> None:
    asked.note(frame(b"what is it?"), b" this")

    assert [b"0002 this"] == asked.answer(frame(b"what is it?", b"0002"))
    assert asked.peer.client_id == "a"
    assert asked.requests.value == 1


@pytest.mark.parametrize(
    "other",
    [
        frame(b"what is that?"),
        frame(b"what is it"),
        frame(b"what is it?", api=b"\0\2\0\x08"),
        frame(b"what is it?", api=b"\0\3\0\x09"),
        frame(b"what is it?", api=b"\1\2\0\x09"),
        frame(b""),
        *(frame(b"")[:size] for size in range(1, HEADER_BYTES)),
    ],
)
def test_any_other_difference_makes_it_another_request(asked: Asked, other: memoryview) -> None:
    asked.note(frame(b"what is it?"), b" this")

    assert asked.answer(other) is None
    assert asked.peer.client_id == "somebody else"
    assert asked.requests.value == 0


def test_what_cannot_be_answered_any_more_is_left_to_the_handler(asked: Asked) -> None:
    asked.note(frame(b"what is it?"), None)

    assert asked.answer(frame(b"what is it?")) is None
    assert asked.peer.client_id == "somebody else"
    assert asked.requests.value == 0


def test_the_clients_of_the_requests_are_told_apart(asked: Asked) -> None:
    asked.note(frame(b"a: what is it?"), b" this", "a")
    asked.note(frame(b"nobody: what is it?"), b" that", None)

    assert [b"0001 that"] == asked.answer(frame(b"nobody: what is it?"))
    assert asked.peer.client_id is None
    assert [b"0001 this"] == asked.answer(frame(b"a: what is it?"))
    assert asked.peer.client_id == "a"


def test_a_large_request_is_not_kept(asked: Asked) -> None:
    largest = frame(b"x" * (MOST_BYTES - HEADER_BYTES))
    larger = frame(b"x" * (MOST_BYTES - HEADER_BYTES + 1))
    asked.note(largest, b"")
    asked.note(larger, b"")

    assert [b"0001"] == asked.answer(largest)
    assert asked.answer(larger) is None
    assert len(asked.repeated) == 1


def test_only_so_many_are_kept(asked: Asked) -> None:
    requests = [frame(b"%d" % number) for number in range(MOST_REQUESTS + 1)]
    for request in requests:
        asked.note(request, b"")

    assert asked.answer(requests[0]) is None
    assert [b"0001"] == asked.answer(requests[-1])

    assert len(asked.repeated) == 1

    asked.note(requests[0], b"")
    assert [b"0001"] == asked.answer(requests[0])
