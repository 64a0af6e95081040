"""
Requests that come again and again, the same but for their correlation id.

What such a request says depends on its bytes alone, so that it has to be understood only once: who
sends it, what API and version that is, and what it asks for. Only what the answer says is looked up
each time.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from barnabas.server.metrics import Counter
    from barnabas.server.network.connection import Connection
    from barnabas.server.network.sender import Part
    from barnabas.server.requests.context import Parts

MOST_REQUESTS: Final = 1000
"""So many are kept: each is one of a client's, and a client that is gone does not say so here."""
MOST_BYTES: Final = 1024
"""Of a request that is kept. With more, looking up what it asks for is what takes the time."""

_API_KEY: Final = 1
"""Where the lower byte of the key is: all there is of it, so far."""
_CORRELATION_ID: Final = 4
_CLIENT_ID: Final = 8


class Question(Protocol):
    """
    What a request asks for that changes nothing.
    """

    def answer(self, correlation_id: bytes, parts: Parts) -> bytes | None:
        """
        The frame of the answer, or None if the handler has to give it, with Kafka's errors.

        Args:
            correlation_id: of the request, as it stands there.
        """


class _Understood:
    """
    A request, whatever its correlation id.
    """

    __slots__ = ("client_id", "question", "requests")

    def __init__(self, client_id: str | None, requests: Counter, question: Question) -> None:
        self.client_id = client_id
        self.requests = requests
        self.question = question


class RepeatedRequests:
    """
    What was understood of the requests that came last, at most ``MOST_REQUESTS`` of them.
    """

    __slots__ = ("_api_keys", "_understood")

    def __init__(self) -> None:
        self._understood: dict[bytes, _Understood] = {}
        self._api_keys: set[int] = set()

    def __len__(self) -> int:
        return len(self._understood)

    def answer(self, frame: memoryview, connection: Connection, parts: Parts) -> list[Part] | None:
        """
        Answer a request that has come before; None if that cannot be done here.
        """
        if not _CLIENT_ID <= len(frame) <= MOST_BYTES or frame[_API_KEY] not in self._api_keys:
            return None
        request = frame.tobytes()
        understood = self._understood.get(request[:_CORRELATION_ID] + request[_CLIENT_ID:])
        if understood is None:
            return None
        answer = understood.question.answer(request[_CORRELATION_ID:_CLIENT_ID], parts)
        if answer is None:
            return None
        connection.client_id = understood.client_id
        understood.requests.value += 1
        return [answer]

    def note(
        self, frame: memoryview, client_id: str | None, requests: Counter, question: Question
    ) -> None:
        """
        A request was understood, and may come again.

        Args:
            requests: counts those of its API.
        """
        if len(frame) > MOST_BYTES:
            return
        if len(self._understood) >= MOST_REQUESTS:
            self._understood.clear()
        request = frame.tobytes()
        self._api_keys.add(request[_API_KEY])
        self._understood[request[:_CORRELATION_ID] + request[_CLIENT_ID:]] = _Understood(
            client_id, requests, question
        )
