"""
Peers that send the requests of the sweep: one request, many on one connection, or many connections
that do not read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from barnabas.protocol.apis import MODULES
from barnabas.protocol.codec.schema import fields, replace
from barnabas.protocol.messages import REQUESTS
from tests.interop.sweep.cases import Case
from tests.interop.sweep.measured import MeasuredBroker
from tests.interop.sweep.values import Make, ordinary_request
from tests.interop.sweep.world import LISTENER, World, logged_in
from tests.support.build import API_KEYS
from tests.support.sasl_client import CLOSED, SaslClient
from tests.support.wire_client import Disconnected

TIMES: Final = 1_000
CONNECTIONS: Final = 100
AHEAD: Final = 20
"""
Requests that are sent before the answer to the first of them is read.
"""
MOST_CLOSED: Final = 20
"""
After so many closed connections in a row, the request is one that closes its connection.
"""
PATIENCE_S: Final = 120.0 if os.environ.get("BARNABAS_SWEEP") == "all" else 30.0
"""
The whole sweep sends 90 MiB of names, and the hash of each decides about its coordinator.
"""
PATTERN_PATIENCE_S: Final = 2.0
"""
The patience with a match of a regular expression, which may take minutes; then the client leaves.
"""
SMALL_BUFFER: Final = 4096
UNREAD_S: Final = 1.5
"""
How long peers do not read.
"""
LEADS: Final = {"sync_group": "join_group", "share_acknowledge": "share_fetch"}
"""
The request that comes before one that would be refused without it.
"""


class Peers:
    """
    Clients with the rights of the user, who send requests with the largest value of a field.
    """

    def __init__(self, broker: MeasuredBroker, world: World) -> None:
        self._broker = broker
        self._world = world

    def once(self, case: Case, make: Make) -> int:
        """
        Send the request, and return the size of its frame.
        """
        frame = b""
        with self._client(case) as client, closing_allowed(case):
            frame = self._frame(client, case, make(0))
            client.send_bytes(frame)
            client.receive_frame()
        return len(frame)

    def often(self, case: Case, make: Make) -> int:
        """
        Send the request many times on one connection, or on as many as it closes.
        """
        number, closed, size = 0, 0, 0
        ahead = 1 if case.api in LEADS else AHEAD
        while number < TIMES and closed < MOST_CLOSED:
            with self._client(case) as client, closing_allowed(case):
                while number < TIMES:
                    for _ in range(ahead):
                        frame = self._frame(client, case, make(number))
                        client.send_bytes(frame)
                        number, size = number + 1, len(frame)
                    for _ in range(ahead):
                        client.receive_frame()
                    closed = 0
            closed += 1
        return size

    def unread(self, case: Case, make: Make, meanwhile: Callable[[], None]) -> int:
        """
        Send the request on many connections that do not read.
        """
        size = 0
        with ExitStack() as stack:
            clients = [
                stack.enter_context(self._client(case, receive_buffer_bytes=SMALL_BUFFER))
                for _ in range(CONNECTIONS)
            ]
            rest: list[tuple[SaslClient, bytes]] = []
            for number, client in enumerate(clients):
                with closing_allowed(case):
                    frame = self._frame(client, case, make(number))
                    client.socket.setblocking(False)
                    rest.append((client, frame))
                    size = len(frame)
            end = time.monotonic() + UNREAD_S
            while rest and time.monotonic() < end:
                rest = [left for each in rest if (left := _sent(*each)) is not None]
                time.sleep(0.02)
            meanwhile()
            time.sleep(max(0.0, end - time.monotonic()))
        return size

    @contextmanager
    def _client(self, case: Case, **options: Any) -> Iterator[SaslClient]:
        options["seconds"] = PATTERN_PATIENCE_S if _is_pattern(case) else PATIENCE_S
        if case.api in ("sasl_handshake", "sasl_authenticate"):
            client = SaslClient(self._broker.ports[LISTENER], **options)
            if case.api == "sasl_authenticate":
                client.handshake("PLAIN")
        else:
            client = logged_in(self._broker, **options)
        with client:
            yield client

    def _frame(self, client: SaslClient, case: Case, request: Any) -> bytes:
        """
        The request as bytes, whose answer nobody decodes.
        """
        frame = client.frame(self._prepared(client, case, request), case.version)
        client.expect_no_answer()
        return frame

    def _prepared(self, client: SaslClient, case: Case, request: Any) -> Any:
        """
        The request, once the one before it has been answered.
        """
        if case.api not in LEADS:
            return request
        cls = REQUESTS[API_KEYS[LEADS[case.api]]]
        lead = ordinary_request(cls, self._world, 0)
        same = {"group_id", "member_id"} & {field.name for field in fields(cls)} - {case.path[-1]}
        lead = replace(lead, **{name: getattr(request, name) for name in same})
        answer = client.ask(lead, cls.api.versions[-1])
        if answer == CLOSED:
            raise Disconnected
        if MODULES[cls.api.key] == "join_group" and case.path != ("member_id",):
            return replace(
                request, member_id=answer.member_id, generation_id=max(answer.generation_id, 0)
            )
        return request


def _sent(client: SaslClient, frame: bytes) -> tuple[SaslClient, bytes] | None:
    """
    Send some of the frame, and return what is left; None if there is nobody to send it to.
    """
    try:
        sent = client.socket.send(frame)
    except BlockingIOError:
        return client, frame
    except OSError:
        return None
    return (client, frame[sent:]) if sent < len(frame) else None


@contextmanager
def closing_allowed(case: Case) -> Iterator[None]:
    """
    A request may close its connection, and a match may take longer than its client waits.
    """
    try:
        yield
    except (Disconnected, ConnectionError):
        pass
    except TimeoutError:
        if not _is_pattern(case):
            raise AssertionError(f"{case} is not answered within {PATIENCE_S} s") from None


def _is_pattern(case: Case) -> bool:
    return "pattern" in case.path[-1] or "regex" in case.path[-1]
