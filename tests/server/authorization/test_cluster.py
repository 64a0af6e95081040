from __future__ import annotations

from typing import Final

import pytest

from barnabas.coordination.security.acl.permissions import (
    ALTER_CONFIGS_TOPIC,
)
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from tests.support.acls import AUTHORIZER, allow, create_topics
from tests.support.config_requests import (
    SET,
    TOPIC,
    change_all,
    replace,
)
from tests.support.server import TestBroker
from tests.support.wire_client import WireClient

E = ErrorCode
pytestmark = pytest.mark.broker(**AUTHORIZER)

TOPIC_REFUSED: Final = E.TOPIC_AUTHORIZATION_FAILED


# Configs


@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("is_old", [True, False])
async def test_refused_config_change_is_not_made(
    broker: TestBroker, client: WireClient, is_allowed: bool, is_old: bool
) -> None:
    await create_topics(broker, {"t": 1})
    if is_allowed:
        await allow(broker, ALTER_CONFIGS_TOPIC, "t")
    request: Message = change_all((TOPIC, "t", [("retention.ms", SET, "77")]))
    if is_old:
        request = replace(TOPIC, "t", ("retention.ms", "77"))

    answer = await client.ask(request, 2 if is_old else 1)

    assert [0 if is_allowed else TOPIC_REFUSED] == [it.error_code for it in answer.responses]
    log = broker.inside.partitions.expect("t", 0).log
    assert (77 if is_allowed else 604_800_000) == log.config.retention_ms
