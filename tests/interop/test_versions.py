"""
The versions that both brokers list for the APIs that both have.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.protocol.apis import APIS
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.server.requests.registry import HANDLERS
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.wire_client import WireClient

Ranges = dict[int, tuple[int, int]]


async def listed(broker: BrokerProcess) -> Ranges:
    """
    Lowest and highest version of each API, by its key, as the running broker says.
    """
    async with await WireClient.open(broker.port) as client:
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        answer = await client.ask(request, 4)
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def test_supported_versions_equal_kafkas(tmp_path: Path) -> None:
    with BothBrokers.side_by_side(tmp_path) as both:
        both.start()
        theirs, ours = (asyncio.run(listed(broker)) for broker in both)

    assert {key for key in HANDLERS if APIS[key].is_listed} == set(ours)
    assert {key: theirs[key] for key in ours} == ours
