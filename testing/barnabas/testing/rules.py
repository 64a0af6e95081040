"""
Rules by which a broker fails requests, and the handlers that follow them.

::

    request --> rule? --no--> handler --------------------------> answer
                  |
                  +-- fail:   no handler; the error in all places of the answer
                  +-- close:  no handler; the connection ends
                  +-- hang:   no handler; nothing happens, and the connection stays
                  +-- delay:  handler, after some time
                  +-- drop:   handler; the connection ends instead of the answer
                  +-- throttle:  handler; the answer says for how long to be quiet
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, Final

from barnabas.protocol.errors import error_for
from barnabas.protocol.structs import replace
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import HANDLERS, Handler, Registration
from barnabas.testing.chance import Chance
from barnabas.testing.rule import Kind, Rule


class RuleTable:
    """
    The rules of a broker, by their numbers. The first one that matches a request counts; chance
    decides where there is none.

    Used on the event loop's thread only.
    """

    def __init__(self) -> None:
        self.chance: Chance | None = None
        self._rules: dict[int, Rule] = {}
        self._counts: list[int] = []
        self._hung: dict[int, list[asyncio.Future[None]]] = {}

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
        Remove a rule, and end the connections that hang by it; without effect if there is neither.
        """
        self._rules.pop(number, None)
        for answer in self._hung.pop(number, ()):
            _end(answer, "a fault of the test, which is removed")

    def clear(self) -> None:
        """
        Remove all rules, and end all connections that hang.
        """
        for number in (*self._rules, *self._hung):
            self.remove(number)

    def release(self) -> None:
        """
        End all connections that hang. The rules stay.
        """
        hung, self._hung = self._hung, {}
        for answer in (answer for answers in hung.values() for answer in answers):
            _end(answer, "the broker stops")

    def count(self, number: int) -> int:
        """
        The number of requests that a rule has met.
        """
        return self._counts[number]

    async def hang(self, number: int) -> None:
        """
        Wait until the rule is removed.

        Raises:
            CloseConnection: it is.
        """
        answers = self._hung.setdefault(number, [])
        answers[:] = [answer for answer in answers if not answer.done()]
        answers.append(asyncio.get_running_loop().create_future())
        await answers[-1]

    def match(self, api: str, request: object, context: RequestContext) -> tuple[int, Rule] | None:
        """
        The rule for a request, which is counted, with its number; -1 for one of chance.
        """
        for number, rule in self._rules.items():
            if (
                rule.api == api
                and rule.client_id in (None, context.client_id)
                and (rule.topic is None or rule.topic in _topics_of(request, context))
            ):
                self._counts[number] += 1
                if rule.times is not None and self._counts[number] >= rule.times:
                    del self._rules[number]
                return number, rule
        drawn = None if self.chance is None else self.chance.draw(api)
        return None if drawn is None else (-1, drawn)

    def __bool__(self) -> bool:
        return bool(self._rules) or self.chance is not None


def _end(answer: asyncio.Future[None], reason: str) -> None:
    if not answer.done():
        answer.set_exception(CloseConnection(reason))


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
    async def handle(request: Any, context: RequestContext) -> Any:
        matched = rules.match(api, request, context) if rules else None
        if matched is None:
            return await _outcome(handler(request, context))
        number, rule = matched
        if rule.kind is Kind.FAIL:
            raise error_for(rule.error)("a fault of the test")
        if rule.kind is Kind.CLOSE:
            raise CloseConnection("a fault of the test, before the work")
        if rule.kind is Kind.HANG:
            context.effects_done()
            await rules.hang(number)
        if rule.kind is Kind.DELAY:
            await asyncio.sleep(rule.seconds)
        answer = await _outcome(handler(request, context))
        if rule.kind is Kind.DROP:
            raise CloseConnection("a fault of the test, after the work")
        if answer is None or rule.kind is Kind.DELAY:
            return answer
        return replace(answer, throttle_time_ms=round(1000 * rule.seconds))

    return handle


async def _outcome(answer: Any) -> Any:
    """
    What a handler returns, which is plain for Produce.
    """
    return await answer if isinstance(answer, Awaitable) else answer
