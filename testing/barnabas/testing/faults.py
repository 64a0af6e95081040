"""
Faults of a broker, as a test orders them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.apis import MODULES
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.config.option_values import did_you_mean
from barnabas.testing.errors import InvalidFault
from barnabas.testing.operations import faults
from barnabas.testing.rules import Kind, Rule

if TYPE_CHECKING:
    from barnabas.testing.hosts.host import Host


_APIS: Final = [
    "".join(word.capitalize() for word in module.split("_")) for module in MODULES.values()
]
"""
The names of the APIs, as Kafka has them: Produce, FindCoordinator.
"""


class Fault:
    """
    A fault that a test has ordered.
    """

    def __init__(self, host: Host, number: int) -> None:
        self._host = host
        self._number = number

    @property
    def count(self) -> int:
        """
        The number of requests that it has met.

        Raises:
            NotRunning: the broker does not run.
        """
        return self._host.call(faults.count, self._number)

    def remove(self) -> None:
        """
        Let it meet no more requests.

        Raises:
            NotRunning: the broker does not run.
        """
        self._host.call(faults.remove, self._number)


class Faults:
    """
    Faults that requests meet.

    All methods take the name of an API, such as ``"Produce"``, and which of its requests meet the
    fault: so many ``times``, of one ``client_id``, those that name a ``topic``. Of several faults
    the first one counts. They stay over a restart.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def fail(
        self,
        api: str,
        *,
        error: ErrorCode | str,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """
        Answer with an error in all places of the answer, and do nothing else.

        Args:
            error: its name, such as ``"NOT_LEADER_OR_FOLLOWER"``.

        Raises:
            InvalidFault: the API or the error does not exist.
            NotRunning: the broker does not run.
        """
        return self._add(
            Rule(Kind.FAIL, api, _error(error), times=times, client_id=client_id, topic=topic)
        )

    def delay(
        self,
        api: str,
        *,
        seconds: float,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """
        Wait before the work.

        Args:
            seconds: of real time.

        Raises:
            InvalidFault: the API does not exist.
            NotRunning: the broker does not run.
        """
        return self._add(
            Rule(Kind.DELAY, api, seconds=seconds, times=times, client_id=client_id, topic=topic)
        )

    def drop(
        self,
        api: str,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """
        Do the work, and close the connection instead of answering: a client that tries again makes
        a duplicate.

        Raises:
            InvalidFault: the API does not exist.
            NotRunning: the broker does not run.
        """
        return self._add(Rule(Kind.DROP, api, times=times, client_id=client_id, topic=topic))

    def close(
        self,
        api: str,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """
        Close the connection before the work.

        Raises:
            InvalidFault: the API does not exist.
            NotRunning: the broker does not run.
        """
        return self._add(Rule(Kind.CLOSE, api, times=times, client_id=client_id, topic=topic))

    def clear(self) -> None:
        """
        Remove all faults.

        Raises:
            NotRunning: the broker does not run.
        """
        self._host.call(faults.clear)

    def _add(self, rule: Rule) -> Fault:
        if rule.api not in _APIS:
            raise InvalidFault(f"there is no API {rule.api}{did_you_mean(rule.api, _APIS)}")
        return Fault(self._host, self._host.call(faults.add, rule))


def _error(given: ErrorCode | str) -> ErrorCode:
    if isinstance(given, ErrorCode):
        return given
    known = ErrorCode.__members__
    if given not in known:
        raise InvalidFault(f"there is no error {given}{did_you_mean(given, known)}")
    return known[given]
