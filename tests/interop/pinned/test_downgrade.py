"""
A directory that this version serves is opened by earlier ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.server.cli import main
from tests.interop.clients.base import CODECS
from tests.interop.clients.base import values as read_values
from tests.interop.clients.confluent import BY_KIP_848, ConfluentSession
from tests.interop.pinned.directory import (
    COMMITTED,
    CONFIGURED,
    GROUP,
    PATIENCE_S,
    RECORDS,
    RETENTION_MS,
    SETTINGS,
    TRANSACTIONS,
    committed,
    fill,
    read,
    retention,
    values,
    write_more,
)
from tests.interop.pinned.older import COMMITS, RELEASES, older, unpack
from tests.support.broker_process import Barnabas
from tests.support.share_client import ShareClient

pytestmark = pytest.mark.prove

MODERN: Final = "modern"
FURTHER: Final = 23
SHARING: Final = "sharing"
STATE: Final = [(3, 7, 0, 2)]
"""Deliveries of a share group: offsets 3 to 7 are available after the second one."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barnabas]:
    """
    A broker of this version, stopped.
    """
    with Barnabas(tmp_path_factory.mktemp("served"), settings=SETTINGS) as broker:
        fill(broker.bootstrap)
        read_in_a_modern_group(broker.bootstrap)
        asyncio.run(share(broker.port))
        assert 0 == broker.stop()
        yield broker


def read_in_a_modern_group(bootstrap: str) -> None:
    with ConfluentSession(bootstrap) as session:
        reader = session.reader(CONFIGURED, group_id=MODERN, **BY_KIP_848)
        assert values(CONFIGURED) == read_values(reader, RECORDS)
        reader.commit({0: RECORDS})


async def share(port: int) -> None:
    """
    A share group with a member, and a state.
    """
    client = await ShareClient.of(port, CONFIGURED)
    request = ShareGroupHeartbeatRequest(
        group_id=SHARING,
        member_id="m",
        member_epoch=0,
        rack_id=None,
        subscribed_topic_names=[CONFIGURED],
    )
    joined = await client.client.ask(request, 1)
    assert ErrorCode.NONE == joined.error_code
    await client.find_coordinator(SHARING)
    async with asyncio.timeout(PATIENCE_S):
        # The group coordinator initializes the state behind its answer.
        while (state := await client.read(SHARING)).error_code or not state.state_epoch:
            pass
    written = await client.write(SHARING, STATE, start_offset=3, state_epoch=state.state_epoch)
    assert ErrorCode.NONE == written.error_code
    await client.close()


async def shared(port: int) -> tuple[set[str], list[tuple[int, int, int, int]]]:
    client = await ShareClient.of(port, CONFIGURED)
    listed = await client.client.ask(ListGroupsRequest(states_filter=[], types_filter=[]), 5)
    state = await client.read(SHARING)
    await client.close()
    return {group.group_id for group in listed.groups}, [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in state.state_batches
    ]


@pytest.mark.parametrize("version", [*COMMITS, *RELEASES])
def test_earlier_version_opens_what_this_one_has_written(
    served: Barnabas, version: str, tmp_path: Path
) -> None:
    """
    Everything is there, more is written, and after the upgrade that is there too.
    """
    source = unpack(version, tmp_path / "source")
    earlier = older(source, served, tmp_path / "broker")
    try:
        earlier.start()
        check(earlier.bootstrap)
        write_more(earlier.bootstrap, offset=FURTHER)
        assert 0 == earlier.stop()
    finally:
        earlier.close()
    assert " ERROR " not in earlier.log_text()

    assert 0 == main(["verify", str(earlier.data)])
    with Barnabas(earlier.directory, settings=SETTINGS) as upgraded:
        for topic in CODECS:
            assert values(topic) == read(upgraded.bootstrap, topic)
        assert [*values(TRANSACTIONS), b"more"] == read(upgraded.bootstrap, TRANSACTIONS)
        assert FURTHER == committed(upgraded.bootstrap)
        assert RECORDS == committed(upgraded.bootstrap, MODERN)
        groups, state = asyncio.run(shared(upgraded.port))
        assert {GROUP, MODERN, SHARING} <= groups
        assert STATE == state
        assert RETENTION_MS == retention(upgraded.bootstrap)
        assert 0 == upgraded.stop()
    assert 0 == main(["verify", str(upgraded.data)])


def check(bootstrap: str) -> None:
    for topic in (*CODECS, TRANSACTIONS):
        assert values(topic) == read(bootstrap, topic)
    assert COMMITTED == committed(bootstrap)
    assert RECORDS == committed(bootstrap, MODERN)
    assert RETENTION_MS == retention(bootstrap)
