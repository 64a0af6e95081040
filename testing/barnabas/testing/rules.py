"""
Rules by which a broker fails requests, and the handlers that follow them.

::

    request --> rule? --no--> handler --------------------------> answer
                  |
                  +-- fail:   no handler; the error in all places of the answer
                  +-- close:  no handler; the connection ends
                  +-- delay:  handler, after some time
                  +-- drop:   handler; the connection ends instead of the answer
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, cast

from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.protocol.structs import replace
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import HANDLERS, Answer, Handler, Registration


class Kind(Enum):
    """
    What happens to a request.
    """

    FAIL = "fail"
    DELAY = "delay"
    DROP = "drop"
    CLOSE = "close"


class Rule(NamedTuple):
    """
    Which requests a fault meets, and how.
    """

    kind: Kind
    api: str
    """The name of the API, such as Produce."""
    error: ErrorCode = ErrorCode.NONE
    """In the answer, of FAIL."""
    seconds: float = 0.0
    """Real time before the work, of DELAY."""
    times: int | None = None
    """How many requests; None is all."""
    client_id: str | None = None
    """Of the client; None is any."""
    topic: str | None = None
    """That the request names; None is any."""


class RuleTable:
    """
    The rules of a broker, by their numbers. The first one that matches a request counts.

    Used on the event loop's thread only.
    """

    def __init__(self) -> None:
        self._rules: dict[int, Rule] = {}
        self._counts: list[int] = []

    def add(self, rule: Rule) -> int:
        """
        Add a rule, and return its number.
        """
        number = len(self._counts)
        self._counts.append(0)
        self._rules[number] = rule
        return number

    def remove(self, number: int) -> None:
        """
        Remove a rule; without effect if it is not there any more.
        """
        self._rules.pop(number, None)

    def clear(self) -> None:
        """
        Remove all rules.
        """
        self._rules.clear()

    def count(self, number: int) -> int:
        """
        The number of requests that a rule has met.
        """
        return self._counts[number]

    def match(self, api: str, request: object, context: RequestContext) -> Rule | None:
        """
        The rule for a request, which is counted.
        """
        for number, rule in self._rules.items():
            if (
                rule.api == api
                and rule.client_id in (None, context.client_id)
                and (rule.topic is None or rule.topic in _topics_of(request, context))
            ):
                self._counts[number] += 1
                if rule.times is not None and self._counts[number] >= rule.times:
                    self.remove(number)
                return rule
        return None

    def __bool__(self) -> bool:
        return bool(self._rules)


_LISTS: Final = ("topic_data", "topics", "topics_data")
"""
The fields of requests that name topics.
"""


def _topics_of(request: object, context: RequestContext) -> Iterator[str]:
    """
    The names of the topics of a request.
    """
    for field in _LISTS:
        for entry in getattr(request, field, None) or ():
            if isinstance(entry, str):
                yield entry
                continue
            name = getattr(entry, "name", None) or getattr(entry, "topic", None)
            topic_id = getattr(entry, "topic_id", None)
            if not name and topic_id is not None:
                name = context.broker.partitions.name_of(topic_id)
            if name:
                yield name


class FaultyHandlers(Mapping[int, Registration]):
    """
    The handlers of a broker, which follow the rules of a table.
    """

    def __init__(self, rules: RuleTable) -> None:
        self._rules = rules
        self._made: dict[int, Registration] = {}

    def __getitem__(self, key: int) -> Registration:
        made = self._made.get(key)
        if made is None:
            registration = HANDLERS[key]
            handler = _faulty(registration.name, registration.handler, self._rules)
            made = self._made[key] = replace(registration, handler=handler)
        return made

    def __iter__(self) -> Iterator[int]:
        return iter(HANDLERS)

    def __len__(self) -> int:
        return len(HANDLERS)


def _faulty(api: str, handler: Handler, rules: RuleTable) -> Handler:
    def handle(request: Any, context: RequestContext) -> Answer:
        rule = rules.match(api, request, context) if rules else None
        if rule is None:
            return handler(request, context)
        if rule.kind is Kind.FAIL:
            raise error_for(rule.error)("a fault of the test")
        if rule.kind is Kind.CLOSE:
            raise CloseConnection("a fault of the test, before the work")
        return cast("Answer", _later(rule, handler, request, context))

    return handle


async def _later(rule: Rule, handler: Handler, request: Any, context: RequestContext) -> Any:
    """
    The outcome of a request that is delayed, or whose answer is dropped.
    """
    if rule.kind is Kind.DELAY:
        await asyncio.sleep(rule.seconds)
    answer: Any = handler(request, context)
    if isinstance(answer, Generator) and not isinstance(answer, Awaitable):
        answer = await context.broker.turns.finish(answer)
    if isinstance(answer, Awaitable):
        answer = await answer
    if rule.kind is Kind.DELAY:
        return answer
    if isinstance(answer, Delayed):
        await answer.outcome()
    raise CloseConnection("a fault of the test, after the work")
