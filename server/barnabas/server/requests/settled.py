"""
Answers that tell the state of a coordinator.

A coordinator applies a record when it is appended, and a crash of the machine takes back what no
fsync has covered (``log.flush.interval.messages``). So an answer that tells the state waits until
all of it is committed. Kafka's coordinators read the last committed state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

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
        @wraps(handler)
        async def handle(request: Any, context: RequestContext) -> Any:
            answer = await handler(request, context)
            unsettled = shards_of(context).unsettled(keys(request))
            if unsettled is not None:
                context.effects_done()
                await unsettled
            return answer

        return cast("H", handle)

    return decorate


def all_shards(_request: Any) -> None:
    """
    The keys of a request that reads all shards.
    """
