from __future__ import annotations

from typing import Any, Final

import pytest

from barnabas.coordination.cluster.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import REQUESTS
from tests.support.cluster_requests import features
from tests.support.group_requests import coordinator_request
from tests.support.messages import Samples
from tests.support.server import running

SMALL: Final = {"offsets_topic_num_partitions": "1"}
UNSUPPORTED: Final = ErrorCode.UNSUPPORTED_VERSION
APIS: Final = {
    GROUP_VERSION: (68, 69),
    SHARE_VERSION: (76, 77, 78, 79),
    STREAMS_VERSION: (88, 89),
}


def codes(answer: Any) -> set[int]:
    groups = getattr(answer, "groups", None)
    return {answer.error_code} if groups is None else {group.error_code for group in groups}


@pytest.mark.parametrize(
    ("feature", "key"), [(feature, key) for feature, keys in APIS.items() for key in keys]
)
async def test_protocol_with_a_disabled_feature_is_unsupported(feature: str, key: int) -> None:
    async with running(**SMALL) as broker, await broker.client() as client:
        await client.ask(coordinator_request("g"), 4)
        request, version = REQUESTS[key], REQUESTS[key].api.versions[-1]
        asked = Samples(full=True).message(request, version)
        assert UNSUPPORTED not in codes(await client.ask(asked, version))

        answer = await client.ask(features((feature, 0, 2)), 1)

        assert 0 == answer.error_code
        assert {UNSUPPORTED} == codes(await client.ask(asked, version))


@pytest.mark.parametrize(
    ("key", "is_spoken"),
    [(68, False), (69, False), (88, False), (89, False), (76, True), (78, True)],
)
async def test_rebalance_protocols_option_does_not_disable_share_groups(
    key: int, is_spoken: bool
) -> None:
    options = {"group_coordinator_rebalance_protocols": "classic", **SMALL}
    async with running(**options) as broker, await broker.client() as client:
        await client.ask(coordinator_request("g"), 4)
        version = REQUESTS[key].api.versions[-1]
        asked = Samples(full=True).message(REQUESTS[key], version)

        assert is_spoken is (UNSUPPORTED not in codes(await client.ask(asked, version)))
