"""
The versions that both brokers list for the APIs that both have.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.server.requests.registry import HANDLERS
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.wire_client import WireClient

Ranges = dict[int, tuple[int, int]]


def listed(broker: BrokerProcess) -> Ranges:
    """
    Lowest and highest version of each API, by its key, as the running broker says.
    """

    async def ask() -> Ranges:
        async with await WireClient.open(broker.port) as client:
            request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
            answer = await client.ask(request, 4)
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    broker.start()
    try:
        return asyncio.run(ask())
    finally:
        broker.close()


def test_the_versions_are_those_of_kafka(tmp_path: Path) -> None:
    ours = listed(Barnabas(tmp_path / "barnabas"))
    theirs = listed(ApacheKafka(tmp_path / "kafka"))

    assert set(HANDLERS) == set(ours)
    assert {key: theirs[key] for key in ours} == ours
