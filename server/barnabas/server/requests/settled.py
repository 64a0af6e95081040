"""
Answers that tell the state of a coordinator.

A coordinator applies a record when it is appended, and a crash of the machine takes back what no
fsync has covered (``log.flush.interval.messages``). So an answer that tells the state waits until
all of it is committed. Kafka's coordinators read the last committed state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from barnabas.server.purgatory import Delayed

if TYPE_CHECKING:
    from barnabas.server.coordinator_runtime.shards import Shards
    from barnabas.server.requests.context import RequestContext

H = TypeVar("H", bound=Callable[..., Any])

Keys: TypeAlias = Callable[[Any], "Iterable[str] | None"]


def groups(context: RequestContext) -> Shards[Any]:
    return context.broker.groups.shards


def transactions(context: RequestContext) -> Shards[Any]:
    return context.broker.transactions.shards


def reads(shards_of: Callable[[RequestContext], Shards[Any]], keys: Keys) -> Callable[[H], H]:
    """
    Let the answers of a handler wait for the commit of the state that they tell.

    Args:
        shards_of: returns the shards of the coordinator.
        keys: returns the keys that the request names; None if the handler reads all shards.
    """

    def decorate(handler: H) -> H:
        def settled(answer: Any, request: Any, context: RequestContext) -> Any:
            if isinstance(answer, Awaitable):
                return later(answer, request, context)
            if answer is None or isinstance(answer, Delayed):
                return answer
            if isinstance(answer, Generator):
                return in_steps(answer, request, context)
            return shards_of(context).settled(answer, keys(request))

        async def later(answer: Awaitable[Any], request: Any, context: RequestContext) -> Any:
            return settled(await answer, request, context)

        def in_steps(steps: Any, request: Any, context: RequestContext) -> Any:
            return settled((yield from steps), request, context)

        @wraps(handler)
        def handle(request: Any, context: RequestContext) -> Any:
            return settled(handler(request, context), request, context)

        return cast("H", handle)

    return decorate


def all_shards(_request: Any) -> None:
    """
    The keys of a request that reads all shards.
    """
