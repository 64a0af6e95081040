"""
The metadata of committed offsets in the API: contents of an application.
"""

from __future__ import annotations

import pytest

from tests.support.api_client import HTTP, ask
from tests.support.group_requests import commit_request, coordinator_request
from tests.support.server import running


@pytest.mark.parametrize(("allowed", "shown"), [("false", None), ("true", "noted")])
async def test_metadata_of_offsets_are_shown_only_where_records_are(
    allowed: str, shown: str | None
) -> None:
    async with running(**HTTP, barnabas_http_records=allowed) as broker:
        await broker.create("orders")
        async with await broker.client() as client:
            await client.ask(coordinator_request("g"), 6)
            answer = await client.ask(commit_request("g", "orders", {0: 0}, metadata="noted"), 7)
            assert 0 == answer.topics[0].partitions[0].error_code
        said = await ask(broker, "/group", id="g")

    assert [shown] == [offset["metadata"] for offset in said["offsets"]]
