"""
Faults of a broker, as a test orders them.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, Self

from barnabas.protocol.apis import MODULES
from barnabas.protocol.codec.schema import fields
from barnabas.protocol.errors import ErrorCode
from barnabas.server.requests.registry import HANDLERS
from barnabas.storage.config.option_values import did_you_mean
from barnabas.testing.errors import InvalidFault, hides_frame
from barnabas.testing.operations import faults
from barnabas.testing.rule import Kind, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.testing.hosts.host import Host

__tracebackhide__ = hides_frame


_APIS: Final = {
    "".join(word.capitalize() for word in module.split("_")): key for key, module in MODULES.items()
}
"""
The keys of the APIs by their names, as Kafka has them: Produce, FindCoordinator.
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


class Chaos:
    """
    Faults that chance deals out::

        with broker.chaos(seed=7) as chaos:
            ...
        print(chaos.schedule)

    Chance strikes the requests by which clients produce, fetch, commit and find their way, with
    errors that pass, delays of up to 0.2 s, answers that are lost, and connections that end. The
    fault of the n-th request of an API depends on the seed, the API and n alone.
    """

    def __init__(self, host: Host, seed: int, one_in: int, crash: Callable[[Random], str]) -> None:
        """
        Args:
            crash: ends the broker abruptly, starts it again, and says how.
        """
        self.seed = seed
        self._host = host
        self._crash = crash
        self._crashes = 0
        self._schedule: list[str] | None = None
        host.call(faults.begin_chaos, seed, one_in)

    @property
    def schedule(self) -> list[str]:
        """
        The last 1000 faults, a line for each, such as ``Produce 3: drop``.

        Raises:
            NotRunning: the broker does not run.
        """
        if self._schedule is not None:
            return self._schedule
        return self._host.call(faults.schedule)

    def crash(self, *, one_in: int = 1) -> bool:
        """
        Perhaps end the broker abruptly, and start it again: by a ``kill``, or by a ``power_loss``
        if it is on a disk that can crash. What happens in the n-th call depends on the seed and n
        alone. The schedule gets a line, such as ``crash 3: power loss, keep=17``.

        Args:
            one_in: one of so many calls does it.

        Returns:
            Whether it was done.

        Raises:
            ValueError: *one_in* is not positive.
            NotRunning: the broker does not run.
            BrokerError: the broker is in a directory, or in a process of its own.
        """
        if one_in < 1:
            raise ValueError(f"one_in is at least 1, not {one_in}")
        self._crashes += 1
        random = Random(f"{self.seed} crash {self._crashes}")
        if random.randrange(one_in):
            return False
        what = self._crash(random)
        self._host.call(faults.note_chaos, f"crash {self._crashes}: {what}")
        return True

    def stop(self) -> None:
        """
        Deal out no more.

        Raises:
            NotRunning: the broker does not run.
        """
        self._schedule = self.schedule
        self._host.call(faults.end_chaos)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._host.is_running:
            self.stop()

    def __repr__(self) -> str:
        return f"<Chaos seed={self.seed}>"


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

    def hang(
        self,
        api: str,
        *,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """
        Do nothing, and leave the connection open. It ends when the fault is removed, or the broker
        stops.

        Raises:
            InvalidFault: the API does not exist.
            NotRunning: the broker does not run.
        """
        return self._add(Rule(Kind.HANG, api, times=times, client_id=client_id, topic=topic))

    def throttle(
        self,
        api: str,
        *,
        seconds: float,
        times: int | None = None,
        client_id: str | None = None,
        topic: str | None = None,
    ) -> Fault:
        """
        Do the work, and say in the answer that the client is to be quiet, as a quota does: in its
        throttle time (KIP-219). Versions of an API that have no throttle time are answered without.

        Args:
            seconds: of real time.

        Raises:
            InvalidFault: the API does not exist, or has no throttle time.
            NotRunning: the broker does not run.
        """
        if not _has_throttle_time(api):
            raise InvalidFault(f"the answer of {api} has no throttle time")
        return self._add(
            Rule(Kind.THROTTLE, api, seconds=seconds, times=times, client_id=client_id, topic=topic)
        )

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


def _has_throttle_time(api: str) -> bool:
    """
    Whether the answer of an API can say it; also for one that does not exist.
    """
    registration = HANDLERS.get(_APIS.get(api, -1))
    return registration is None or any(
        field.name == "throttle_time_ms" for field in fields(registration.response)
    )


def _error(given: ErrorCode | str) -> ErrorCode:
    if isinstance(given, ErrorCode):
        return given
    known = ErrorCode.__members__
    if given not in known:
        raise InvalidFault(f"there is no error {given}{did_you_mean(given, known)}")
    return known[given]
