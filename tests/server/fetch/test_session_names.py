"""
A fetch session keeps the names of topics only: up to 249 characters of ASCII.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.server import TestBroker, fetch_request, fetch_topic

E = ErrorCode
VERSION = 12


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("a" * 249, True),
        ("a" * 250, False),
        ("é", False),
        ("ツ" * 249, False),
        ("a b", True),
        ("", True),
    ],
)
async def test_session_keeps_no_name_that_takes_more_than_that_of_a_topic(
    broker: TestBroker, name: str, is_kept: bool
) -> None:
    request = fetch_request(fetch_topic(name, {0: 0}), session_epoch=0, max_wait_ms=0)
    async with await broker.client() as client:
        answer = await client.ask(request, VERSION)

        assert bool(answer.session_id) == is_kept
        assert int(is_kept) == len(broker.fetch_sessions)
        (topic,) = answer.responses
        assert E.UNKNOWN_TOPIC_OR_PARTITION == topic.partitions[0].error_code


async def test_session_ends_when_it_is_to_keep_such_a_name(broker: TestBroker) -> None:
    await broker.create("t")
    async with await broker.client() as client:
        first = await client.ask(
            fetch_request(fetch_topic("t", {0: 0}), session_epoch=0, max_wait_ms=0), VERSION
        )
        answer = await client.ask(
            fetch_request(
                fetch_topic("é" * 249, {0: 0}),
                session_id=first.session_id,
                session_epoch=1,
                max_wait_ms=0,
            ),
            VERSION,
        )

    assert first.session_id
    assert E.FETCH_SESSION_ID_NOT_FOUND == answer.error_code
    assert 0 == len(broker.fetch_sessions)
