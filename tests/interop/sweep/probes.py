"""
What other clients see: a request of every API, and changes of what a broker keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.protocol.apis import MODULES
from barnabas.protocol.messages import REQUESTS
from barnabas.server.requests.registry import SERVED
from tests.interop.sweep.measured import MeasuredBroker
from tests.interop.sweep.values import ordinary_request
from tests.interop.sweep.world import OPEN, World
from tests.support.build import api_request
from tests.support.group_requests import commit_request
from tests.support.refusals import codes
from tests.support.topic_requests import creatable, delete_request
from tests.support.wire_client import BlockingClient

PATIENCE_S: Final = 20.0
NUMBER: Final = 999_999_999
"""
The number of the probes, which no request of the sweep has.
"""
ON_OTHER_LISTENERS: Final = ("sasl_handshake", "sasl_authenticate")


class Probes:
    """
    Asks a broker the same again and again.
    """

    def __init__(self, broker: MeasuredBroker, world: World) -> None:
        self._port = broker.port
        self._world = world
        self._changes = 0
        self.ask()
        self._expected = self.ask()
        again = self.ask()
        # What a first request has begun may take another course the third time.
        self._changing = {api for api in again if again[api] != self._expected[api]}

    def ask(self) -> dict[str, list[int]]:
        """
        The error codes of the answers, by API.
        """
        with BlockingClient(self._port, seconds=PATIENCE_S) as client:
            return dict(self._answers(client))

    def _answers(self, client: BlockingClient) -> Iterator[tuple[str, list[int]]]:
        for key in sorted(SERVED):
            api, cls = MODULES[key], REQUESTS[key]
            if api in ON_OTHER_LISTENERS:
                continue
            version = cls.api.versions[-1]
            answer = client.ask(ordinary_request(cls, self._world, NUMBER), version)
            yield api, codes(answer, version)

    def check_all(self) -> None:
        """
        Every API answers as before.
        """
        answers = self.ask()
        changed = {
            api: (self._expected[api], found)
            for api, found in answers.items()
            if api not in self._changing and found != self._expected[api]
        }
        assert not changed, f"answers before and now, by API: {changed}"
        self.check_changes()

    def check_changes(self) -> None:
        """
        Metadata, producer ids and offsets can still be written.
        """
        self._changes += 1
        name = f"probe-{self._changes}"
        requests: list[tuple[Any, int]] = [
            (
                api_request("create_topics", topics=[creatable(name)], timeout_ms=10_000),
                7,
            ),
            (delete_request(5, name), 5),
            (
                api_request(
                    "init_producer_id", transactional_id=None, transaction_timeout_ms=60_000
                ),
                4,
            ),
            (commit_request("committed", OPEN, {0: self._changes}), 8),
        ]
        with BlockingClient(self._port, seconds=PATIENCE_S) as client:
            for request, version in requests:
                found = codes(client.ask(request, version), version)
                assert {0} == set(found), f"{type(request).__name__} is answered {found}"
