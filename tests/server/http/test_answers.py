from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from barnabas.server.http.answers import (
    ENTRIES_AT_ONCE,
    SEND_BYTES,
    TooLarge,
    encoded,
    send_in_pieces,
)


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        None,
        "text \ud800",
        {"a": {}, "b": [], "c": {"d": [1, None, True, {"e": "\u00e9"}]}},
        {"columns": {"x": list(range(3 * ENTRIES_AT_ONCE + 1)), "y": [None] * ENTRIES_AT_ONCE}},
        list(range(ENTRIES_AT_ONCE + 1)),
        {'"quoted"': [[1], [2]] * ENTRIES_AT_ONCE},
    ],
)
def test_json_in_pieces_equals_the_whole_json(content: object) -> None:
    text = b"".join(encoded(content, 1 << 20)).decode()

    assert content == json.loads(text)
    assert json.dumps(content) + "\n" == text


def test_encoding_stops_at_the_maximum_response_size() -> None:
    class Endless(dict[str, int]):
        def items(self):  # type: ignore[no-untyped-def]
            while True:
                yield "name", 1

    with pytest.raises(TooLarge):
        encoded(Endless(), 1000)


async def test_a_piece_is_sent_as_soon_as_it_is_large_enough() -> None:
    sent: list[bytes] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["body"])

    half = SEND_BYTES // 2
    await send_in_pieces(send, [bytes(half)] * 5)

    assert [2 * half, 2 * half, half, 0] == [len(piece) for piece in sent]
