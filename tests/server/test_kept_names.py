"""
Collections limited by a count of entries keep no long texts of clients.
"""

from __future__ import annotations

import ast
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import server
from barnabas.coordination.share import sessions as share_sessions
from barnabas.coordination.share.sessions import ShareSessionKey, ShareSessions
from barnabas.coordination.text_memory import MOST_BYTES_OF_A_NAME, shortened
from barnabas.protocol.errors import ShareSessionLimitReached
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.server.requests.client import Client
from barnabas.server.security.quotas import counters, limits
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.limits import stated
from tests.support.server import running

SOURCES = Path(server.__path__[0])
OTHERS = ["a", "é", "ツ", "𐀀"]


def long_names(other: str, count: int = 400) -> Iterator[str]:
    for number in range(count):
        yield f"{number:08d}" + "a" * 20_000 + other


def memory_after(work: Callable[[str], Any], names: Iterator[str]) -> int:
    work("short")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for name in names:
            work(name)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def cached_functions() -> Iterator[Any]:
    """
    The server's functions that take a text and cache results.
    """
    for path in sorted(SOURCES.rglob("*.py")):
        if "cache" not in (source := path.read_text()):
            continue
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef):
                continue
            cached = any("cache" in ast.unparse(each) for each in node.decorator_list)
            texts = [
                each for each in node.args.args if ast.unparse(each.annotation or each) == "str"
            ]
            if cached and texts and len(node.args.args) == 1:
                module = ".".join(path.relative_to(SOURCES.parents[1]).with_suffix("").parts)
                yield pytest.param(module, node.name, id=f"{path.stem}.{node.name}")


KNOWN_TO_BE_SHORT = {"host_address"}
"""Functions of addresses of peers, which no client chooses."""


@pytest.mark.parametrize(("module", "name"), [*cached_functions()])
def test_a_remembered_function_of_texts_is_called_for_short_ones_only(
    module: str, name: str
) -> None:
    """
    A cached function is private to a caller that passes short texts.
    """
    source = SOURCES.parents[1].joinpath(*module.split(".")).with_suffix(".py").read_text()

    assert name in KNOWN_TO_BE_SHORT or f"{name}(text) if is_short(text) else" in source


@pytest.mark.parametrize("other", OTHERS)
def test_the_partition_of_a_long_key_is_not_remembered(other: str) -> None:
    from barnabas.coordination.coordinator_runtime.partitioning import partition_of  # noqa: PLC0415
    from barnabas.coordination.java_strings import string_hash  # noqa: PLC0415

    def both(text: str) -> None:
        assert partition_of(text, 7) in range(7)
        string_hash(text)

    assert memory_after(both, long_names(other, 8)) < 100_000


@pytest.mark.parametrize("other", OTHERS)
def test_counters_of_clients_with_long_names_take_what_the_page_says(other: str) -> None:
    quotas = limits.QuotaLimits()
    quotas.change((None, limits.DEFAULT), 1000.0)
    kept: counters.Counters[object] = counters.Counters(
        quotas, lambda limit, now_ms: object(), lambda counter: 1e9
    )

    taken = memory_after(lambda name: kept.of("", name, 1), long_names(other))

    assert taken < 400 * 1100
    assert 401 == len(kept)
    first = next(long_names(other))
    assert kept.of("", first, 2) is kept.of("", first, 3), "it is the same client"
    quotas.change((None, first), 5.0)
    kept.limits_changed()
    counter = kept.of("", first, 4)
    assert counter is not None
    assert 5.0 == counter.limit


@pytest.mark.parametrize("other", OTHERS)
def test_share_sessions_have_room_for_some_names_only(other: str) -> None:
    assert stated("share-session-names") == share_sessions.MOST_NAME_BYTES
    kept = ShareSessions(10_000, ended=lambda _: None, emptied=lambda _: None)

    class Connection:
        def when_closed(self, listener: Callable[[], None], /) -> None:
            self.closed = listener

    client = Connection()

    def begin(name: str) -> None:
        kept.begin(ShareSessionKey(name, name[:100]), {}, client, has_acknowledgements=False)

    with pytest.raises(ShareSessionLimitReached):
        memory_after(begin, long_names(other, 1000))
    refused_at = len(kept)
    assert 100 < refused_at < 900
    client.closed()
    begin(next(long_names(other)))
    assert 1 == len(kept)


async def test_a_connection_keeps_no_long_client_id() -> None:
    async with (
        running(MemoryFiles()) as broker,
        await broker.client(client_id="𐀀" * 8000) as client,
    ):
        await client.ask(
            ApiVersionsRequest(client_software_name="n" * 30_000, client_software_version="1"), 3
        )
        kept = [each for each in gc.get_objects() if isinstance(each, Client)]
        assert kept
        assert all(len(each.client_id or "") < 300 for each in kept)
        assert all(each.software is None or len(each.software.name) < 300 for each in kept)


@pytest.mark.parametrize("text", ["", "a" * MOST_BYTES_OF_A_NAME, "é" * 50])
def test_a_short_text_is_kept_as_it_is(text: str) -> None:
    assert text is shortened(text)
