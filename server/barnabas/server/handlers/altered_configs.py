"""
What AlterConfigs and IncrementalAlterConfigs have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from barnabas.coordination.security.acl.permissions import (
    ALTER_CONFIGS_CLUSTER,
    ALTER_CONFIGS_GROUP,
    ALTER_CONFIGS_TOPIC,
)
from barnabas.coordination.steps import await_each, map_in_turns
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.server.dynamic_config.admin import AlterResource, ConfigChange
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.config_authorization import require_alter
from barnabas.server.requests.context import RequestContext

NEEDS: Final = asks(ALTER_CONFIGS_TOPIC, ALTER_CONFIGS_GROUP, ALTER_CONFIGS_CLUSTER)

R = TypeVar("R")


async def altered(
    request: Any,
    context: RequestContext,
    answer: Callable[..., R],
    change_of: Callable[[Any], ConfigChange],
    *,
    replaces: bool = False,
    sentence_of: Callable[[Any, KafkaError], str | None] = lambda _, error: str(error),
) -> list[R]:
    """
    Change the options of each resource of the request, which succeeds or fails by itself.

    Args:
        answer: makes the answer for a resource.
        change_of: returns the change that the request asks for with one of the options.
        replaces: whether options that are not named return to their defaults.
        sentence_of: returns the sentence of the answer for a resource that failed.
    """

    async def wanted(resource: Any) -> AlterResource:
        changes = await map_in_turns(change_of, resource.configs)
        return AlterResource(
            type=resource.resource_type,
            name=resource.resource_name,
            changes=changes,
            replaces=replaces,
        )

    def outcome(outcome: tuple[Any, KafkaError | None]) -> R:
        resource, error = outcome
        return answer(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else sentence_of(resource, error),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    resources = await await_each(wanted, request.resources)
    errors = await context.broker.config_admin().alter(
        resources, partial(require_alter, context), validate_only=request.validate_only
    )
    return await map_in_turns(outcome, zip(request.resources, errors, strict=True))
